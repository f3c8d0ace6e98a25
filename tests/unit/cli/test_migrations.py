from typing import Any

import pytest

from gardenbus.cli.migrations.runner import OUTAGE_SECONDS, MigrationEvent, Migrations, migration_status
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.moves import Move
from gardenbus.common.errors import Unavailable
from tests.support.builders import a_condition, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.fake_api import FakeApi

HEALTHY = {"labels": {"shoot.gardener.cloud/status": "healthy"}, "generation": 1}


def placed(name: str, seed: str = "a", **changes: Any) -> Document:
    default: Document = {
        "metadata": HEALTHY,
        "spec": {"seedName": seed},
        "status": {
            "seedName": seed,
            "observedGeneration": 1,
            "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100},
        },
    }
    return a_shoot(name, **merged(default, changes))


def a_move(name: str, source: str = "a", target: str = "b") -> Move:
    return Move("garden-dev", name, source, target)


class Trip:
    """Migrations on an answering bus, and what they told."""

    def __init__(self, bus: FakeApi, *, at_once: int = 2, timeout_seconds: float = 60) -> None:
        self.events: list[MigrationEvent] = []
        self.clock = FakeClock()
        self.migrations = Migrations(
            bus.api, self.clock, at_once=at_once, timeout_seconds=timeout_seconds, notify=self.events.append
        )

    def shoots_in(self, stage: str) -> list[str]:
        return [event.move.name for event in self.events if event.stage == stage]


async def test_shoots_move_some_at_once_and_are_waited_for():
    bus = FakeApi(*(placed(f"s{number}") for number in range(5)))
    trip = Trip(bus, at_once=2)
    moves = [a_move(f"s{number}") for number in range(5)]

    outcome = await trip.migrations.carry_out(moves)

    assert set(outcome.done) == set(moves)
    assert outcome.failed is None
    assert all(bus.seed_of(f"s{number}") == ("b", "b") for number in range(5))
    assert bus.most_moving == 2
    assert trip.shoots_in("begun") == [f"s{number}" for number in range(5)]
    assert sorted(trip.shoots_in("done")) == [f"s{number}" for number in range(5)]


async def test_the_first_failure_begins_nothing_more():
    bus = FakeApi(placed("s0"), placed("s1"), placed("s2"), reads_until_restored=5)
    bus.failing = {"s0"}
    trip = Trip(bus)

    outcome = await trip.migrations.carry_out([a_move("s0"), a_move("s1"), a_move("s2")])

    assert outcome.failed == a_move("s0")
    assert "no backup" in outcome.reason
    assert list(outcome.under_way) == [a_move("s1")]
    assert bus.seed_of("s2") == ("a", "a")


async def test_a_migration_that_does_not_end_has_failed():
    bus = FakeApi(placed("s0"))
    bus.stuck = {"s0"}

    outcome = await Trip(bus, timeout_seconds=30).migrations.carry_out([a_move("s0")])

    assert outcome.failed == a_move("s0")
    assert "has not ended after 30 s: Migrate Processing" in outcome.reason


async def test_what_is_under_way_already_is_accompanied_and_not_bound_again():
    bus = FakeApi(placed("s0", spec={"seedName": "b"}))

    outcome = await Trip(bus).migrations.carry_out([a_move("s0")])

    assert list(outcome.done) == [a_move("s0")]
    assert bus.questions("bind") == []


async def test_shoots_that_are_gone_or_elsewhere_are_passed_over():
    bus = FakeApi(placed("elsewhere", "c"), placed("s0"))
    trip = Trip(bus)

    outcome = await trip.migrations.carry_out([a_move("gone"), a_move("elsewhere"), a_move("s0")])

    assert list(outcome.done) == [a_move("s0")]
    assert trip.shoots_in("gone") == ["gone", "elsewhere"]


async def test_a_change_in_between_means_to_look_again():
    bus = FakeApi(placed("s0"))
    changes = 3

    def change(shoot: Document) -> None:
        nonlocal changes
        if changes:
            changes -= 1
            bus.put(shoot)

    bus.on_bind = change

    outcome = await Trip(bus).migrations.carry_out([a_move("s0")])

    assert list(outcome.done) == [a_move("s0")]
    assert len(bus.questions("bind")) == 4


async def test_a_refused_bind_is_tried_again_when_another_migration_has_ended():
    bus = FakeApi(placed("s0"), placed("s1"))
    bus.rejections = {"s1": (2, "seed b has no capacity left")}

    outcome = await Trip(bus).migrations.carry_out([a_move("s0"), a_move("s1")])

    assert list(outcome.done) == [a_move("s0"), a_move("s1")]


async def test_a_bind_that_is_refused_with_nothing_under_way_ends_it():
    bus = FakeApi(placed("s0"))
    bus.rejections = {"s0": (9, "seed b has no capacity left")}

    outcome = await Trip(bus).migrations.carry_out([a_move("s0")])

    assert outcome.is_rejected
    assert outcome.failed == a_move("s0")
    assert outcome.reason == "seed b has no capacity left"


async def test_short_outages_are_sat_out_and_long_ones_are_not():
    bus = FakeApi(placed("s0"))
    bus.outages = 20
    assert list((await Trip(bus).migrations.carry_out([a_move("s0")])).done) == [a_move("s0")]

    bus = FakeApi(placed("s0"))
    bus.outages = 1_000_000
    trip = Trip(bus)
    with pytest.raises(Unavailable):
        await trip.migrations.carry_out([a_move("s0")])
    assert trip.clock.monotonic() >= OUTAGE_SECONDS


async def test_a_shoot_that_was_not_healthy_need_not_be_afterwards():
    bus = FakeApi(placed("s0", metadata={"labels": {"shoot.gardener.cloud/status": "unhealthy"}}))

    assert list((await Trip(bus).migrations.carry_out([a_move("s0")])).done) == [a_move("s0")]


@pytest.mark.parametrize(
    ("changes", "stage", "words"),
    [
        ({}, "done", ""),
        ({"spec": {"seedName": "a"}}, "gone", ""),
        ({"metadata": {"generation": 2}}, "going", "Reconcile Succeeded"),
        ({"metadata": {"labels": {"shoot.gardener.cloud/status": "progressing"}}}, "going", "progressing"),
        ({"status": {"lastOperation": {"type": "Restore", "state": "Failed"}}}, "failed", "Restore Failed"),
        ({"status": {"lastOperation": {"state": "Failed"}}}, "going", "Reconcile Failed"),
        (
            {
                "status": {
                    "seedName": "a",
                    "constraints": [a_condition("ReadyForMigration", "False", message="it is not ready")],
                }
            },
            "going",
            "ReadyForMigration: it is not ready",
        ),
    ],
)
def test_how_far_a_migration_is(changes: Any, stage: str, words: str):
    shoot = merged(placed("s0", "b"), changes)

    status = migration_status(shoot, a_move("s0"), must_be_healthy=True)

    assert status.stage == stage
    assert words in status.words
