from pathlib import Path
from typing import Any

import pytest

from gardenbus.cli.client.state_collector import collect_state
from gardenbus.cli.migrations.drain import DrainResult, SeedDrain, plan_drain, set_visible
from gardenbus.cli.migrations.runner import Migrations
from gardenbus.cli.simulate.profiles import profiles_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.moves import Move
from gardenbus.common.errors import BadRequest, Forbidden
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.fake_api import FakeApi

BACKUP: Document = {
    "spec": {"backup": {"provider": "aws"}},
    "status": {"conditions": [a_condition("GardenletReady"), a_condition("BackupBucketsReady")]},
}


def seed(name: str, shoots: int = 10, **changes: Any) -> Document:
    return merged(a_seed(name, shoots=shoots), merged(BACKUP, changes))


def placed(name: str, place: str = "a", **changes: Any) -> Document:
    default: Document = {
        "metadata": {"labels": {"shoot.gardener.cloud/status": "healthy"}, "generation": 1},
        "spec": {"seedName": place},
        "status": {
            "seedName": place,
            "observedGeneration": 1,
            "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100},
        },
    }
    return a_shoot(name, **merged(default, changes))


def a_landscape(*documents: Document) -> FakeApi:
    return FakeApi(a_project(), a_cloudprofile(), *documents)


async def drained(bus: FakeApi, name: str = "a", *, at_once: int = 2, timeout_seconds: float = 60) -> DrainResult:
    clock = FakeClock()
    migrations = Migrations(bus.api, clock, at_once=at_once, timeout_seconds=timeout_seconds, notify=lambda _: None)
    return await SeedDrain(bus.api, name, migrations=migrations, clock=clock, timeout_seconds=timeout_seconds).run()


def is_visible(bus: FakeApi, name: str) -> bool:
    return bus.objects["seed", "_", name]["spec"]["settings"]["scheduling"]["visible"]


async def test_a_drained_seed_is_hidden_and_empty():
    bus = a_landscape(seed("a"), seed("b"), seed("c"), *(placed(f"s{number}") for number in range(5)))

    result = await drained(bus)

    assert result.failed is None
    assert list(result.stays) == []
    assert len(result.moved) == 5
    assert not is_visible(bus, "a")
    assert sorted(bus.seed_of(f"s{number}")[1] for number in range(5)) == ["b", "b", "b", "c", "c"]
    assert bus.most_moving <= 2


async def test_what_was_begun_before_is_finished_first():
    bus = a_landscape(seed("a"), seed("b"), placed("begun", spec={"seedName": "b"}), placed("ahead"))

    plan = plan_drain(await collect_state(bus.api), "a")
    result = await drained(bus)

    assert list(plan.leaving) == [Move("garden-dev", "begun", "a", "b")]
    assert [move.name for move in plan.moves] == ["ahead"]
    assert {move.name for move in result.moved} == {"begun", "ahead"}


async def test_shoots_of_a_scheduler_of_its_own_move_by_the_profile_of_a_file(tmp_path: Path):
    file = tmp_path / "scheduler.yaml"
    file.write_text(
        "apiVersion: scheduler.config.gardener.cloud/v1alpha1\nkind: SchedulerConfiguration\n"
        "profiles:\n- schedulerName: mine\n  preset: spread\n"
    )
    bus = a_landscape(seed("a"), seed("b"), placed("s0", spec={"schedulerName": "mine"}))
    state = await collect_state(bus.api)

    assert [stay.name for stay in plan_drain(state, "a").stays] == ["s0"]
    plan = plan_drain(state, "a", profiles_of(file, ()))

    assert plan.moves == [Move("garden-dev", "s0", "a", "b")]
    assert plan.stays == []


def test_a_file_without_a_configuration_of_a_scheduler_has_no_profiles(tmp_path: Path):
    file = tmp_path / "seed.yaml"
    file.write_text("apiVersion: core.gardener.cloud/v1beta1\nkind: Seed\nmetadata: {name: a}\n")
    with pytest.raises(BadRequest, match="has no SchedulerConfiguration"):
        profiles_of(file, ())


async def test_shoots_that_fit_nowhere_stay_and_the_others_move():
    lonely: Any = {"spec": {"seedSelector": {"matchLabels": {"only": "here"}}}}
    bus = a_landscape(seed("a", metadata={"labels": {"only": "here"}}), seed("b"), placed("s0"), placed("s1", **lonely))

    result = await drained(bus)

    assert [move.name for move in result.moved] == ["s0"]
    assert [(stay.name, stay.waits) for stay in result.stays] == [("s1", False)]
    assert not is_visible(bus, "a")


async def test_a_landscape_that_changed_is_planned_for_again():
    bus = a_landscape(seed("a"), seed("b"), placed("s0"))
    bus.rejections = {"s0": (2, "seed b was full for a moment")}

    assert [move.name for move in (await drained(bus)).moved] == ["s0"]

    bus = a_landscape(seed("a"), seed("b"), placed("s0"))
    bus.rejections = {"s0": (99, "seed b does not want it")}
    result = await drained(bus)
    assert result.failed == Move("garden-dev", "s0", "a", "b")
    assert "does not want it" in result.reason


async def test_a_failed_migration_stops_the_drain():
    bus = a_landscape(seed("a"), seed("b"), placed("s0"), placed("s1"))
    bus.failing = {"s0"}

    result = await drained(bus, at_once=1)

    assert result.failed == Move("garden-dev", "s0", "a", "b")
    assert bus.seed_of("s1") == ("a", "a")


async def test_a_shoot_that_is_being_deleted_is_waited_for_as_long_as_a_migration():
    bus = a_landscape(seed("a"), seed("b"), placed("s0", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))

    result = await drained(bus, timeout_seconds=10)

    assert [(stay.name, stay.waits) for stay in result.stays] == [("s0", True)]


async def test_a_seed_whose_gardenlet_is_silent_is_not_drained_nor_hidden():
    silent: Any = {
        "status": {"conditions": [a_condition("GardenletReady", "Unknown"), a_condition("BackupBucketsReady")]}
    }
    bus = a_landscape(seed("a", **silent), seed("b"), placed("s0"))

    with pytest.raises(Forbidden, match="--force"):
        await drained(bus)
    assert is_visible(bus, "a")
    assert bus.questions("bind") == []


async def test_a_seed_is_hidden_and_shown_once():
    bus = a_landscape(seed("a"))

    assert (await set_visible(bus.api, "a", visible=True))[1] is False
    assert (await set_visible(bus.api, "a", visible=False))[1] is True
    assert (await set_visible(bus.api, "a", visible=False))[1] is False
    assert len(bus.questions("patch")) == 1


async def test_shoots_behind_seeds_never_go_to_their_own():
    managed_seed = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "b", "namespace": "garden"},
        "spec": {"shoot": {"name": "host"}},
    }
    host = merged(placed("host"), {"metadata": {"namespace": "garden"}})
    bus = a_landscape(a_project("garden", "garden"), seed("a"), seed("b"), managed_seed, host)

    result = await drained(bus)

    assert [stay.name for stay in result.stays] == ["host"]
