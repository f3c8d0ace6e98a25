"""Each invariant is noticed when it does not hold, and is quiet when it does."""

import copy
from typing import Any

import pytest

from tests.chaos import manifests
from tests.chaos.invariants import (
    ControlPlane,
    ControlPlaneHistory,
    Observation,
    breaches,
    unsettled,
)
from tests.chaos.ledger import Ledger

NAME = "garden-dev/a"
SEEDS = {"seed-0": "region-0", "seed-1": "region-0"}


def stored(name: str = "a", *, value: int = 1, seed: str | None = "seed-0", region: str = "region-0") -> dict[str, Any]:
    document = manifests.shoot(name, region, value)
    document["metadata"] |= {"uid": f"uid-{name}", "generation": 1}
    if seed:
        document["spec"]["seedName"] = seed
        document["status"] = {"seedName": seed, "lastOperation": {"state": "Succeeded"}, "observedGeneration": 1}
    return document


def running(seed: str = "seed-0", name: str = "a", identity: str = "volume") -> ControlPlane:
    return ControlPlane(seed, f"garden-dev/{name}", f"uid-{name}", identity, is_running=True)


def settled() -> Observation:
    return Observation(
        shoots={NAME: stored()},
        allocatable=dict.fromkeys(SEEDS, 1),
        regions=SEEDS,
        control_planes=[running()],
        bindings=[("seed-0", NAME)],
        queued={"outbox": 0},
        delivered={"member-0": 7},
        memory_mb={"relay": 80.0},
        died={"relay": 0},
    )


def acknowledged(value: int = 1) -> Ledger:
    ledger = Ledger()
    ledger.trying(NAME, value)
    ledger.applied(NAME, value)
    return ledger


def kinds(seen: Observation, ledger: Ledger | None = None) -> set[str]:
    found = breaches(seen) + unsettled(seen, ledger or acknowledged(), delivered=7)
    return {violation.kind for violation in found}


def test_nothing_is_said_of_a_landscape_in_which_all_holds() -> None:
    assert kinds(settled()) == set()


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({"shoots": {}, "control_planes": [], "bindings": []}, "lost"),
        ({"shoots": {NAME: stored(value=0)}}, "lost"),
        ({"control_planes": []}, "unbuilt"),
        ({"control_planes": [running("seed-1")]}, "orphaned"),
        ({"control_planes": [running(), running("seed-1")]}, "doubled"),
        ({"control_planes": [running(), running(name="b")]}, "orphaned"),
        ({"bindings": []}, "unannounced"),
        ({"bindings": [("seed-0", NAME), ("seed-1", NAME)]}, "doubled"),
        ({"allocatable": {"seed-0": 0, "seed-1": 1}}, "overfilled"),
        ({"shoots": {NAME: stored(seed=None)}, "control_planes": [], "bindings": []}, "waiting"),
        ({"queued": {"garden.apply": 1}}, "queued"),
        ({"unready": {"relay": "starting"}}, "unready"),
        ({"died": {"relay": 1}}, "died"),
        ({"memory_mb": {"relay": 400.0}}, "memory"),
        ({"delivered": {"member-0": 6}}, "undelivered"),
    ],
)
def test_what_does_not_hold_is_named(change: dict[str, Any], kind: str) -> None:
    seen = settled()
    for field, value in copy.deepcopy(change).items():
        setattr(seen, field, value)

    assert kind in kinds(seen)


def test_a_binding_that_nats_brings_back_for_a_deleted_shoot_has_to_go_again() -> None:
    seen = settled()
    seen.bindings = [("seed-0", NAME), ("seed-1", "garden-dev/deleted")]

    assert kinds(seen) == {"stale"}


def test_a_shoot_that_moves_counts_on_both_seeds() -> None:
    seen = settled()
    moving = stored("b", seed="seed-1")
    moving["status"]["seedName"] = "seed-0"
    seen.shoots = {NAME: stored(), "garden-dev/b": moving}

    assert [each.kind for each in breaches(seen)] == ["overfilled"]


def in_group(name: str, seed: str | None, number: int = 0) -> dict[str, Any]:
    return manifests.kept_apart(stored(name, seed=seed), "trio", number)


def test_members_of_a_group_that_is_kept_apart_share_no_seed_even_while_one_moves() -> None:
    seen = settled()
    seen.allocatable = dict.fromkeys(SEEDS, 5)
    seen.shoots = {NAME: in_group("a", "seed-0"), "garden-dev/b": in_group("b", "seed-1")}
    assert breaches(seen) == []

    seen.shoots["garden-dev/b"]["status"]["seedName"] = "seed-0"
    assert [each.kind for each in breaches(seen)] == ["together"]


def test_a_member_waits_where_only_seeds_of_others_of_its_group_have_room() -> None:
    seen = settled()
    seen.allocatable = {"seed-0": 5, "seed-1": 0}
    seen.shoots = {NAME: in_group("a", "seed-0"), "garden-dev/b": in_group("b", None)}
    assert kinds(seen) == set()

    seen.allocatable["seed-1"] = 1
    assert kinds(seen) == {"waiting"}


def test_an_order_of_unknown_fate_may_have_been_carried_out_or_not() -> None:
    ledger = acknowledged(0)
    ledger.trying(NAME, 1)
    assert kinds(settled(), ledger) == set()

    ledger.applied(NAME, 1)
    assert kinds(settled(), ledger) == set()

    ledger.trying(NAME, 2)
    ledger.applied(NAME, 2)
    assert kinds(settled(), ledger) == {"lost"}


def test_a_deletion_without_effect_is_a_loss_and_a_deletion_of_unknown_fate_is_not() -> None:
    ledger = acknowledged()
    ledger.trying_to_delete(NAME)
    assert kinds(settled(), ledger) == set()
    assert kinds(Observation(), ledger) == set()

    ledger.deleted(NAME)
    assert kinds(settled(), ledger) == {"lost"}

    ledger.forget_gone(set())
    assert ledger.entries == {}


def test_a_control_plane_that_goes_without_an_order_was_torn_down() -> None:
    history, ledger = ControlPlaneHistory(), acknowledged()
    assert history.breaches(settled(), ledger, is_settled=True) == []

    (breach,) = history.breaches(Observation(), ledger, is_settled=False)
    assert breach.kind == "torn down"

    ledger.trying_to_delete(NAME)
    assert history.breaches(Observation(), ledger, is_settled=False) == []


def test_a_control_plane_that_moves_may_be_missing_for_a_moment_but_not_be_built_anew() -> None:
    history, ledger = ControlPlaneHistory(), acknowledged()
    ledger.entries[NAME].is_moving = True
    history.breaches(settled(), ledger, is_settled=True)

    assert history.breaches(Observation(), ledger, is_settled=False) == []
    moved = Observation(control_planes=[running("seed-1")])
    assert history.breaches(moved, ledger, is_settled=True) == []
    anew = Observation(control_planes=[running("seed-1", identity="another")])
    assert [each.kind for each in history.breaches(anew, ledger, is_settled=True)] == ["torn down"]
