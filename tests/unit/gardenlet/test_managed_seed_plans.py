"""What is done for a ManagedSeed, pass by pass: the tables of `domain.managed_seeds`."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from gardenbus.common.api.configuration.gardenlet import ManagedSeedSettings
from gardenbus.common.api.document import Document
from gardenbus.gardenlet.domain.deployments import GardenletDeployment, managed_gardenlet_configuration
from gardenbus.gardenlet.domain.managed_seeds import (
    HELPER_AFTER,
    CannotReconcile,
    DeleteBackupSecret,
    DeleteGardenlet,
    DeleteNamespace,
    DeleteSeed,
    DeployGardenlet,
    HostShootState,
    ManagedSeedPlan,
    ManagedSeedSnapshot,
    NoAction,
    RegisterSeed,
    enqueue_delay,
    is_reconciled,
    plan_managed_seed,
    reconcile_error,
    status_patch,
)
from tests.support.builders import a_condition, a_seed, merged
from tests.support.gardenlets import a_configuration

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SETTINGS = ManagedSeedSettings()
PARENT = a_configuration("host-seed")
HERE = HostShootState(is_here=True, is_reconciled=True)
DELETING: Document = {"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}}


def a_managed_seed(**changes: Any) -> Document:
    """A ManagedSeed `grown` of the shoot `field`, with the configuration of a gardenlet."""
    spec = a_seed()["spec"]
    default: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"namespace": "garden", "name": "grown", "uid": "u1", "generation": 1, "finalizers": ["gardener"]},
        "spec": {"shoot": {"name": "field"}, "gardenlet": {"config": {"seedConfig": {"spec": spec}}}},
    }
    return merged(default, changes)


def a_template(**changes: Any) -> Document:
    return a_managed_seed(**merged({"spec": {"gardenlet": None, "seedTemplate": {"spec": a_seed()["spec"]}}}, changes))


def a_deployment(**changes: Any) -> GardenletDeployment:
    configuration = managed_gardenlet_configuration(PARENT, a_managed_seed())
    deployed = GardenletDeployment(
        namespace="garden",
        shoot="field",
        managed_seed="grown",
        uid="u1",
        generation=1,
        bootstrapped_at=NOW,
        gardenlet=configuration,
    )
    return msgspec.structs.replace(deployed, **changes)


def passed(snapshot: ManagedSeedSnapshot, *, parent: Document = PARENT, now: datetime = NOW) -> ManagedSeedPlan:
    return plan_managed_seed(snapshot, parent=parent, settings=SETTINGS, now=now)


def found(decided: ManagedSeedPlan) -> dict[str, tuple[str, str]]:
    return {each.kind: (each.status, each.reason) for each in (*decided.before, *decided.after)}


@pytest.mark.parametrize("changes", [{}, DELETING])
@pytest.mark.parametrize("shoot", [None, HostShootState(is_here=False, is_reconciled=True)])
def test_a_shoot_that_another_seed_runs_is_left_to_it(shoot: HostShootState | None, changes: Document) -> None:
    decided = passed(ManagedSeedSnapshot(a_managed_seed(**changes), shoot, a_seed("grown")))

    assert decided == ManagedSeedPlan(NoAction(), None)


def test_a_shoot_that_is_not_reconciled_is_waited_for() -> None:
    decided = passed(ManagedSeedSnapshot(a_managed_seed(), HostShootState(is_here=True, is_reconciled=False)))

    assert (decided.step, decided.requeue_after) == (NoAction(), timedelta(seconds=15))
    assert found(decided) == {"ShootReconciled": ("False", "Reconciling")}


def test_a_gardenlet_is_deployed_into_a_reconciled_shoot() -> None:
    decided = passed(ManagedSeedSnapshot(a_managed_seed(), HERE))

    assert isinstance(decided.step, DeployGardenlet)
    assert decided.step.gardenlet["seedConfig"]["metadata"]["name"] == "grown"
    assert [(each.kind, each.status) for each in decided.before] == [
        ("ShootReconciled", "True"),
        ("SeedRegistered", "False"),
    ]
    assert decided.after[0][1:] == ("True", "Reconciled", 'Seed "grown" has been registered')


@pytest.mark.parametrize("of", [a_managed_seed, a_template])
def test_nothing_is_begun_for_a_managed_seed_that_nothing_holds_yet(of: Callable[..., Document]) -> None:
    decided = passed(ManagedSeedSnapshot(of(metadata={"finalizers": None}), HERE))

    assert (decided.step, decided.after) == (NoAction(), ())
    assert found(decided)["SeedRegistered"] == ("False", "Reconciling")


def test_what_is_deployed_is_left_alone() -> None:
    snapshot = ManagedSeedSnapshot(a_managed_seed(), HERE, a_seed("grown"), a_deployment())

    decided = passed(snapshot)

    assert (decided.step, decided.requeue_after) == (NoAction(), timedelta(hours=1))
    assert found(decided) == {"ShootReconciled": ("True", "Reconciled"), "SeedRegistered": ("True", "Reconciled")}
    assert passed(snapshot._replace(seed=None)).requeue_after == timedelta(seconds=15)


@pytest.mark.parametrize(
    ("managed_seed", "parent"),
    [
        (a_managed_seed(metadata={"generation": 2}), PARENT),
        (a_managed_seed(metadata={"uid": "u2"}), PARENT),
        (a_managed_seed(), merged(PARENT, {"controllers": {"seedCare": {"syncPeriod": "5s"}}})),
    ],
    ids=["a new generation, as after operation=reconcile", "another ManagedSeed of the name", "the parent's change"],
)
def test_what_is_deployed_follows_every_change(managed_seed: Document, parent: Document) -> None:
    snapshot = ManagedSeedSnapshot(managed_seed, HERE, a_seed("grown"), a_deployment())

    assert isinstance(passed(snapshot, parent=parent).step, DeployGardenlet)


def test_a_seed_that_is_registered_stays_so_while_its_gardenlet_is_deployed_anew() -> None:
    condition = {"type": "SeedRegistered", "status": "True"}
    managed_seed = a_managed_seed(metadata={"generation": 2}, status={"conditions": [condition]})

    decided = passed(ManagedSeedSnapshot(managed_seed, HERE, a_seed("grown"), a_deployment()))

    assert [each.kind for each in decided.before] == ["ShootReconciled"]


def test_a_gardenlet_whose_seed_somebody_deleted_is_deployed_once_more_to_register_it() -> None:
    registered = {"conditions": [a_condition("SeedRegistered", reason="Reconciled")]}
    managed_seed, deployed = a_managed_seed(status=registered), a_deployment(deployed_at=NOW)

    decided = passed(ManagedSeedSnapshot(managed_seed, HERE, None, deployed), now=NOW + timedelta(seconds=14))
    assert (decided.step, decided.requeue_after) == (NoAction(), timedelta(seconds=15))
    decided = passed(ManagedSeedSnapshot(managed_seed, HERE, None, deployed), now=NOW + timedelta(seconds=15))
    assert isinstance(decided.step, DeployGardenlet)
    assert decided.before[1][1:] == ("False", "Reconciling", 'Registering seed "grown"')
    assert decided.after[0].status == "True"
    decided = passed(ManagedSeedSnapshot(managed_seed, HERE, a_seed("grown"), deployed), now=NOW + timedelta(days=1))
    assert decided.step == NoAction()


def test_a_shoot_with_the_gardenlet_of_another_seed_is_rejected() -> None:
    step = passed(ManagedSeedSnapshot(a_managed_seed(), HERE, None, a_deployment(managed_seed="other"))).step

    assert step == CannotReconcile('A gardenlet for seed "other" is already deployed in shoot "field"')


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"controllers": {"seed": {"leaseResyncSeconds": -1}}}, "leaseResyncSeconds"),
        ({"seedConfig": {"spec": {"settings": {"verticalPodAutoscaler": {"enabled": True}}}}}, "VPA"),
        ({"resources": {"reserved": {"shoots": 251}}}, "reserved"),
    ],
)
def test_what_cannot_be_deployed_is_rejected_with_its_reason(changes: Document, problem: str) -> None:
    decided = passed(ManagedSeedSnapshot(a_managed_seed(spec={"gardenlet": {"config": changes}}), HERE))

    assert isinstance(decided.step, CannotReconcile)
    assert problem in decided.step.problem
    assert reconcile_error(decided.step.problem)[:3] == ("SeedRegistered", "False", "ReconcileError")


def test_the_seed_of_a_template_is_registered_until_it_is_there_as_requested() -> None:
    condition = {"type": "SeedRegistered", "status": "True"}
    done: Document = {"status": {"observedGeneration": 1, "conditions": [condition]}}

    step = passed(ManagedSeedSnapshot(a_template(), HERE)).step

    assert isinstance(step, RegisterSeed)
    assert step.seed["metadata"]["name"] == "grown"
    assert isinstance(passed(ManagedSeedSnapshot(a_template(**done), HERE)).step, RegisterSeed)
    assert passed(ManagedSeedSnapshot(a_template(**done), HERE, a_seed("grown"))).step == NoAction()
    newer = merged(done, {"metadata": {"generation": 2}})
    assert isinstance(passed(ManagedSeedSnapshot(a_template(**newer), HERE, a_seed("grown"))).step, RegisterSeed)


# ---------------------------------------------------------------------------------------------- deletion


def test_deletion_goes_step_by_step_with_the_seed_first() -> None:
    managed_seed = a_managed_seed(**DELETING)
    going = a_seed("grown", **DELETING)
    deployed = a_deployment(has_backup_secret=True)
    down = msgspec.structs.replace(deployed, gardenlet=None)

    steps = [
        passed(ManagedSeedSnapshot(managed_seed, HERE, seed, deployed_gardenlet, is_running)).step
        for seed, deployed_gardenlet, is_running in (
            (a_seed("grown"), deployed, True),
            (going, deployed, True),
            (None, deployed, True),
            (None, down, True),
            (None, down, False),
            (None, msgspec.structs.replace(down, has_backup_secret=False), False),
            (None, None, False),
        )
    ]

    assert steps == [
        DeleteSeed(),
        NoAction(),
        DeleteGardenlet(),
        NoAction(),
        DeleteBackupSecret(),
        DeleteNamespace(),
        NoAction(),
    ]


def test_the_last_pass_of_a_deletion_reports_that_nothing_is_left() -> None:
    last = passed(ManagedSeedSnapshot(a_managed_seed(**DELETING), HERE))
    before = passed(ManagedSeedSnapshot(a_managed_seed(**DELETING), HERE, None, a_deployment()))

    assert found(last) == {"SeedRegistered": ("False", "Deleted")}
    assert found(before) == {"SeedRegistered": ("False", "Deleting")}


def test_a_seed_with_shoots_on_it_is_not_deleted() -> None:
    decided = passed(
        ManagedSeedSnapshot(a_managed_seed(**DELETING), HERE, a_seed("grown"), a_deployment(), shoots_on_it=3)
    )

    assert decided.step == NoAction()
    assert "3 shoot(s)" in decided.before[0].message
    assert decided.requeue_after == timedelta(seconds=15)


def test_a_going_seed_gets_the_gardenlet_back_that_alone_can_let_it_go() -> None:
    snapshot = ManagedSeedSnapshot(a_managed_seed(**DELETING), HERE, a_seed("grown", **DELETING))

    assert isinstance(passed(snapshot).step, DeployGardenlet)
    assert isinstance(passed(snapshot._replace(deployed=a_deployment(gardenlet=None))).step, DeployGardenlet)
    assert passed(snapshot._replace(shoot=HostShootState(is_here=True, is_reconciled=False))).step == NoAction()
    assert passed(snapshot._replace(managed_seed=a_template(**DELETING))).step == NoAction()


def test_a_going_seed_whose_gardenlet_does_not_come_in_gets_it_deployed_anew_once_it_had_time() -> None:
    snapshot = ManagedSeedSnapshot(
        a_managed_seed(**DELETING), HERE, a_seed("grown", **DELETING), a_deployment(deployed_at=NOW)
    )
    later = NOW + HELPER_AFTER

    assert passed(snapshot).step == NoAction()
    assert isinstance(passed(snapshot, now=later).step, DeployGardenlet)
    assert passed(snapshot._replace(is_running=True), now=later).step == NoAction()
    assert passed(snapshot._replace(deployed=a_deployment(deployed_at=later)), now=later).step == NoAction()


# ---------------------------------------------------------------------------------------------- when, and what is said


@pytest.mark.parametrize(
    ("changes", "is_first", "jittered", "within"),
    [
        ({}, True, True, 0),
        ({"status": {"observedGeneration": 1}}, True, True, 300),
        ({"status": {"observedGeneration": 1}}, False, False, None),
        (merged(DELETING, {"metadata": {"generation": 3}}), False, True, 0),
        ({"metadata": {"generation": 2}}, False, False, 0),
        ({"metadata": {"generation": 2}}, False, True, 300),
        ({"metadata": {"generation": 2}, "status": {"observedGeneration": 2}}, True, True, 300),
        ({"metadata": {"generation": 2}, "status": {"observedGeneration": 2}}, True, False, 0),
        ({"metadata": {"generation": 2}, "status": {"observedGeneration": 2}}, False, True, None),
    ],
)
def test_changes_are_enqueued_in_time(changes: Document, is_first: bool, jittered: bool, within: int | None) -> None:
    settings = ManagedSeedSettings(jitter_updates=jittered)
    delay = enqueue_delay(a_managed_seed(**changes), is_first=is_first, settings=settings)

    assert delay == (None if within is None else timedelta(seconds=within))


def test_only_what_is_new_is_reported() -> None:
    findings = passed(ManagedSeedSnapshot(a_managed_seed(), HERE, a_seed("grown"), a_deployment())).before
    patch = status_patch(a_managed_seed(), findings, NOW)

    assert patch["observedGeneration"] == 1
    assert [each["type"] for each in patch["conditions"]] == ["ShootReconciled", "SeedRegistered"]
    assert status_patch(a_managed_seed(status=patch), findings, NOW + timedelta(hours=1)) == {}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"observedGeneration": 2, "lastOperation": {"type": "Create", "state": "Succeeded"}}, True),
        ({"observedGeneration": 2, "lastOperation": {"type": "Restore", "state": "Succeeded"}}, True),
        ({"observedGeneration": 1, "lastOperation": {"type": "Create", "state": "Succeeded"}}, False),
        ({"observedGeneration": 2, "lastOperation": {"type": "Reconcile", "state": "Processing"}}, False),
        ({}, False),
    ],
)
def test_a_shoot_is_reconciled_when_its_last_operation_succeeded_at_its_generation(
    status: Document, expected: bool
) -> None:
    assert is_reconciled(generation=2, status=status) is expected
