"""Scale-out: one replica after the other, each until its seed is ready."""

import pytest

from gardenbus.common.api.document import section
from gardenbus.common.api.garden.seed_management import REVISION_LABEL
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import Done, RequeueAfter
from gardenbus.managedseedset.domain.actuator import ActuatorSettings
from tests.support.builders import a_shoot, merged
from tests.support.seed_sets import SET, SeedGarden, a_managed_seed_set


@pytest.fixture
def garden() -> SeedGarden:
    return SeedGarden()


def shoot_key(name: str) -> ObjectKey:
    return ObjectKey("shoot", "garden", name)


def managed_seed_key(name: str) -> ObjectKey:
    return ObjectKey("managedseed", "garden", name)


def grown(garden: SeedGarden, replicas: int) -> None:
    garden.applied(a_managed_seed_set(replicas=replicas))
    garden.run_until_stable()


def test_a_replica_grows_step_by_step(garden: SeedGarden):
    garden.applied(a_managed_seed_set())

    garden.reconcile_once()
    assert garden.shoots() == ["crowd-0"]
    assert garden.pending == {"name": "crowd-0", "reason": "ShootReconciling"}
    assert garden.managed_seeds() == []

    garden.reconcile_shoot("crowd-0")
    garden.reconcile_once()
    assert garden.managed_seeds() == ["crowd-0"]
    assert garden.pending == {"name": "crowd-0", "reason": "ManagedSeedPreparing"}

    garden.register("crowd-0")
    garden.reconcile_once()
    assert garden.pending == {"name": "crowd-0", "reason": "SeedNotReady"}

    garden.report_seed("crowd-0")
    garden.reconcile_once()
    assert garden.pending == {}
    assert [*dict.fromkeys(garden.reasons())] == [
        "CreatingShoot",
        "CreatingManagedSeed",
        "WaitingForSeedReady",
    ]


def test_the_status_counts(garden: SeedGarden):
    grown(garden, 2)

    status = garden.status
    counted = {name: status[name] for name in ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas")}
    assert counted == dict.fromkeys(counted, 2)
    assert status["nextReplicaNumber"] == 2
    assert status["observedGeneration"] == section(garden.set(), "metadata")["generation"]
    assert status["currentRevision"] == status["updateRevision"]
    assert garden.set()["metadata"]["finalizers"] == ["gardener"]


def test_a_replica_is_owned_named_and_labelled(garden: SeedGarden):
    grown(garden, 1)

    revision = garden.status["updateRevision"].removeprefix("crowd-")
    for key in (shoot_key("crowd-0"), managed_seed_key("crowd-0")):
        metadata = garden.now(key)["metadata"]
        (owner,) = metadata["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("ManagedSeedSet", "crowd", True)
        assert metadata["labels"]["set"] == "crowd"
        assert metadata["labels"][REVISION_LABEL] == revision
    assert garden.now(shoot_key("crowd-0"))["spec"]["dns"]["domain"] == "crowd-0.seeds.example.com"


def test_the_next_replica_waits_until_the_one_before_is_ready(garden: SeedGarden):
    garden.applied(a_managed_seed_set(replicas=3))

    for done in range(3):
        assert len(garden.shoots()) == done
        garden.reconcile_once()
        name = f"crowd-{done}"
        garden.reconcile_shoot(name)
        garden.reconcile_once()
        garden.register(name)
        garden.reconcile_once()
        assert len(garden.shoots()) == done + 1
        garden.report_seed(name)

    garden.reconcile_once()
    assert garden.shoots() == ["crowd-0", "crowd-1", "crowd-2"]
    assert garden.status["readyReplicas"] == 3


def test_a_seed_that_fell_silent_does_not_keep_the_set_from_growing(garden: SeedGarden):
    grown(garden, 1)
    garden.report_seed("crowd-0", ready=False)
    garden.reconcile_once()
    assert garden.pending == {"name": "crowd-0", "reason": "SeedNotReady"}

    garden.patched(SET, {"spec": {"replicas": 2}})
    garden.reconcile_once()

    assert garden.shoots() == ["crowd-0", "crowd-1"]


def test_ordinals_are_never_used_again(garden: SeedGarden):
    grown(garden, 3)
    garden.patched(SET, {"spec": {"replicas": 1}})
    garden.run_until_stable()
    assert garden.shoots() == ["crowd-2"], "the lower ordinal goes first"

    garden.patched(SET, {"spec": {"replicas": 2}})
    garden.run_until_stable()

    assert garden.shoots() == ["crowd-2", "crowd-3"]
    assert garden.status["nextReplicaNumber"] == 4


def test_names_that_somebody_else_has_are_passed_over(garden: SeedGarden):
    stranger = merged(
        a_shoot("crowd-0", "garden"), {"spec": {"tolerations": [{"key": "seed.gardener.cloud/protected"}]}}
    )
    garden.applied(stranger)
    uid = garden.now(shoot_key("crowd-0"))["metadata"]["uid"]

    garden.applied(a_managed_seed_set())
    garden.reconcile_once()

    assert garden.shoots() == ["crowd-0", "crowd-1"]
    assert garden.now(shoot_key("crowd-0"))["metadata"]["uid"] == uid
    assert "ownerReferences" not in garden.now(shoot_key("crowd-0"))["metadata"]


def test_a_replica_that_was_announced_and_not_made_is_waited_for_then_its_ordinal_is_given_up(garden: SeedGarden):
    garden.applied(a_managed_seed_set())
    stepped = garden.stepped()
    while not garden.status:
        stepped.step()
    stepped.kill()
    assert garden.shoots() == []
    assert garden.pending["name"] == "crowd-0"

    assert garden.reconcile_once() == RequeueAfter(5.0)
    assert garden.shoots() == []
    garden.clock.advance(6)
    garden.reconcile_once()

    assert garden.shoots() == ["crowd-1"]


@pytest.mark.parametrize("steps", range(1, 12))
def test_a_set_that_is_scaled_while_its_first_replica_is_ordered_loses_neither_time_nor_ordinal(steps: int):
    garden = SeedGarden()
    garden.applied(a_managed_seed_set())
    stepped = garden.stepped()
    while not garden.status:
        stepped.step()
    garden.patched(SET, {"spec": {"replicas": 2}})  # as an autoscaler that has just found it
    stepped.step(steps)
    other = garden.stepped()
    other.step(steps)
    stepped.step(100)
    other.step(100)
    assert stepped.finished

    garden.reconcile_once()

    assert garden.shoots() == ["crowd-0"]


def test_a_late_hand_makes_nothing_that_was_given_up(garden: SeedGarden):
    garden.applied(a_managed_seed_set())
    stepped = garden.stepped()
    while not garden.status:
        stepped.step()
    garden.clock.advance(6)
    garden.reconcile_once()

    stepped.step(100)

    assert stepped.finished
    assert garden.shoots() == ["crowd-1"]


@pytest.mark.parametrize("head_start", range(25))
def test_wherever_a_late_hand_comes_in_there_is_one_replica_in_the_making(head_start: int):
    garden = SeedGarden()
    garden.applied(a_managed_seed_set(replicas=2))
    late = garden.stepped()
    while not garden.status:
        late.step()
    garden.clock.advance(6)
    other = garden.stepped()
    other.step(head_start)

    late.step(100)
    other.step(100)

    assert len(garden.shoots()) == 1
    garden.reconcile_once()
    assert len(garden.shoots()) == 1


def test_two_hands_on_one_set_make_one_replica(garden: SeedGarden):
    garden.applied(a_managed_seed_set(replicas=2))
    one, other = garden.stepped(), garden.stepped()
    for _ in range(60):
        one.step()
        other.step()

    garden.reconcile_once()

    assert garden.shoots() == ["crowd-0"]


def test_a_replica_that_admission_refuses_is_tried_again_under_the_same_ordinal(garden: SeedGarden):
    garden.applied(a_managed_seed_set())
    garden.garden.rejects = lambda document: "no such thing" if document["kind"] == "Shoot" else ""
    for _ in range(3):
        with pytest.raises(Exception, match="no such thing"):
            garden.reconcile_once()
        garden.clock.advance(60)
    assert garden.pending["refused"] == "no such thing"
    assert ("ReconcileError", "no such thing") in garden.events()

    garden.garden.rejects = lambda _: ""
    garden.run_until_stable()

    assert garden.shoots() == ["crowd-0"]
    assert garden.pending == {}


def test_a_shoot_that_finds_no_seed_is_told_of_with_the_schedulers_words(garden: SeedGarden):
    garden.applied(a_managed_seed_set())
    garden.reconcile_once()
    operation = {"type": "Create", "state": "Pending", "description": "Failed to schedule Shoot: 0/3 seeds fit"}
    garden.change(shoot_key("crowd-0"), {"status": {"lastOperation": operation}})

    garden.reconcile_once()

    condition = garden.condition("ReplicaUnschedulable")
    assert (condition["status"], condition["reason"]) == ("True", "SchedulingFailed")
    assert condition["message"] == "crowd-0: Failed to schedule Shoot: 0/3 seeds fit"
    assert garden.reasons().count("ReplicaUnschedulable") == 1
    garden.reconcile_once()
    assert garden.reasons().count("ReplicaUnschedulable") == 1
    garden.run_until_stable()
    assert garden.condition("ReplicaUnschedulable")["status"] == "False"


def test_what_there_is_nothing_to_do_for_is_looked_at_again_after_the_sync_period(garden: SeedGarden):
    grown(garden, 1)

    assert garden.reconcile_once() == RequeueAfter(1800.0)
    assert garden.reconcile_once(ObjectKey("managedseedset", "garden", "other")) == Done("it is gone")


def test_looking_again_writes_nothing(garden: SeedGarden):
    grown(garden, 2)
    before = garden.version

    garden.reconcile_once()
    garden.reconcile_once()

    assert garden.version == before


class TestRetries:
    """A Shoot that fails is retried at most so many times."""

    def fail(self, garden: SeedGarden, times: int) -> None:
        for _ in range(times):
            garden.reconcile_shoot("crowd-0", "Failed")
            garden.reconcile_once()

    def test_the_maximum_is_absolute(self, garden: SeedGarden):
        garden.applied(a_managed_seed_set())
        garden.reconcile_once()

        self.fail(garden, 3)
        assert garden.pending == {"name": "crowd-0", "reason": "ShootReconciling", "retries": 3}
        self.fail(garden, 1)
        assert garden.pending == {"name": "crowd-0", "reason": "ShootReconcileFailed", "retries": 3}
        generation = garden.now(shoot_key("crowd-0"))["metadata"]["generation"]

        for _ in range(5):
            garden.clock.advance(3600)
            garden.reconcile_once()

        assert garden.pending == {"name": "crowd-0", "reason": "ShootReconcileFailed", "retries": 3}
        assert garden.now(shoot_key("crowd-0"))["metadata"]["generation"] == generation
        assert garden.reasons().count("RetryingShootReconciliation") == 3
        assert "NotRetryingShootReconciliation" in garden.reasons()

    def test_a_retry_under_way_is_still_counted(self, garden: SeedGarden):
        garden.applied(a_managed_seed_set())
        garden.reconcile_once()
        self.fail(garden, 2)
        garden.reconcile_shoot("crowd-0", "Processing")
        garden.reconcile_once()

        assert garden.pending == {"name": "crowd-0", "reason": "ShootReconciling", "retries": 2}

    def test_a_retry_that_was_not_taken_up_yet_is_not_counted_twice(self, garden: SeedGarden):
        garden.applied(a_managed_seed_set())
        garden.reconcile_once()
        garden.reconcile_shoot("crowd-0", "Failed")
        one, other = garden.stepped(), garden.stepped()
        for _ in range(60):
            one.step()
            other.step()

        garden.reconcile_once()

        assert garden.pending["retries"] == 1
        assert garden.now(shoot_key("crowd-0"))["metadata"]["generation"] == 2

    @pytest.mark.parametrize("changed", [SET, shoot_key("crowd-0")], ids=["the set", "the shoot"])
    def test_it_begins_anew_when_something_changes(self, garden: SeedGarden, changed: ObjectKey):
        garden.applied(a_managed_seed_set())
        garden.reconcile_once()
        self.fail(garden, 4)

        if changed == SET:
            garden.patched(SET, {"spec": {"replicas": 2}})
        else:
            annotations = {"gardener.cloud/operation": "retry"}
            garden.patched(changed, {"metadata": {"annotations": annotations}})
            garden.reconcile_shoot("crowd-0", "Failed")
        garden.reconcile_once()

        assert garden.pending == {"name": "crowd-0", "reason": "ShootReconciling", "retries": 1}

    def test_templates_that_are_mended_reach_a_replica_that_was_never_ready(self, garden: SeedGarden):
        garden.applied(a_managed_seed_set())
        garden.reconcile_once()
        self.fail(garden, 4)

        garden.patched(SET, {"spec": {"shootTemplate": {"spec": {"purpose": "infrastructure"}}}})
        garden.reconcile_once()

        assert garden.now(shoot_key("crowd-0"))["spec"]["purpose"] == "infrastructure"
        garden.run_until_stable()
        assert garden.status["readyReplicas"] == 1

    def test_none_may_be_allowed(self):
        garden = SeedGarden(ActuatorSettings(max_shoot_retries=0))
        garden.applied(a_managed_seed_set())
        garden.reconcile_once()
        self.fail(garden, 1)

        assert garden.pending == {"name": "crowd-0", "reason": "ShootReconcileFailed", "retries": 0}

    def test_a_failed_deletion_is_retried_too(self, garden: SeedGarden):
        grown(garden, 1)
        garden.patched(SET, {"spec": {"replicas": 0}})
        for _ in range(3):
            garden.reconcile_once()
            garden.register("crowd-0")
        garden.reconcile_once()
        assert garden.pending == {"name": "crowd-0", "reason": "ShootDeleting"}

        for _ in range(4):
            garden.reconcile_shoot("crowd-0", "Failed")
            garden.reconcile_once()

        assert garden.pending == {"name": "crowd-0", "reason": "ShootDeleteFailed", "retries": 3}
        garden.reconcile_once()
        assert garden.reasons().count("RetryingShootDeletion") == 3

    def test_a_shoot_that_fails_behind_its_managed_seed_is_retried_as_well(self, garden: SeedGarden):
        grown(garden, 1)
        garden.reconcile_shoot("crowd-0", "Failed")

        garden.reconcile_once()

        assert garden.pending == {"name": "crowd-0", "reason": "ShootReconciling", "retries": 1}
