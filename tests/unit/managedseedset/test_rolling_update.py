"""Changed templates reach the existing replicas, from the highest ordinal down."""

from datetime import timedelta

import pytest

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.seed_management import REVISION_LABEL
from gardenbus.common.api.keys import ObjectKey
from gardenbus.managedseedset.domain.actuator import ActuatorSettings
from tests.support.seed_sets import SET, SeedGarden, a_managed_seed_set


def shoot_key(name: str) -> ObjectKey:
    return ObjectKey("shoot", "garden", name)


def managed_seed_key(name: str) -> ObjectKey:
    return ObjectKey("managedseed", "garden", name)


def purposes(garden: SeedGarden) -> list[str]:
    return [garden.now(shoot_key(name))["spec"]["purpose"] for name in garden.shoots()]


def notes(garden: SeedGarden) -> list[str]:
    return [
        section(garden.now(managed_seed_key(name)), "metadata", "annotations").get("note", "")
        for name in garden.managed_seeds()
    ]


def revisions(garden: SeedGarden) -> list[Document]:
    found = [stored.document() for stored in garden.objects("controllerrevision")]
    return sorted(found, key=lambda revision: revision["revision"])


def change_purpose(garden: SeedGarden, purpose: str) -> None:
    garden.patched(SET, {"spec": {"shootTemplate": {"spec": {"purpose": purpose}}}})


def change_note(garden: SeedGarden, note: str) -> None:
    garden.patched(SET, {"spec": {"template": {"metadata": {"annotations": {"note": note}}}}})


def set_partition(garden: SeedGarden, partition: int) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}
    garden.patched(SET, {"spec": {"updateStrategy": strategy}})


@pytest.fixture
def garden() -> SeedGarden:
    """Three replicas, all ready."""
    garden = SeedGarden()
    garden.applied(a_managed_seed_set(replicas=3))
    garden.run_until_stable()
    return garden


def test_the_highest_ordinal_comes_first_and_the_next_waits_for_it(garden: SeedGarden):
    change_purpose(garden, "infrastructure")

    garden.reconcile_once()
    assert purposes(garden) == ["evaluation", "evaluation", "infrastructure"]
    assert garden.pending == {"name": "crowd-2", "reason": "ShootReconciling"}
    assert garden.status["updatedReplicas"] == 0, "its managed seed is not updated yet"
    garden.reconcile_once()
    assert purposes(garden) == ["evaluation", "evaluation", "infrastructure"]

    garden.reconcile_shoot("crowd-2")
    garden.reconcile_once()
    assert (
        garden.now(managed_seed_key("crowd-2"))["metadata"]["labels"][REVISION_LABEL] in garden.status["updateRevision"]
    )
    assert garden.status["currentRevision"] != garden.status["updateRevision"]
    assert garden.condition("Progressing")["reason"] == "Updating"
    garden.reconcile_once()
    assert purposes(garden) == ["evaluation", "infrastructure", "infrastructure"]
    counts = garden.status["currentReplicas"], garden.status["updatedReplicas"]
    assert counts == (2, 1)

    garden.run_until_stable()
    assert purposes(garden) == ["infrastructure"] * 3
    assert garden.status["currentRevision"] == garden.status["updateRevision"]
    assert garden.condition("Progressing")["reason"] == "UpdateComplete"
    updates = [message.split(" to ")[0] for reason, message in garden.events() if reason == "UpdatingShoot"]
    assert updates == ["Updating shoot crowd-2", "Updating shoot crowd-1", "Updating shoot crowd-0"]


def test_a_managed_seed_that_changes_is_waited_for_until_its_seed_is_ready(garden: SeedGarden):
    capacity = {"gardenlet": {"config": {"resources": {"capacity": {"shoots": 20}}}}}
    garden.patched(SET, {"spec": {"template": {"spec": capacity}}})

    for _ in range(5):
        garden.reconcile_once()
    assert garden.pending == {"name": "crowd-2", "reason": "ManagedSeedPreparing"}
    garden.register("crowd-2")
    garden.report_seed("crowd-2", ready=False)
    garden.reconcile_once()
    assert garden.pending == {"name": "crowd-2", "reason": "SeedNotReady"}
    capacities = [
        garden.now(managed_seed_key(name))["spec"]["gardenlet"]["config"]["resources"]["capacity"]["shoots"]
        for name in garden.managed_seeds()
    ]
    assert capacities == [10, 10, 20]

    garden.run_until_stable()
    assert garden.status["updatedReplicas"] == 3


def test_what_admission_filled_in_survives_an_update(garden: SeedGarden):
    change_note(garden, "new")
    garden.run_until_stable()

    managed_seed = garden.now(managed_seed_key("crowd-1"))
    assert managed_seed["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]["provider"]["region"] == "eu-west-1"
    assert notes(garden) == ["new"] * 3


class TestPartition:
    """Replicas below it keep their templates."""

    def test_only_ordinals_from_the_partition_on_are_updated(self, garden: SeedGarden):
        set_partition(garden, 2)
        change_purpose(garden, "infrastructure")
        garden.run_until_stable()

        assert purposes(garden) == ["evaluation", "evaluation", "infrastructure"]
        assert garden.condition("Progressing")["reason"] == "Partitioned"
        assert garden.status["currentRevision"] != garden.status["updateRevision"]
        assert (garden.status["currentReplicas"], garden.status["updatedReplicas"]) == (2, 1)

        set_partition(garden, 0)
        garden.run_until_stable()
        assert purposes(garden) == ["infrastructure"] * 3

    def test_a_new_replica_below_it_is_made_from_the_current_templates(self, garden: SeedGarden):
        set_partition(garden, 4)
        change_purpose(garden, "infrastructure")
        garden.patched(SET, {"spec": {"replicas": 5}})
        garden.run_until_stable()

        assert purposes(garden) == ["evaluation"] * 4 + ["infrastructure"]


class TestFailure:
    """A replica that is not ready after its update holds up the others."""

    def test_a_failed_shoot_stops_the_update(self, garden: SeedGarden):
        change_purpose(garden, "infrastructure")
        garden.reconcile_once()
        for _ in range(5):
            garden.reconcile_shoot("crowd-2", "Failed")
            garden.reconcile_once()

        assert purposes(garden) == ["evaluation", "evaluation", "infrastructure"]
        assert garden.pending == {"name": "crowd-2", "reason": "ShootReconcileFailed", "retries": 3}
        condition = garden.condition("Progressing")
        assert (condition["status"], condition["reason"]) == ("False", "UpdateFailed")
        assert garden.reasons().count("UpdateFailed") == 1

    def test_templates_that_are_mended_go_on_from_where_it_stopped(self, garden: SeedGarden):
        self.test_a_failed_shoot_stops_the_update(garden)
        change_purpose(garden, "production")
        garden.run_until_stable()

        assert purposes(garden) == ["production"] * 3

    def test_a_replica_that_does_not_get_ready_in_time_has_failed(self):
        garden = SeedGarden(ActuatorSettings(update_deadline=timedelta(minutes=5)))
        garden.applied(a_managed_seed_set(replicas=2))
        garden.run_until_stable()
        change_note(garden, "new")
        garden.reconcile_once()
        garden.reconcile_once()
        garden.report_seed("crowd-1", ready=False)
        garden.reconcile_once()
        assert garden.condition("Progressing")["reason"] == "Updating"

        garden.clock.advance(301)
        garden.reconcile_once()

        assert garden.condition("Progressing")["reason"] == "UpdateFailed"
        assert notes(garden) == ["", "new"]
        garden.run_until_stable()
        assert garden.condition("Progressing")["reason"] == "UpdateComplete"

    def test_a_refused_update_is_told_and_everything_else_goes_on(self, garden: SeedGarden):
        garden.garden.rejects = lambda document: (
            "not like this" if document["spec"].get("purpose") == "infrastructure" else ""
        )
        garden.garden.rejects = lambda document: (
            "not like this" if section(document, "spec").get("purpose") == "infrastructure" else ""
        )
        change_purpose(garden, "infrastructure")
        garden.reconcile_once()
        garden.reconcile_once()

        condition = garden.condition("Progressing")
        assert (condition["status"], condition["reason"]) == ("False", "UpdateFailed")
        assert "not like this" in condition["message"]
        assert garden.pending == {}
        assert garden.reasons().count("UpdateFailed") == 1
        garden.patched(SET, {"spec": {"replicas": 2}})
        garden.reconcile_once()
        garden.run_until_stable()
        assert garden.shoots() == ["crowd-1", "crowd-2"]

    def test_a_refused_update_is_tried_again_later(self, garden: SeedGarden):
        garden.garden.rejects = lambda document: (
            "not now" if section(document, "spec").get("purpose") == "infrastructure" else ""
        )
        change_purpose(garden, "infrastructure")
        garden.reconcile_once()
        garden.garden.rejects = lambda _: ""
        garden.reconcile_once()
        assert purposes(garden) == ["evaluation"] * 3

        garden.clock.advance(1800)
        garden.run_until_stable()

        assert purposes(garden) == ["infrastructure"] * 3


class TestRevisions:
    """Templates are kept in revisions, as many as configured."""

    def test_each_change_of_templates_is_a_revision(self, garden: SeedGarden):
        change_purpose(garden, "infrastructure")
        garden.run_until_stable()

        one, two = revisions(garden)
        assert (one["revision"], two["revision"]) == (1, 2)
        assert two["metadata"]["name"] == garden.status["updateRevision"]
        assert one["data"]["shootTemplate"]["spec"]["purpose"] == "evaluation"
        assert one["metadata"]["ownerReferences"][0]["kind"] == "ManagedSeedSet"

    def test_scaling_makes_none(self, garden: SeedGarden):
        garden.patched(SET, {"spec": {"replicas": 4}})
        garden.run_until_stable()

        assert len(revisions(garden)) == 1

    def test_going_back_takes_the_old_one_up_again(self, garden: SeedGarden):
        first = garden.status["updateRevision"]
        change_purpose(garden, "infrastructure")
        garden.run_until_stable()
        change_purpose(garden, "evaluation")
        garden.run_until_stable()

        assert garden.status["updateRevision"] == first
        assert [(each["metadata"]["name"] == first, each["revision"]) for each in revisions(garden)] == [
            (False, 2),
            (True, 3),
        ]
        assert purposes(garden) == ["evaluation"] * 3

    def test_only_so_many_are_kept_besides_those_in_use(self):
        garden = SeedGarden()
        garden.applied(a_managed_seed_set(spec={"revisionHistoryLimit": 2}))
        for number in range(6):
            change_note(garden, f"note {number}")
            garden.run_until_stable()

        assert [each["revision"] for each in revisions(garden)] == [4, 5, 6]

    def test_a_name_that_is_taken_makes_another_hash(self):
        garden = SeedGarden()
        garden.applied(a_managed_seed_set())
        garden.reconcile_once()
        name = garden.status["updateRevision"]
        other = SeedGarden()
        stranger = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": 1, "data": {"other": "thing"}}
        other.applied({**stranger, "metadata": {"name": name, "namespace": "garden"}})
        other.applied(a_managed_seed_set())

        other.run_until_stable()

        assert other.status["collisionCount"] == 1
        assert other.status["updateRevision"] != name
        assert other.status["readyReplicas"] == 1
