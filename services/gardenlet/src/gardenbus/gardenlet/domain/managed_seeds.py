"""Plan for a shoot that becomes a seed: one action a pass, by the first row that applies.

While the ManagedSeed exists:

    | situation                                      | action             | ShootReconciled   | SeedRegistered        |
    |------------------------------------------------|--------------------|-------------------|-----------------------|
    | its shoot is not cached, or another seed's     | none               |                   |                       |
    | its shoot is not reconciled                    | none               | False Reconciling |                       |
    | another seed's gardenlet is in the shoot       | report an error    | True Reconciled   | False ReconcileError  |
    | its configuration is invalid                   | report an error    | True Reconciled   | False ReconcileError  |
    | it has no finalizer yet                        | none               | True Reconciled   | False Reconciling     |
    | no gardenlet, or of another configuration      | deploy             | True Reconciled   | False Reconciling     |
    | its Seed was deleted, or does not appear       | deploy once more   | True Reconciled   | False Reconciling     |
    | a template that differs from its Seed          | register           | True Reconciled   | False Reconciling     |
    | otherwise                                      | none               | True Reconciled   | True Reconciled       |

While it is being deleted (SeedRegistered False, `Deleting`):

    | situation                                      | action                                                         |
    |------------------------------------------------|----------------------------------------------------------------|
    | its shoot is not cached, or another seed's     | none                                                           |
    | the Seed has shoots                            | none: they must go first                                       |
    | the Seed exists                                | delete it                                                      |
    | the Seed is deleting without a working         | deploy: only a gardenlet can release it                        |
    | gardenlet                                      |                                                                |
    | the Seed is deleting                           | none                                                           |
    | the gardenlet is deployed                      | delete it                                                      |
    | it still holds its Lease                       | none                                                           |
    | the backup secret exists                       | delete it                                                      |
    | the namespace exists                           | delete it                                                      |
    | nothing is left                                | SeedRegistered False `Deleted` releases the ManagedSeed        |

Source: Gardener's `gardenlet/controller/managedseed/{reconciler,actuator}.go`.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from gardenbus.common.api.conditions import (
    FALSE,
    TRUE,
    build_condition,
    condition_status,
    conditions_of,
    get_condition,
    get_or_init,
)
from gardenbus.common.api.configuration.gardenlet import ManagedSeedSettings, parse_configurations
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.managed_seeds import runs_gardenlet, seed_of
from gardenbus.common.api.garden.seed_management import SEED_REGISTERED, SHOOT_RECONCILED
from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.ports.clock import timestamp
from gardenbus.gardenlet.domain.deployments import GardenletDeployment, managed_gardenlet_configuration, text_of
from gardenbus.gardenlet.domain.operations import FINALIZER

RECONCILING, RECONCILED, RECONCILE_ERROR = "Reconciling", "Reconciled", "ReconcileError"
DELETING, DELETED = "Deleting", "Deleted"

AT_ONCE = timedelta(0)
HELPER_AFTER = timedelta(minutes=1)
"""Time that a gardenlet has to come in before it is deployed anew, to release a Seed that is being deleted."""

REPEAT_AFTER = timedelta(seconds=30)
"""Interval after which a report without effect is repeated."""


class HostShootState(NamedTuple):
    """Shoot of a ManagedSeed: whether this seed runs it, and whether its specification is in effect."""

    is_here: bool
    is_reconciled: bool


class ManagedSeedSnapshot(NamedTuple):
    """Input of a plan.

    `seed` is the Seed as last announced (None: there is none), `deployed` the deployment in the shoot, `is_running`
    whether the Lease of the seed is held, `shoots_on_it` the number of shoots known to be on it, `backends` what a
    gardenlet's `backend.type` can name here (empty: not known).
    """

    managed_seed: Document
    shoot: HostShootState | None
    seed: Document | None = None
    deployed: GardenletDeployment | None = None
    is_running: bool = False
    shoots_on_it: int = 0
    backends: Collection[str] = ()


class NoAction(NamedTuple):
    """Do nothing."""


class CannotReconcile(NamedTuple):
    """Report an error; retry later."""

    problem: str


class DeployGardenlet(NamedTuple):
    """Deploy a gardenlet of this configuration into the shoot, over an existing one."""

    gardenlet: Document
    has_backup_secret: bool


class RegisterSeed(NamedTuple):
    """Apply the Seed."""

    seed: Document


class DeleteSeed(NamedTuple):
    """Delete the Seed."""


class DeleteGardenlet(NamedTuple):
    """Delete the gardenlet; secret and namespace stay."""


class DeleteBackupSecret(NamedTuple):
    """Delete the backup secret."""


class DeleteNamespace(NamedTuple):
    """Delete the namespace with everything left in it."""


ManagedSeedAction = (
    NoAction
    | CannotReconcile
    | DeployGardenlet
    | RegisterSeed
    | DeleteSeed
    | DeleteGardenlet
    | DeleteBackupSecret
    | DeleteNamespace
)


class DesiredCondition(NamedTuple):
    """Desired value of a condition."""

    kind: str
    status: str
    reason: str
    message: str


class ManagedSeedPlan(NamedTuple):
    """One pass: the action, the conditions to report, and the requeue delay (None: not before a change).

    `after` overrides `before` once the action has succeeded.
    """

    step: ManagedSeedAction
    requeue_after: timedelta | None
    before: tuple[DesiredCondition, ...] = ()
    after: tuple[DesiredCondition, ...] = ()


def plan_managed_seed(
    snapshot: ManagedSeedSnapshot, *, parent: Document, settings: ManagedSeedSettings, now: datetime
) -> ManagedSeedPlan:
    """Plan by the tables of the module. `parent` is the hosting gardenlet's configuration as written."""
    if snapshot.shoot is None or not snapshot.shoot.is_here:
        return ManagedSeedPlan(NoAction(), None)
    if section(snapshot.managed_seed, "metadata").get("deletionTimestamp"):
        return _deletion(snapshot, snapshot.shoot, parent=parent, settings=settings, now=now)
    name, shoot_name = _names(snapshot.managed_seed)
    if not snapshot.shoot.is_reconciled:
        reconciling = DesiredCondition(
            SHOOT_RECONCILED, FALSE, RECONCILING, f'Waiting for shoot "{shoot_name}" to be reconciled'
        )
        return ManagedSeedPlan(NoAction(), settings.wait_sync_period, before=(reconciling,))
    reconciled = DesiredCondition(SHOOT_RECONCILED, TRUE, RECONCILED, f'Shoot "{shoot_name}" has been reconciled')
    step = _wanted(snapshot, parent=parent, settings=settings, now=now)
    if isinstance(step, CannotReconcile):
        return ManagedSeedPlan(step, None, before=(reconciled,))
    registered = DesiredCondition(SEED_REGISTERED, TRUE, RECONCILED, f'Seed "{name}" has been registered')
    requeue_after = settings.sync_period if snapshot.seed is not None else settings.wait_sync_period
    if isinstance(step, NoAction):
        return ManagedSeedPlan(step, requeue_after, before=(reconciled, registered))
    before: tuple[DesiredCondition, ...] = (reconciled,)
    is_new = condition_status(conditions_of(snapshot.managed_seed), SEED_REGISTERED) != TRUE
    if is_new or _has_lost_its_seed(snapshot, settings, now):
        before = (reconciled, DesiredCondition(SEED_REGISTERED, FALSE, RECONCILING, f'Registering seed "{name}"'))
    if not is_held(snapshot.managed_seed):
        return ManagedSeedPlan(NoAction(), settings.wait_sync_period, before=before)
    return ManagedSeedPlan(step, settings.wait_sync_period, before=before, after=(registered,))


def is_held(managed_seed: Document) -> bool:
    """True once the finalizer is set with the first report; before, the ManagedSeed may vanish at once."""
    return FINALIZER in (section(managed_seed, "metadata").get("finalizers") or ())


def reconcile_error(problem: str) -> DesiredCondition:
    """Condition of an action that failed or is impossible."""
    return DesiredCondition(SEED_REGISTERED, FALSE, RECONCILE_ERROR, problem)


def status_patch(managed_seed: Document, findings: tuple[DesiredCondition, ...], now: datetime) -> Document:
    """Patch of the status fields that differ from `findings`; empty when none does."""
    generation = section(managed_seed, "metadata").get("generation") or 0
    patch: Document = {}
    if section(managed_seed, "status").get("observedGeneration") != generation:
        patch["observedGeneration"] = generation
    changed: list[Document] = []
    for found in findings:
        old = get_or_init(conditions_of(managed_seed), found.kind, timestamp(now))
        new, _ = build_condition(
            old, now=timestamp(now), status=found.status, reason=found.reason, message=found.message
        )
        if new != get_condition(conditions_of(managed_seed), found.kind):
            changed.append(new)
    return patch | ({"conditions": changed} if changed else {})


def enqueue_delay(managed_seed: Document, *, is_first: bool, settings: ManagedSeedSettings) -> timedelta | None:
    """Jitter window before a changed ManagedSeed is reconciled; None when the change needs no reconciliation.

    `is_first`: first change seen by this process. Echoes of own reports are skipped. Unlike in Gardener generation 1
    counts as new only until it has been observed: its parent's changes are spread like any other's.
    """
    metadata = section(managed_seed, "metadata")
    generation = metadata.get("generation") or 0
    is_observed = section(managed_seed, "status").get("observedGeneration") == generation
    if metadata.get("deletionTimestamp") or (generation == 1 and not is_observed):
        return AT_ONCE
    if is_observed and not is_first:
        return None
    return settings.sync_jitter_period if settings.jitter_updates else AT_ONCE


def is_reconciled(*, generation: int, status: Document) -> bool:
    """True if a shoot's specification is in effect: any succeeded operation counts, as in Gardener."""
    return (
        status.get("observedGeneration") == generation and section(status, "lastOperation").get("state") == "Succeeded"
    )


def _names(managed_seed: Document) -> tuple[str, str]:
    shoot = section(managed_seed, "spec", "shoot").get("name")
    return str(section(managed_seed, "metadata").get("name")), str(shoot or "")


def _wanted(
    snapshot: ManagedSeedSnapshot, *, parent: Document, settings: ManagedSeedSettings, now: datetime
) -> ManagedSeedAction:
    managed_seed, deployed = snapshot.managed_seed, snapshot.deployed
    name, shoot_name = _names(managed_seed)
    if deployed is not None and deployed.managed_seed != name:
        return CannotReconcile(
            f'A gardenlet for seed "{deployed.managed_seed}" is already deployed in shoot "{shoot_name}"'
        )
    seed = seed_of(managed_seed)
    if section(seed, "spec", "settings", "verticalPodAutoscaler").get("enabled") is True:
        return CannotReconcile(f'Seed VPA is enabled, but shoot "{shoot_name}" already has one')
    if not runs_gardenlet(managed_seed):
        return NoAction() if _is_registered(snapshot) else RegisterSeed(seed)
    configuration = managed_gardenlet_configuration(parent, managed_seed)
    try:
        parse_configurations(
            text_of(configuration),
            source="The configuration of the gardenlet",
            backends=snapshot.backends,
            is_lenient=True,
        )
    except SettingsInvalid as error:
        return CannotReconcile("; ".join(error.problems))
    generation, uid = section(managed_seed, "metadata").get("generation") or 0, _uid(managed_seed)
    is_as_wanted = deployed is not None and (deployed.gardenlet, deployed.generation, deployed.uid) == (
        configuration,
        generation,
        uid,
    )
    if not is_as_wanted or _has_lost_its_seed(snapshot, settings, now):
        return DeployGardenlet(configuration, has_backup_secret=bool(section(seed, "spec").get("backup")))
    return NoAction()


def _has_lost_its_seed(snapshot: ManagedSeedSnapshot, settings: ManagedSeedSettings, now: datetime) -> bool:
    """True if a deployed gardenlet has no Seed though it had time to register it: the Seed was deleted.

    A gardenlet does not register a Seed again that was deleted while it ran; one that is deployed anew does.
    """
    deployed = snapshot.deployed
    if snapshot.seed is not None or deployed is None or deployed.deployed_at is None:
        return False
    return now - deployed.deployed_at >= settings.wait_sync_period


def _is_registered(snapshot: ManagedSeedSnapshot) -> bool:
    """True if the Seed of a template was applied at the ManagedSeed's generation."""
    managed_seed = snapshot.managed_seed
    generation = section(managed_seed, "metadata").get("generation") or 0
    return (
        snapshot.seed is not None
        and section(managed_seed, "status").get("observedGeneration") == generation
        and condition_status(conditions_of(managed_seed), SEED_REGISTERED) == TRUE
    )


def _deletion(
    snapshot: ManagedSeedSnapshot,
    shoot: HostShootState,
    *,
    parent: Document,
    settings: ManagedSeedSettings,
    now: datetime,
) -> ManagedSeedPlan:
    name, shoot_name = _names(snapshot.managed_seed)

    def deleting(
        step: ManagedSeedAction, message: str, requeue_after: timedelta = settings.wait_sync_period
    ) -> ManagedSeedPlan:
        return ManagedSeedPlan(
            step, requeue_after, before=(DesiredCondition(SEED_REGISTERED, FALSE, DELETING, message),)
        )

    if snapshot.seed is not None:
        if not section(snapshot.seed, "metadata").get("deletionTimestamp"):
            if snapshot.shoots_on_it:
                return deleting(
                    NoAction(), f'Seed "{name}" cannot be deleted: {snapshot.shoots_on_it} shoot(s) are on it'
                )
            return deleting(DeleteSeed(), f'Deleting seed "{name}"; it goes when no shoot is on it any more')
        helper = _helper(snapshot, parent=parent, now=now) if shoot.is_reconciled else None
        return deleting(helper or NoAction(), f'Waiting for seed "{name}" to be gone')
    deployed = snapshot.deployed if snapshot.deployed is not None and snapshot.deployed.managed_seed == name else None
    if deployed is None:
        done = DesiredCondition(SEED_REGISTERED, FALSE, DELETED, f'Seed "{name}" has been unregistered')
        return ManagedSeedPlan(NoAction(), REPEAT_AFTER, before=(done,))
    if deployed.gardenlet is not None:
        return deleting(DeleteGardenlet(), f'Deleting the gardenlet in shoot "{shoot_name}"', AT_ONCE)
    if snapshot.is_running:
        return deleting(NoAction(), f'Waiting for the gardenlet in shoot "{shoot_name}" to be gone')
    if deployed.has_backup_secret:
        return deleting(DeleteBackupSecret(), "Deleting the backup secret", AT_ONCE)
    return deleting(DeleteNamespace(), f'Deleting the garden namespace in shoot "{shoot_name}"', AT_ONCE)


def _helper(snapshot: ManagedSeedSnapshot, *, parent: Document, now: datetime) -> DeployGardenlet | None:
    """Deployment of a gardenlet to release a deleting Seed that has none, or whose gardenlet does not come in.

    Its certificate may have ended, or have been revoked: one that is deployed anew gets another.
    """
    if not runs_gardenlet(snapshot.managed_seed):
        return None
    name, deployed = _names(snapshot.managed_seed)[0], snapshot.deployed
    if deployed is not None and deployed.managed_seed != name:
        return None
    if deployed is not None and deployed.gardenlet is not None:
        deployed_at = deployed.deployed_at
        if snapshot.is_running or (deployed_at is not None and now - deployed_at < HELPER_AFTER):
            return None
    has_backup_secret = bool(section(seed_of(snapshot.managed_seed), "spec").get("backup"))
    return DeployGardenlet(managed_gardenlet_configuration(parent, snapshot.managed_seed), has_backup_secret)


def _uid(managed_seed: Document) -> str:
    return str(section(managed_seed, "metadata").get("uid") or "")
