"""Scale-in: only empty seeds are removed, in the right order, and never once a shoot is placed on them."""

import json

import pytest

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.scheduling_profiles import AnnotationScore, SchedulingProfile, WeightedScore
from gardenbus.common.api.garden.scheduling_requirements import RESOLVED
from gardenbus.common.api.garden.seed_management import CORDONED_BY, PRIORITY, PROTECT_FROM_DELETION, REMOVAL_ANNOTATION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.controller import RequeueAfter
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import UnknownObject
from tests.support.seed_sets import SET, SeedGarden, a_managed_seed_set

PAIR = {"group": "pair", "topologyKey": "seed"}


def seed_key(name: str) -> ObjectKey:
    return ObjectKey("seed", "", name)


def shoot_key(name: str) -> ObjectKey:
    return ObjectKey("shoot", "garden", name)


def managed_seed_key(name: str) -> ObjectKey:
    return ObjectKey("managedseed", "garden", name)


def annotations(garden: SeedGarden, key: ObjectKey) -> Document:
    return section(garden.now(key), "metadata", "annotations")


def annotate(garden: SeedGarden, key: ObjectKey, name: str, value: str | None) -> None:
    garden.patched(key, {"metadata": {"annotations": {name: value}}})


def scale(garden: SeedGarden, replicas: int) -> None:
    garden.patched(SET, {"spec": {"replicas": replicas}})


@pytest.fixture
def garden() -> SeedGarden:
    """Three replicas, all ready and empty."""
    garden = SeedGarden()
    garden.applied(a_managed_seed_set(replicas=3))
    garden.run_until_stable()
    return garden


def test_a_seed_with_shoots_that_a_restored_store_does_not_know_is_in_use(garden: SeedGarden):
    lost = ObjectKey("shoot", "garden-dev", "apollo")
    for seed in ("crowd-0", "crowd-1"):
        unknown = UnknownObject(key=lost, uid="uid-1", seed=seed)
        assert not garden.drive(garden.store.reannounce_object(lost, seed, "uid-1", unknown))

    scale(garden, 0)
    garden.run_until_stable()

    assert garden.managed_seeds() == ["crowd-0", "crowd-1"]
    assert REMOVAL_ANNOTATION not in annotations(garden, seed_key("crowd-0"))
    garden.drive(garden.store.forget(lost, "crowd-0", "uid-1"))
    garden.run_until_stable()
    assert garden.managed_seeds() == ["crowd-1"]


def test_a_replica_goes_step_by_step(garden: SeedGarden):
    scale(garden, 2)

    garden.reconcile_once()
    assert annotations(garden, seed_key("crowd-0"))[REMOVAL_ANNOTATION] == "garden/crowd"
    assert "deletionTimestamp" in garden.now(managed_seed_key("crowd-0"))["metadata"]
    assert garden.pending == {"name": "crowd-0", "reason": "ManagedSeedDeleting"}
    assert (garden.status["replicas"], garden.status["readyReplicas"]) == (3, 2)

    garden.register("crowd-0")
    garden.register("crowd-0")
    assert "crowd-0" not in garden.managed_seeds()
    garden.reconcile_once()
    assert "deletionTimestamp" in garden.now(shoot_key("crowd-0"))["metadata"]
    assert garden.pending == {"name": "crowd-0", "reason": "ShootDeleting"}

    garden.reconcile_shoot("crowd-0")
    garden.reconcile_once()
    assert garden.shoots() == ["crowd-1", "crowd-2"]
    assert garden.pending == {}
    removal = ["DeletingManagedSeed", "DeletingShoot"]
    assert [reason for reason in garden.reasons() if reason in removal] == removal


def test_one_goes_after_the_other(garden: SeedGarden):
    scale(garden, 0)
    garden.reconcile_once()
    garden.reconcile_once()

    removing = [
        name for name in garden.managed_seeds() if "deletionTimestamp" in garden.now(managed_seed_key(name))["metadata"]
    ]

    assert removing == ["crowd-0"]
    garden.run_until_stable()
    assert garden.shoots() == []
    assert garden.seed_names() == []


def test_a_seed_in_use_stays_and_the_next_one_goes(garden: SeedGarden):
    garden.place("crowd-0", "tenant")
    scale(garden, 2)

    garden.run_until_stable()

    assert garden.shoots() == ["crowd-0", "crowd-2"]


def test_scaling_in_goes_as_far_as_it_can_and_says_what_is_left(garden: SeedGarden):
    for tenant in ("one", "two"):
        garden.place("crowd-1", tenant)
    annotate(garden, shoot_key("crowd-2"), PROTECT_FROM_DELETION, "true")
    scale(garden, 0)

    garden.run_until_stable()

    assert garden.shoots() == ["crowd-1", "crowd-2"]
    condition = garden.condition("ScaleInBlocked")
    assert condition["status"] == "True"
    assert condition["message"] == (
        "2 more replicas should go: crowd-2 is protected; crowd-1 has 2 shoots. Move the shoots away by "
        "`gardenbus drain crowd-1`, or set spec.scaleIn.drain: true"
    )
    assert garden.reasons().count("ScaleInBlocked") == 1
    assert garden.reconcile_once() == RequeueAfter(10.0), "that a seed is empty is not announced"
    garden.leave("one")
    garden.leave("two")
    annotate(garden, shoot_key("crowd-2"), PROTECT_FROM_DELETION, None)
    garden.run_until_stable()
    assert garden.shoots() == []
    assert garden.condition("ScaleInBlocked")["status"] == "False"


@pytest.mark.parametrize("value", ["True", "yes", ""])
def test_only_exactly_true_protects(garden: SeedGarden, value: str):
    annotate(garden, shoot_key("crowd-0"), PROTECT_FROM_DELETION, value)
    scale(garden, 2)

    garden.run_until_stable()

    assert garden.shoots() == ["crowd-1", "crowd-2"]


def test_a_managed_seed_protects_as_its_shoot_does(garden: SeedGarden):
    annotate(garden, managed_seed_key("crowd-0"), PROTECT_FROM_DELETION, "true")
    scale(garden, 2)

    garden.run_until_stable()

    assert garden.shoots() == ["crowd-0", "crowd-2"]


class TestOrder:
    """Order of removal."""

    def test_a_lower_priority_goes_before_everything_else(self, garden: SeedGarden):
        garden.report_seed("crowd-0", ready=False)
        annotate(garden, managed_seed_key("crowd-2"), PRIORITY, "1")
        scale(garden, 2)
        garden.reconcile_once()

        assert garden.pending["name"] == "crowd-2"

    def test_a_higher_priority_goes_last(self, garden: SeedGarden):
        annotate(garden, shoot_key("crowd-0"), PRIORITY, "4")
        scale(garden, 2)
        garden.reconcile_once()

        assert garden.pending["name"] == "crowd-1"

    def test_what_is_no_integer_counts_as_three_and_is_told_once(self, garden: SeedGarden):
        annotate(garden, shoot_key("crowd-0"), PRIORITY, "low")
        annotate(garden, shoot_key("crowd-1"), PRIORITY, "2")
        for _ in range(3):
            garden.reconcile_once()
            garden.clock.advance(3600)
        assert garden.reasons().count("InvalidPriority") == 1
        assert "crowd-0 has 'low'" in garden.condition("InvalidPriority")["message"]

        scale(garden, 2)
        garden.reconcile_once()
        assert garden.pending["name"] == "crowd-1"

    def test_then_the_one_that_is_least_complete(self, garden: SeedGarden):
        scale(garden, 4)
        garden.reconcile_once()
        scale(garden, 3)
        garden.reconcile_once()

        assert garden.pending == {"name": "crowd-3", "reason": "ShootDeleting"}

    def test_then_a_seed_that_is_not_ready(self, garden: SeedGarden):
        garden.report_seed("crowd-1", ready=False)
        scale(garden, 2)
        garden.reconcile_once()

        assert garden.pending["name"] == "crowd-1"

    def test_then_the_shoot_that_is_least_healthy(self, garden: SeedGarden):
        label = {"shoot.gardener.cloud/status": "unknown"}
        garden.change(shoot_key("crowd-1"), {"metadata": {"labels": label}})
        garden.change(
            shoot_key("crowd-2"), {"metadata": {"labels": {**label, "shoot.gardener.cloud/status": "unhealthy"}}}
        )
        scale(garden, 2)
        garden.reconcile_once()

        assert garden.pending["name"] == "crowd-2"


class TestRemovalAnnotation:
    """The removal annotation: from then on nothing is placed on the seed; or it fails."""

    def test_a_marked_seed_takes_no_shoot(self, garden: SeedGarden):
        scale(garden, 2)
        garden.reconcile_once()

        assert garden.place("crowd-0", "tenant") == "seed-gone"

    def test_a_shoot_that_comes_between_the_choice_and_the_mark_keeps_its_seed(self, garden: SeedGarden):
        scale(garden, 2)
        stepped = garden.stepped()
        while garden.pending.get("name") != "crowd-0":
            stepped.step()
        assert garden.place("crowd-0", "tenant") == "bound"
        stepped.step(100)
        assert stepped.finished

        garden.run_until_stable()

        assert garden.shoots() == ["crowd-0", "crowd-2"]
        assert REMOVAL_ANNOTATION not in annotations(garden, seed_key("crowd-0"))

    def test_scaling_out_again_takes_the_mark_away(self, garden: SeedGarden):
        scale(garden, 2)
        stepped = garden.stepped()
        while REMOVAL_ANNOTATION not in annotations(garden, seed_key("crowd-0")):
            stepped.step()
        stepped.kill()
        scale(garden, 3)

        garden.reconcile_once()

        assert REMOVAL_ANNOTATION not in annotations(garden, seed_key("crowd-0"))
        assert garden.place("crowd-0", "tenant") == "bound"
        garden.run_until_stable()
        assert garden.shoots() == ["crowd-0", "crowd-1", "crowd-2"]

    def test_what_was_deleted_already_is_not_taken_back(self, garden: SeedGarden):
        scale(garden, 2)
        garden.reconcile_once()
        scale(garden, 3)
        garden.reconcile_once()

        assert REMOVAL_ANNOTATION in annotations(garden, seed_key("crowd-0"))
        garden.run_until_stable()
        assert garden.shoots() == ["crowd-0", "crowd-1", "crowd-2"], "its shoot gets a managed seed again"
        assert garden.status["readyReplicas"] == 3

    def test_a_seed_that_registers_late_is_not_lost_sight_of(self, garden: SeedGarden):
        scale(garden, 4)
        garden.reconcile_once()
        garden.reconcile_shoot("crowd-3")
        garden.reconcile_once()
        scale(garden, 3)
        stepped = garden.stepped()
        while garden.pending != {"name": "crowd-3", "reason": "ManagedSeedDeleting"}:
            stepped.step()
        garden.register("crowd-3")
        garden.report_seed("crowd-3")
        stepped.step(100)

        assert "deletionTimestamp" not in garden.now(managed_seed_key("crowd-3"))["metadata"], "it has a seed by now"
        garden.reconcile_once()
        assert REMOVAL_ANNOTATION in annotations(garden, seed_key("crowd-3"))

    def test_the_mark_of_somebody_else_is_left_alone(self, garden: SeedGarden):
        garden.change(seed_key("crowd-1"), {"metadata": {"annotations": {REMOVAL_ANNOTATION: "ann"}}})

        garden.run_until_stable()

        assert annotations(garden, seed_key("crowd-1"))[REMOVAL_ANNOTATION] == "ann"


class TestDrain:
    """`spec.scaleIn.drain: true`: seeds in use are drained first."""

    @pytest.fixture
    def garden(self) -> SeedGarden:
        """Two replicas; three shoots on the first, one on the second; the rest of the landscape is the host seed."""
        garden = SeedGarden()
        garden.host_seed(spec={"taints": [{"key": "seed.gardener.cloud/protected"}]})
        garden.applied(a_managed_seed_set(replicas=2, spec={"scaleIn": {"drain": True}}))
        garden.run_until_stable()
        for number in range(3):
            assert garden.place("crowd-0", f"tenant-{number}") == "bound"
        assert garden.place("crowd-1", "another") == "bound"
        return garden

    def seeds_of(self, garden: SeedGarden) -> list[str]:
        return sorted(stored.parts.seed_name for stored in garden.objects("shoot", "garden-dev"))

    def test_the_seed_with_the_fewest_shoots_is_emptied_and_removed(self, garden: SeedGarden):
        scale(garden, 1)

        garden.reconcile_once()
        assert garden.pending == {"name": "crowd-1", "reason": "SeedDraining"}
        seed = garden.now(seed_key("crowd-1"))
        assert seed["spec"]["settings"]["scheduling"]["visible"] is False
        assert seed["metadata"]["annotations"][CORDONED_BY] == "garden/crowd"
        assert self.seeds_of(garden) == ["crowd-0"] * 4
        assert garden.usage("crowd-1") == 1, "it counts until it has arrived"
        garden.reconcile_once()
        assert "deletionTimestamp" not in garden.now(managed_seed_key("crowd-1"))["metadata"]

        garden.run_until_stable()
        assert garden.shoots() == ["crowd-0"]
        assert self.seeds_of(garden) == ["crowd-0"] * 4

    def test_shoots_of_a_scheduler_whose_profile_is_given_move_by_it(self):
        cost = WeightedScore("SeedAnnotation/cost", 1, AnnotationScore(annotation="cost", least=0, most=100_000))
        garden = SeedGarden(profiles=[SchedulingProfile(scheduler_name="mine", scores=(cost,))])
        garden.host_seed(spec={"taints": [{"key": "seed.gardener.cloud/protected"}]})
        garden.applied(a_managed_seed_set(replicas=3, spec={"scaleIn": {"drain": True}}))
        garden.run_until_stable()
        assert garden.place("crowd-0", "other") == "bound"
        assert garden.place("crowd-0", "third") == "bound"
        assert garden.place("crowd-1", "full-of-others") == "bound"
        assert garden.place("crowd-1", "another") == "bound"
        assert garden.place("crowd-1", "fifth") == "bound"
        assert garden.place("crowd-2", "mine", spec={"schedulerName": "mine"}) == "bound"
        garden.patched(seed_key("crowd-1"), {"metadata": {"annotations": {"cost": "99"}}})
        scale(garden, 2)

        garden.run_until_stable()

        assert garden.shoots() == ["crowd-0", "crowd-1"]
        assert self.seeds_of(garden).count("crowd-1") == 4, "the score chose, and not the fewest shoots"

    def test_only_a_few_move_at_once(self, garden: SeedGarden):
        for number in range(6):
            garden.place("crowd-1", f"more-{number}")
        annotate(garden, shoot_key("crowd-0"), PROTECT_FROM_DELETION, "true")
        scale(garden, 1)

        garden.reconcile_once()
        assert self.seeds_of(garden).count("crowd-1") == 7 - 5
        assert garden.reconcile_once() == RequeueAfter(2.0)
        assert self.seeds_of(garden).count("crowd-1") == 2, "those under way count"
        garden.run_until_stable()
        assert garden.shoots() == ["crowd-0"]

    def test_shoots_never_move_to_the_host_seed_and_it_says_that_there_is_no_place(self, garden: SeedGarden):
        for number in range(5):
            garden.place("crowd-0", f"more-{number}")
            garden.place("crowd-1", f"yet-more-{number}")
        scale(garden, 1)

        garden.run_until_stable()

        assert garden.shoots() == ["crowd-0", "crowd-1"]
        condition = garden.condition("ScaleInBlocked")
        assert (condition["status"], condition["reason"]) == ("True", "NoPlaceForShoots")
        assert "cannot be moved" in condition["message"]
        assert set(self.seeds_of(garden)) == {"crowd-0", "crowd-1"}
        assert CORDONED_BY not in annotations(garden, seed_key("crowd-1"))

    def test_two_that_are_kept_apart_do_not_meet_where_one_of_their_seeds_is_drained(self, garden: SeedGarden):
        apart = {"groups": ["pair"], "affinity": {"shootAntiAffinity": {"required": [PAIR]}}}
        for seed in ("crowd-0", "crowd-1"):
            pair = {"metadata": {"annotations": {RESOLVED: json.dumps(apart)}}}
            assert garden.place(seed, f"pair-of-{seed}", **pair) == "bound"
        scale(garden, 1)

        garden.run_until_stable()

        assert garden.shoots() == ["crowd-0", "crowd-1"]
        condition = garden.condition("ScaleInBlocked")
        assert (condition["status"], condition["reason"]) == ("True", "NoPlaceForShoots")
        assert "member of group pair" in condition["message"]
        assert CORDONED_BY not in annotations(garden, seed_key("crowd-1"))

    def test_a_drain_that_comes_to_its_end_half_way_uncordons_and_says_so(self, garden: SeedGarden):
        for number in range(7):
            garden.place("crowd-1", f"more-{number}")
        annotate(garden, shoot_key("crowd-0"), PROTECT_FROM_DELETION, "true")
        annotate(garden, shoot_key("crowd-0"), PRIORITY, "9")
        garden.leave("tenant-0")
        scale(garden, 1)
        garden.reconcile_once()
        assert garden.pending["reason"] == "SeedDraining"
        place_left = 10 - garden.usage("crowd-0")
        for number in range(place_left):
            assert garden.place("crowd-0", f"quick-{number}") == "bound"
        garden.run_gardenlets()

        garden.reconcile_once()

        seed = garden.now(seed_key("crowd-1"))
        assert CORDONED_BY not in section(seed, "metadata", "annotations")
        assert seed["spec"]["settings"]["scheduling"]["visible"] is True
        assert {"DrainStopped", "UncordoningSeed", "ScaleInBlocked"} <= set(garden.reasons())
        assert garden.pending == {}

    def test_wanting_it_back_uncordons_too(self, garden: SeedGarden):
        scale(garden, 1)
        garden.reconcile_once()
        scale(garden, 2)
        garden.reconcile_once()

        assert garden.now(seed_key("crowd-1"))["spec"]["settings"]["scheduling"]["visible"] is True
        assert CORDONED_BY not in annotations(garden, seed_key("crowd-1"))

    def test_a_seed_that_an_operator_cordoned_stays_so(self, garden: SeedGarden):
        garden.patched(seed_key("crowd-1"), {"spec": {"settings": {"scheduling": {"visible": False}}}})
        garden.report_seed("crowd-1")
        scale(garden, 1)
        garden.reconcile_once()
        scale(garden, 2)
        garden.reconcile_once()

        assert garden.now(seed_key("crowd-1"))["spec"]["settings"]["scheduling"]["visible"] is False

    def test_a_silent_seed_is_not_drained(self, garden: SeedGarden):
        garden.report_seed("crowd-1", ready=False)
        scale(garden, 1)
        garden.reconcile_once()

        assert garden.pending == {"name": "crowd-0", "reason": "SeedDraining"} or garden.condition("ScaleInBlocked")
        assert "cannot be moved while its seed is not ready" in garden.condition("ScaleInBlocked").get(
            "message", "cannot be moved while its seed is not ready"
        )
        assert garden.usage("crowd-1") == 1

    def test_shoots_do_not_move_to_the_seed_that_goes_next(self, garden: SeedGarden):
        scale(garden, 3)
        garden.run_until_stable()
        garden.place("crowd-2", "third")
        garden.place("crowd-2", "fourth")
        scale(garden, 1)

        garden.run_until_stable()

        assert garden.shoots() == ["crowd-0"]
        moves = [message for reason, message in garden.events() if reason == "MovingShoot"]
        assert len(moves) == 3, moves


def test_without_drain_nothing_moves(garden: SeedGarden):
    garden.place("crowd-0", "tenant")
    for name in ("crowd-1", "crowd-2"):
        annotate(garden, shoot_key(name), PROTECT_FROM_DELETION, "true")
    scale(garden, 2)

    garden.run_until_stable()

    assert garden.now(ObjectKey("shoot", "garden-dev", "tenant"))["spec"]["seedName"] == "crowd-0"
    assert CORDONED_BY not in annotations(garden, seed_key("crowd-0"))


class TestDeletion:
    """A set that is deleted takes its replicas along, one by one, and waits for those in use."""

    def test_all_replicas_go_and_then_the_set(self, garden: SeedGarden):
        garden.deleted(SET)
        for _ in range(60):
            if garden.get(SET) is None:
                break
            garden.reconcile_once()
            garden.run_gardenlets()

        assert garden.get(SET) is None
        assert garden.shoots() == []

    def test_it_waits_for_a_replica_in_use(self, garden: SeedGarden):
        garden.place("crowd-1", "tenant")
        garden.deleted(SET)
        garden.run_until_stable()

        assert garden.shoots() == ["crowd-1"]
        assert garden.condition("ScaleInBlocked")["status"] == "True"
        with pytest.raises(Forbidden):
            garden.deleted(managed_seed_key("crowd-1"))
