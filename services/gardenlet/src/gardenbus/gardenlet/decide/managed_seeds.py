"""What is to be done now for a shoot that shall be a seed: one step a pass. The first row that applies.

While the ManagedSeed is there:

    | situation                                      | step               | ShootReconciled   | SeedRegistered        |
    |------------------------------------------------|--------------------|-------------------|-----------------------|
    | its shoot is not told of, or another seed's    | wait               |                   |                       |
    | its shoot is not reconciled                    | wait               | False Reconciling |                       |
    | another seed's gardenlet is in the shoot       | refuse             | True Reconciled   | False ReconcileError  |
    | its configuration is wrong                     | refuse             | True Reconciled   | False ReconcileError  |
    | nothing holds it yet (the finalizer)           | wait               | True Reconciled   | False Reconciling     |
    | no gardenlet, or of another configuration      | deploy             | True Reconciled   | False Reconciling     |
    | its Seed is gone, or has not come for long     | deploy once more   | True Reconciled   | False Reconciling     |
    | a template, and its Seed is not as it says     | register           | True Reconciled   | False Reconciling     |
    | all is as it should be                         | wait               | True Reconciled   | True Reconciled       |

While it is being deleted (SeedRegistered False, `Deleting`):

    | situation                                      | step                                                           |
    |------------------------------------------------|----------------------------------------------------------------|
    | its shoot is not told of, or another seed's    | wait                                                           |
    | the Seed is there, with shoots on it           | wait: they must go first                                       |
    | the Seed is there                              | delete it                                                      |
    | the Seed is going, but no gardenlet is able to | deploy: only that can let it go                                |
    | the Seed is going                              | wait                                                           |
    | the gardenlet is deployed                      | take it down                                                   |
    | it still holds its Lease                       | wait                                                           |
    | the backup's secret is there                   | remove it                                                      |
    | the namespace is there                         | remove it                                                      |
    | nothing is left                                | say so: SeedRegistered False `Deleted` lets the ManagedSeed go |

Source: Gardener's `gardenlet/controller/managedseed/{reconciler,actuator}.go`.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.conditions import (
    FALSE,
    TRUE,
    build_condition,
    condition_status,
    conditions_of,
    get_condition,
    get_or_init,
)
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.managed_seeds import runs_gardenlet, seed_of
from gardenbus.common.resources.seed_management import SEED_REGISTERED, SHOOT_RECONCILED
from gardenbus.gardenlet.decide.child import Deployed, child_configuration, text_of
from gardenbus.gardenlet.decide.configuration import ManagedSeedSettings, parse_configurations
from gardenbus.gardenlet.decide.operations import FINALIZER

RECONCILING, RECONCILED, RECONCILE_ERROR = "Reconciling", "Reconciled", "ReconcileError"
DELETING, DELETED = "Deleting", "Deleted"

AT_ONCE = timedelta(0)
REPEAT_AFTER = timedelta(seconds=30)
"""When to look whether a report has had its effect."""


class ShootSeen(NamedTuple):
    """The shoot of a ManagedSeed: whether this seed runs it, and whether all of its specification is in effect."""

    is_here: bool
    is_reconciled: bool


class Seen(NamedTuple):
    """All that a pass is decided on.

    `seed` is the Seed as it was announced last (None: there is none), `deployed` what stands in the shoot,
    `is_running` whether somebody holds the Lease of the seed, `shoots_on_it` what is known to be on it.
    """

    managed_seed: Document
    shoot: ShootSeen | None
    seed: Document | None = None
    deployed: Deployed | None = None
    is_running: bool = False
    shoots_on_it: int = 0


class Stay(NamedTuple):
    """Do nothing."""


class Refuse(NamedTuple):
    """It cannot be done as asked for; try again later."""

    problem: str


class Deploy(NamedTuple):
    """Put a gardenlet of this configuration into the shoot, whatever is there of it."""

    gardenlet: Document
    has_backup_secret: bool


class Register(NamedTuple):
    """Apply the Seed."""

    seed: Document


class DeleteSeed(NamedTuple):
    """Have the Seed deleted."""


class TakeDownGardenlet(NamedTuple):
    """Take the gardenlet away; what it was given stays."""


class RemoveBackupSecret(NamedTuple):
    """Remove the secret of the backup."""


class RemoveNamespace(NamedTuple):
    """Remove the namespace, and with it all that is left."""


Step = Stay | Refuse | Deploy | Register | DeleteSeed | TakeDownGardenlet | RemoveBackupSecret | RemoveNamespace


class Finding(NamedTuple):
    """What a condition shall be."""

    kind: str
    status: str
    reason: str
    message: str


class Pass(NamedTuple):
    """One pass: the step, what to report, and when to look again (None: when something is told).

    `after` is reported instead of what it names in `before` once the step has succeeded.
    """

    step: Step
    again: timedelta | None
    before: tuple[Finding, ...] = ()
    after: tuple[Finding, ...] = ()


def next_pass(seen: Seen, *, parent: Document, settings: ManagedSeedSettings, now: datetime) -> Pass:
    """Decide by the tables of the module. `parent` is the hosting gardenlet's configuration as written."""
    if seen.shoot is None or not seen.shoot.is_here:
        return Pass(Stay(), None)
    if section(seen.managed_seed, "metadata").get("deletionTimestamp"):
        return _deletion(seen, seen.shoot, parent=parent, settings=settings, now=now)
    name, shoot_name = _names(seen.managed_seed)
    if not seen.shoot.is_reconciled:
        waiting = Finding(SHOOT_RECONCILED, FALSE, RECONCILING, f'Waiting for shoot "{shoot_name}" to be reconciled')
        return Pass(Stay(), settings.wait_sync_period, before=(waiting,))
    reconciled = Finding(SHOOT_RECONCILED, TRUE, RECONCILED, f'Shoot "{shoot_name}" has been reconciled')
    step = _wanted(seen, parent=parent, settings=settings, now=now)
    if isinstance(step, Refuse):
        return Pass(step, None, before=(reconciled,))
    registered = Finding(SEED_REGISTERED, TRUE, RECONCILED, f'Seed "{name}" has been registered')
    again = settings.sync_period if seen.seed is not None else settings.wait_sync_period
    if isinstance(step, Stay):
        return Pass(step, again, before=(reconciled, registered))
    before: tuple[Finding, ...] = (reconciled,)
    is_new = condition_status(conditions_of(seen.managed_seed), SEED_REGISTERED) != TRUE
    if is_new or _has_lost_its_seed(seen, settings, now):
        before = (reconciled, Finding(SEED_REGISTERED, FALSE, RECONCILING, f'Registering seed "{name}"'))
    if not is_held(seen.managed_seed):
        return Pass(Stay(), settings.wait_sync_period, before=before)
    return Pass(step, settings.wait_sync_period, before=before, after=(registered,))


def is_held(managed_seed: Document) -> bool:
    """Whether the finalizer is there that comes with the first report; before, it could go without a word."""
    return FINALIZER in (section(managed_seed, "metadata").get("finalizers") or ())


def refused(problem: str) -> Finding:
    """What is said of a step that failed or cannot be done."""
    return Finding(SEED_REGISTERED, FALSE, RECONCILE_ERROR, problem)


def status_patch(managed_seed: Document, findings: tuple[Finding, ...], now: datetime) -> Document:
    """What of the status is not as found, as a patch; empty when all is."""
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


def delay_of_news(managed_seed: Document, *, is_first: bool, settings: ManagedSeedSettings) -> timedelta | None:
    """Within which time to look at a ManagedSeed that was just told of; None: not for this.

    `is_first`: nothing was told of it before in this life. Echoes of one's own reports are passed over. Unlike in
    Gardener one that was never changed counts as new only until it has been observed: what its parent's configuration
    changes is spread like any other's.
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
    """Whether all of a shoot's specification is in effect: any operation counts, as in Gardener."""
    return (
        status.get("observedGeneration") == generation and section(status, "lastOperation").get("state") == "Succeeded"
    )


def _names(managed_seed: Document) -> tuple[str, str]:
    shoot = section(managed_seed, "spec", "shoot").get("name")
    return str(section(managed_seed, "metadata").get("name")), str(shoot or "")


def _wanted(seen: Seen, *, parent: Document, settings: ManagedSeedSettings, now: datetime) -> Step:
    managed_seed, deployed = seen.managed_seed, seen.deployed
    name, shoot_name = _names(managed_seed)
    if deployed is not None and deployed.managed_seed != name:
        return Refuse(f'A gardenlet for seed "{deployed.managed_seed}" is already deployed in shoot "{shoot_name}"')
    seed = seed_of(managed_seed)
    if section(seed, "spec", "settings", "verticalPodAutoscaler").get("enabled") is True:
        return Refuse(f'Seed VPA is enabled, but shoot "{shoot_name}" already has one')
    if not runs_gardenlet(managed_seed):
        return Stay() if _is_registered(seen) else Register(seed)
    configuration = child_configuration(parent, managed_seed)
    try:
        parse_configurations(text_of(configuration), source="The configuration of the gardenlet")
    except SettingsInvalid as error:
        return Refuse("; ".join(error.problems))
    generation, uid = section(managed_seed, "metadata").get("generation") or 0, _uid(managed_seed)
    is_as_wanted = deployed is not None and (deployed.gardenlet, deployed.generation, deployed.uid) == (
        configuration,
        generation,
        uid,
    )
    if not is_as_wanted or _has_lost_its_seed(seen, settings, now):
        return Deploy(configuration, has_backup_secret=bool(section(seed, "spec").get("backup")))
    return Stay()


def _has_lost_its_seed(seen: Seen, settings: ManagedSeedSettings, now: datetime) -> bool:
    """Whether a deployed gardenlet has no Seed though it had time to register it: somebody deleted that.

    A gardenlet raises no Seed again that was removed while it lived; one that is deployed anew does.
    """
    deployed = seen.deployed
    if seen.seed is not None or deployed is None or deployed.deployed_at is None:
        return False
    return now - deployed.deployed_at >= settings.wait_sync_period


def _is_registered(seen: Seen) -> bool:
    """Whether the Seed of a template was applied as the ManagedSeed says by now."""
    managed_seed = seen.managed_seed
    generation = section(managed_seed, "metadata").get("generation") or 0
    return (
        seen.seed is not None
        and section(managed_seed, "status").get("observedGeneration") == generation
        and condition_status(conditions_of(managed_seed), SEED_REGISTERED) == TRUE
    )


def _deletion(seen: Seen, shoot: ShootSeen, *, parent: Document, settings: ManagedSeedSettings, now: datetime) -> Pass:
    name, shoot_name = _names(seen.managed_seed)

    def deleting(step: Step, message: str, again: timedelta = settings.wait_sync_period) -> Pass:
        return Pass(step, again, before=(Finding(SEED_REGISTERED, FALSE, DELETING, message),))

    if seen.seed is not None:
        if not section(seen.seed, "metadata").get("deletionTimestamp"):
            if seen.shoots_on_it:
                return deleting(Stay(), f'Seed "{name}" cannot be deleted: {seen.shoots_on_it} shoot(s) are on it')
            return deleting(DeleteSeed(), f'Deleting seed "{name}"; it goes when no shoot is on it any more')
        helper = _helper(seen, parent=parent, now=now) if shoot.is_reconciled else None
        return deleting(helper or Stay(), f'Waiting for seed "{name}" to be gone')
    deployed = seen.deployed if seen.deployed is not None and seen.deployed.managed_seed == name else None
    if deployed is None:
        done = Finding(SEED_REGISTERED, FALSE, DELETED, f'Seed "{name}" has been unregistered')
        return Pass(Stay(), REPEAT_AFTER, before=(done,))
    if deployed.gardenlet is not None:
        return deleting(TakeDownGardenlet(), f'Deleting the gardenlet in shoot "{shoot_name}"', AT_ONCE)
    if seen.is_running:
        return deleting(Stay(), f'Waiting for the gardenlet in shoot "{shoot_name}" to be gone')
    if deployed.has_backup_secret:
        return deleting(RemoveBackupSecret(), "Deleting the backup secret", AT_ONCE)
    return deleting(RemoveNamespace(), f'Deleting the garden namespace in shoot "{shoot_name}"', AT_ONCE)


def _helper(seen: Seen, *, parent: Document, now: datetime) -> Deploy | None:
    """The gardenlet without which a deleting Seed would stay for ever: none is there, or its certificate has ended."""
    if not runs_gardenlet(seen.managed_seed):
        return None
    name, deployed = _names(seen.managed_seed)[0], seen.deployed
    if deployed is not None and deployed.managed_seed != name:
        return None
    if deployed is not None and deployed.gardenlet is not None:
        expires_at, bootstrapped_at = expiry_of(seen.seed or {}), deployed.bootstrapped_at
        if expires_at is None or bootstrapped_at is None or not bootstrapped_at < expires_at < now:
            return None
    has_backup_secret = bool(section(seed_of(seen.managed_seed), "spec").get("backup"))
    return Deploy(child_configuration(parent, seen.managed_seed), has_backup_secret)


def expiry_of(seed: Document) -> datetime | None:
    """When the client certificate of a Seed's gardenlet ends, as reported."""
    written = section(seed, "status").get("clientCertificateExpirationTimestamp")
    try:
        return datetime.fromisoformat(written) if isinstance(written, str) else None
    except ValueError:
        return None


def _uid(managed_seed: Document) -> str:
    return str(section(managed_seed, "metadata").get("uid") or "")
