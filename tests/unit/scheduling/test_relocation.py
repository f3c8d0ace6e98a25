from collections.abc import Sequence
from typing import Any

from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.moves import Immovable, Move
from gardenbus.common.api.garden.scheduling_profiles import (
    AddedAffinity,
    AnnotationScore,
    SchedulingProfile,
    SeedAffinity,
    WeightedScore,
)
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.selectors import parse_selector
from gardenbus.scheduling.descheduling.relocation import hosted_seeds, plan_moves
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_seed, a_shoot, merged

BACKUP: Document = {
    "spec": {"backup": {"provider": "aws"}},
    "status": {"conditions": [a_condition("GardenletReady"), a_condition("BackupBucketsReady")]},
}
TEN = "10.{}.0.0/16"


def a_backed_seed(name: str, shoots: int = 10, **changes: Any) -> Document:
    return merged(a_seed(name, shoots=str(shoots)), merged(BACKUP, changes))


def on(seed: str, name: str, namespace: str = "garden-dev", **changes: Any) -> Document:
    placed = {
        "spec": {"seedName": seed},
        "status": {"seedName": seed, "lastOperation": {"type": "Reconcile", "state": "Succeeded"}},
    }
    return a_shoot(name, namespace, **merged(placed, changes))


def a_managed_seed(name: str, shoot: str) -> Document:
    return {
        "kind": "ManagedSeed",
        "metadata": {"name": name, "namespace": "garden"},
        "spec": {"shoot": {"name": shoot}},
    }


def planned(
    *documents: Document,
    source: str = "a",
    managed_seeds: Sequence[Document] = (),
    profiles: Sequence[SchedulingProfile] = (),
) -> tuple[dict[str, str], dict[str, Immovable]]:
    """Plan on a landscape of the documents: target by shoot, and who stays."""
    landscape = [a_project(), a_project("garden", "garden"), a_cloudprofile(), *documents]
    shoots = [each for each in documents if each["kind"] == "Shoot"]
    there = [each for each in shoots if each["spec"].get("seedName") == source]
    forbidden = hosted_seeds(shoots, managed_seeds)
    snapshot = snapshot_of(landscape)
    before = dict(snapshot.usage)
    landscapes = {each.scheduler_name: snapshot.landscape.with_profile(each) for each in profiles}
    plan = plan_moves(there, snapshot, source=source, forbidden=forbidden, landscapes=landscapes)
    assert snapshot.usage == before
    assert len(plan) == len(there)
    moves = {each.name: each.target for each in plan if isinstance(each, Move)}
    return moves, {each.name: each for each in plan if isinstance(each, Immovable)}


def test_each_move_counts_for_the_next():
    moves, stays = planned(
        *(a_backed_seed(name) for name in "abc"), *(on("a", f"s{number}") for number in range(4)), on("b", "there")
    )

    assert moves == {"s0": "c", "s1": "b", "s2": "c", "s3": "b"}
    assert stays == {}


def test_a_shoot_moves_by_the_scores_of_its_schedulers_profile():
    cost = AnnotationScore(annotation="cost", least=0, most=1000, reverse=True)
    cheap = SchedulingProfile(scheduler_name="cheap", scores=(WeightedScore("SeedAnnotation/cost", 1, cost),))
    documents = [
        a_backed_seed("a"),
        a_backed_seed("b", metadata={"annotations": {"cost": "0.9"}}),
        a_backed_seed("c", metadata={"annotations": {"cost": "0.1"}}),
        *(on("c", f"there-{number}") for number in range(3)),
        on("a", "usual"),
        on("a", "scored", spec={"schedulerName": "cheap"}),
    ]

    moves, stays = planned(*documents, profiles=(cheap,))
    assert (moves, stays) == ({"usual": "b", "scored": "c"}, {})

    moves, stays = planned(*documents)
    assert moves == {"usual": "b"}
    assert "placed by the scheduler 'cheap'" in stays["scored"].reason


def test_a_profile_with_purposes_is_kept_where_a_shoot_moves():
    gold = parse_selector({"matchLabels": {"tier": "gold"}})
    added = (AddedAffinity(purposes=("evaluation",), required=(gold,)),)
    profile = SchedulingProfile(scores=(WeightedScore("SeedAffinity", 1, SeedAffinity(added=added)),))
    seeds = [a_backed_seed("a"), a_backed_seed("b"), a_backed_seed("c", metadata={"labels": {"tier": "gold"}})]

    moves, _ = planned(*seeds, on("a", "one"), profiles=(profile,))

    assert moves == {"one": "c"}


def test_a_shoot_that_fits_nowhere_else_stays_and_says_why():
    moves, stays = planned(a_backed_seed("a"), a_backed_seed("b", 1), on("a", "one"), on("a", "two"))

    assert moves == {"one": "b"}
    assert "no capacity" in stays["two"].reason
    assert not stays["two"].waits


def test_the_last_places_go_to_those_that_fit_nowhere_else():
    gold: Any = {"spec": {"seedSelector": {"matchLabels": {"tier": "gold"}}}}
    documents = [
        a_backed_seed("a", metadata={"labels": {"tier": "gold"}}),
        a_backed_seed("b", 1, metadata={"labels": {"tier": "gold"}}),
        a_backed_seed("c", 1),
    ]

    moves, stays = planned(*documents, on("a", "any"), on("a", "golden", **gold))

    assert moves == {"golden": "b", "any": "c"}
    assert stays == {}


def test_a_place_is_made_where_an_earlier_shoot_can_do_without_it():
    def wanting(tier: str) -> Document:
        return {"seedSelector": {"matchExpressions": [{"key": tier, "operator": "Exists"}]}}

    documents = [
        a_backed_seed("a", metadata={"labels": {"x": "", "y": "", "z": ""}}),
        a_backed_seed("b", 1, metadata={"labels": {"x": "", "y": ""}}),
        a_backed_seed("c", 1, metadata={"labels": {"x": "", "z": ""}}),
        a_backed_seed("d", 1, metadata={"labels": {"y": "", "z": ""}}),
    ]
    # All have two places: 1 takes b and 2 takes c at first sight, in whichever order 3 asks.
    shoots = [on("a", name, spec=wanting(tier)) for name, tier in (("s1", "x"), ("s2", "z"), ("s3", "y"))]

    moves, stays = planned(*documents, *shoots)

    assert len(moves) == 3
    assert len(set(moves.values())) == 3
    assert stays == {}


def test_without_backups_nothing_migrates():
    moves, stays = planned(a_seed("a"), a_backed_seed("b"), on("a", "one"))

    assert moves == {}
    assert "seed a has no spec.backup" in stays["one"].reason


def test_seeds_that_migration_rules_out_are_passed_over():
    other: Any = {"spec": {"dns": {"internal": {"domain": "other.example"}}}}

    moves, _ = planned(
        a_backed_seed("a"), a_backed_seed("b", **other), a_backed_seed("c", 1), on("a", "one"), on("c", "there")
    )
    assert moves == {}

    moves, _ = planned(a_backed_seed("a"), a_backed_seed("b", **other), a_backed_seed("c"), on("a", "one"))
    assert moves == {"one": "c"}


def test_a_hidden_or_marked_seed_takes_nothing():
    hidden: Any = {"spec": {"settings": {"scheduling": {"visible": False}}}}
    marked: Any = {"metadata": {"annotations": {"seedmanagement.gardener.cloud/marked-for-removal": "garden/s"}}}

    moves, stays = planned(
        a_backed_seed("a", **hidden), a_backed_seed("b", **hidden), a_backed_seed("c", **marked), on("a", "one")
    )

    assert moves == {}
    assert list(stays) == ["one"]


def test_what_is_under_way_waits():
    _, stays = planned(
        a_backed_seed("a"),
        a_backed_seed("b"),
        on("a", "deleting", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        on("a", "arriving", status={"seedName": "b"}),
        on("a", "restoring", status={"lastOperation": {"type": "Restore", "state": "Error"}}),
        on("a", "foreign", spec={"schedulerName": "mine"}),
    )

    assert {name: stay.waits for name, stay in stays.items()} == {
        "deleting": True,
        "arriving": True,
        "restoring": True,
        "foreign": False,
    }


def test_a_shoot_never_goes_to_a_seed_that_it_hosts_however_indirectly():
    documents = [
        *(a_backed_seed(name) for name in "abc"),
        on("a", "parent", "garden"),
        on("b", "child", "garden"),
        on("c", "guest"),
        on("c", "guest2"),
    ]
    managed_seeds = [a_managed_seed("b", "parent"), a_managed_seed("c", "child")]

    moves, stays = planned(*documents, managed_seeds=managed_seeds)

    assert moves == {}
    assert list(stays) == ["parent"]
    shoots = [each for each in documents if each["kind"] == "Shoot"]
    assert hosted_seeds(shoots, managed_seeds) == {
        ObjectKey("shoot", "garden", "parent"): frozenset("bc"),
        ObjectKey("shoot", "garden", "child"): frozenset("c"),
    }


def test_two_moves_never_close_a_circle_together():
    documents = [*(a_backed_seed(name) for name in "abc"), on("a", "for-b", "garden"), on("a", "for-c", "garden")]

    moves, stays = planned(*documents, managed_seeds=[a_managed_seed("b", "for-b"), a_managed_seed("c", "for-c")])

    assert moves == {"for-b": "c"}
    assert list(stays) == ["for-c"]
