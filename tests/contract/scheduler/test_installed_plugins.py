"""Plug-ins beside a scheduler: what they return counts, and a fault of theirs holds up their class alone."""

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.api.garden.scheduling_profiles import (
    InstalledPlugin,
    OnError,
    SchedulingProfile,
    WeightedScore,
)
from gardenbus.common.errors import SettingsInvalid
from gardenbus.diagnostics.services import assess_given_up
from gardenbus.scheduler.watch.installed_plugins import ENTRY_POINT_GROUP, load_plugins
from tests.contract.scheduler.test_plugins import explain, infos_of, pending_because, placed
from tests.contract.scheduler.test_scheduler import Garden
from tests.support.builders import a_project, a_seed, a_shoot
from tests.support.eventually import HANG_SECONDS, eventually

EXAMPLES = Path(__file__).parents[3] / "examples/profiles"


def a_profile(on_error: OnError = "Ignore", **args: Any) -> SchedulingProfile:
    return SchedulingProfile(scores=(WeightedScore("Installed/tiers", 1, InstalledPlugin(on_error=on_error, **args)),))


class Scores:
    """A plug-in of one function, which scores."""

    def __init__(self, score: Callable[[str], object]) -> None:
        self._score = score

    def score(self, _shoot: dict[str, str], seed: dict[str, Any]) -> object:
        return self._score(seed["metadata"]["name"])


class Filters:
    """A plug-in of one function, which filters."""

    def __init__(self, reason: object) -> None:
        self._reason = reason

    def filter(self, _shoot: dict[str, str], _seed: dict[str, Any]) -> object:
        return self._reason


class Permits:
    """A plug-in of one function, which permits."""

    def __init__(self, permit: Callable[[dict[str, str], dict[str, Any]], object]) -> None:
        self.permit = permit


_numbers = itertools.count()


def distribution(folder: Path, target: str) -> None:
    """A distribution with one entry point, as pip installs it."""
    metadata = folder / "tiers-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: tiers\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{ENTRY_POINT_GROUP}]\ntiers = {target}\n")


async def test_the_example_is_found_by_its_entry_point_and_decides(
    garden: Garden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "tiers:Tiers")
    for folder in (EXAMPLES, tmp_path):
        monkeypatch.syspath_prepend(str(folder))  # pyright: ignore[reportUnknownMemberType]
    profile = a_profile(deadline_seconds=5.0)
    await garden.hold(a_seed("a"), *(a_seed(tier, metadata={"labels": {"tier": tier}}) for tier in ("gold", "silver")))
    async with garden.scheduler(profiles=(profile,), installed=load_plugins((profile,))):
        for purpose, seed in {"production": "gold", "evaluation": "silver", "testing": "silver"}.items():
            await garden.hold(a_shoot(purpose, spec={"purpose": purpose}))
            assert await placed(garden, purpose) == seed
        explained = await explain(garden, "testing")
    assert [(each["seed"], each["scores"]) for each in explained["ranking"]] == [("silver", [100]), ("a", [40])]
    assert [(each["seed"], each["detail"]) for each in explained["rejections"]] == [
        ("gold", "tiers: seeds of tier gold are not for testing")
    ]
    assert explained["plugins"][0]["name"] == "Installed/tiers"


def raises(_seed: str) -> object:
    raise RuntimeError("the file of prices is not there")


FAULTS = {
    "raises": Scores(raises),
    "above": Scores(lambda seed: 101 if seed == "b" else 0),
    "below": Scores(lambda seed: -1 if seed == "a" else 0),
    "fraction": Scores(lambda _: 50.5),
    "truth": Scores(lambda seed: seed == "b"),
    "no text": Filters(reason=True),
    "no reason": Filters(""),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_that_is_ignored_places_shoots_as_if_there_were_no_plugin(garden: Garden, fault: str) -> None:
    await garden.hold(a_seed("a"), a_seed("b"), a_shoot("first"))
    async with garden.scheduler(profiles=(a_profile(),), installed={"tiers": FAULTS[fault]}):
        assert await placed(garden, "first") == "a"


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_of_a_required_plugin_leaves_its_shoots_waiting_with_its_name(garden: Garden, fault: str) -> None:
    await garden.hold(a_seed("a"), a_seed("b"), a_shoot("first"))
    async with garden.scheduler(profiles=(a_profile("Fail"),), installed={"tiers": FAULTS[fault]}):
        reason = await pending_because(garden, "first")
    assert "the plug-in tiers is required, and there is no valid reply of it" in reason


async def test_a_call_that_hangs_holds_up_no_other_profile_and_its_own_for_the_deadline_alone(garden: Garden) -> None:
    released = threading.Event()
    hangs = Scores(lambda _: released.wait() and 0)
    other = SchedulingProfile(scheduler_name="other")
    await garden.hold(a_project("other"), a_seed("a"), a_seed("b"))
    try:
        async with garden.scheduler(profiles=(a_profile(), other), installed={"tiers": hangs}):
            await garden.hold(a_shoot("first"), a_shoot("second", "garden-other"))
            await garden.hold(a_shoot("third", spec={"schedulerName": "other"}))
            assert await placed(garden, "third")
            assert await placed(garden, "first") == "a"
            assert await placed(garden, "second", "garden-other") == "a"
    finally:
        released.set()


async def test_a_plugin_whose_calls_hang_is_given_up_after_three_and_taken_back_when_one_returns(
    garden: Garden,
) -> None:
    released, threads = threading.Event(), list[str]()

    def permit(shoot: dict[str, str], _seed: dict[str, Any]) -> None:
        threads.append(shoot["name"])
        released.wait()

    profile = a_profile(points=("Permit",), deadline_seconds=0.05)
    await garden.hold(a_seed("a"))
    try:
        async with garden.scheduler(profiles=(profile,), installed={"tiers": Permits(permit)}):
            for number in range(5):
                await garden.hold(a_shoot(f"s{number}"))
                assert await placed(garden, f"s{number}") == "a"
            assert len(threads) == 3

            async def doctor_warns(*found: str) -> None:
                assert [each.found for each in assess_given_up(await infos_of(garden))] == list(found)

            await eventually(
                lambda: doctor_warns("default-scheduler: tiers is given up, as its calls do not return"), every=0.05
            )
            released.set()

            async def taken_back() -> None:
                name = f"again{len(threads)}-{next(_numbers)}"
                await garden.hold(a_shoot(name))
                await placed(garden, name)
                assert name in threads

            await eventually(taken_back, every=0.5)
            await eventually(doctor_warns, every=0.05)
    finally:
        released.set()


async def test_a_bind_waits_for_its_permit_and_says_who_denies_it(garden: Garden) -> None:
    results: dict[str, object] = {"first": "no budget", "second": 0.2, "third": None}

    def permit(shoot: dict[str, str], seed: dict[str, Any]) -> object:
        requested.append((shoot["name"], shoot["namespace"], seed["metadata"]["name"]))
        return results.pop(shoot["name"], None) if shoot["name"] == "second" else results[shoot["name"]]

    requested: list[tuple[str, str, str]] = []
    profile = a_profile(points=("Permit",), deadline_seconds=HANG_SECONDS)
    await garden.hold(a_seed("a"))
    async with garden.scheduler(profiles=(profile,), installed={"tiers": Permits(permit)}):
        await garden.hold(*(a_shoot(name) for name in results))
        assert await placed(garden, "third") == "a"
        assert "tiers denies seed a: no budget" in await pending_because(garden, "first")
        assert await placed(garden, "second") == "a"  # after 0.2 s, where its backoff is a minute
    assert requested.count(("second", "garden-dev", "a")) == 2


PERMIT_FAULTS: dict[str, Callable[[str], object]] = {
    "raises": raises,
    "true": lambda _: True,
    "no reason": lambda _: "",
    "never": lambda _: -1.0,
}


@pytest.mark.parametrize("fault", PERMIT_FAULTS)
@pytest.mark.parametrize("on_error", ["Ignore", "Fail"])
async def test_of_a_permit_that_cannot_be_meant_its_policy_decides(
    garden: Garden, fault: str, on_error: OnError
) -> None:
    plugin = Permits(lambda shoot, _seed: PERMIT_FAULTS[fault](shoot["name"]))
    profile = a_profile(on_error, points=("Permit",), deadline_seconds=HANG_SECONDS)
    await garden.hold(a_seed("a"), a_shoot("first"))
    async with garden.scheduler(profiles=(profile,), installed={"tiers": plugin}):
        if on_error == "Ignore":
            assert await placed(garden, "first") == "a"
        else:
            assert "the plug-in tiers is required" in await pending_because(garden, "first")


async def test_a_permit_that_hangs_holds_up_no_other_class_and_holds_no_place(garden: Garden) -> None:
    released = threading.Event()
    other = SchedulingProfile(scheduler_name="other")
    profile = a_profile("Fail", points=("Permit",), deadline_seconds=HANG_SECONDS)
    await garden.hold(a_seed("a", status={"allocatable": {"shoots": "1"}}))
    try:
        plugin = Permits(lambda _shoot, _seed: released.wait() and None)
        async with garden.scheduler(profiles=(profile, other), installed={"tiers": plugin}):
            await garden.hold(a_shoot("first"))
            await garden.hold(a_shoot("third", spec={"schedulerName": "other"}))
            assert await placed(garden, "third") == "a"
            released.set()
            assert "full" in (await pending_because(garden, "first")).replace("no capacity left", "full")
    finally:
        released.set()


async def test_each_bind_is_reported_once_and_what_it_raises_changes_nothing(garden: Garden) -> None:
    reported: list[tuple[str, str]] = []

    class Reported:
        """A plug-in to which binds are reported."""

        def bound(self, shoot: dict[str, str], seed: dict[str, Any]) -> None:
            reported.append((shoot["name"], seed["metadata"]["name"]))
            raise RuntimeError(shoot["name"])

    names = [f"s{number}" for number in range(20)]
    profile = a_profile("Fail", points=("PostBind",))
    await garden.hold(a_seed("a"))
    async with garden.scheduler(profiles=(profile,), installed={"tiers": Reported()}):
        await garden.hold(*map(a_shoot, names))
        for name in names:
            assert await placed(garden, name) == "a"

        async def all_reported() -> None:
            assert sorted(reported) == sorted((name, "a") for name in names)

        await eventually(all_reported)


def test_a_plugin_without_the_method_of_one_of_its_points_is_named_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distribution(tmp_path, "tiers:Tiers")
    for folder in (EXAMPLES, tmp_path):
        monkeypatch.syspath_prepend(str(folder))  # pyright: ignore[reportUnknownMemberType]
    with pytest.raises(SettingsInvalid) as missing:
        load_plugins((a_profile(points=("Score", "Permit")),))
    assert "Installed/tiers has the point Permit and no method permit(shoot, seed)" in str(missing.value)


async def test_a_plugin_overfills_no_seed(garden: Garden) -> None:
    await garden.hold(a_seed("a", status={"allocatable": {"shoots": "1"}}), a_seed("b"))
    prefers_a = Scores(lambda seed: 100 if seed == "a" else 0)
    async with garden.scheduler(profiles=(a_profile(deadline_seconds=5.0),), installed={"tiers": prefers_a}):
        await garden.hold(a_shoot("first"))
        assert await placed(garden, "first") == "a"
        await garden.hold(a_shoot("second"))
        assert await placed(garden, "second") == "b"


def test_a_plugin_that_is_not_installed_or_none_is_named_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsInvalid) as missing:
        load_plugins((a_profile(),))
    assert "Installed/tiers has no entry point in the group gardenbus.scheduler.plugins" in str(missing.value)
    distribution(tmp_path, "pathlib:Path")
    monkeypatch.syspath_prepend(str(tmp_path))  # pyright: ignore[reportUnknownMemberType]
    with pytest.raises(SettingsInvalid) as other:
        load_plugins((a_profile(),))
    assert "it is no plug-in: it must have score(shoot, seed) or filter(shoot, seed)" in str(other.value)
