"""The simulation is a maker like any other; makers are found by their entry points."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from gardenbus.agent.installed_backends import backend_entry_points
from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.errors import SettingsInvalid
from gardenbus.gardenlet.backend.local import LocalMaker
from gardenbus.gardenlet.backend.port import MakerContext, StepRequest
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.domain.operations import ObservedShoot
from tests.support.builders import a_shoot
from tests.support.clocks import FakeClock
from tests.support.entry_points import installed
from tests.support.maker_conformance import MakerConformance
from tests.support.seed_backends import a_local_backend


class TestTheSimulation(MakerConformance):
    def backend(self, directory: Path) -> SeedBackend:
        return a_local_backend(directory, ShootBackendSettings(step_seconds=0))

    def left(self, directory: Path) -> list[str]:
        del self
        return []


async def test_a_shoot_that_shall_sleep_does_and_is_not_looked_at(tmp_path: Path) -> None:
    maker = LocalMaker(
        MakerContext("aws-eu1", tmp_path, ShootBackendSettings(step_seconds=0), FakeClock(), nullcontext)
    )
    shoot = a_shoot(
        spec={"hibernation": {"enabled": True}},
        metadata={"annotations": {"local.backend.gardenbus.io/unhealthy": "APIServerAvailable=Down."}},
    )
    observed = ObservedShoot.of(shoot, uid="u", version=1, role="run")
    request = StepRequest(("garden-dev", "apollo"), "u", "control-plane", "Create", observed, {})
    result = await maker.make(request)
    assert result == {"hibernated": True}
    assert await maker.problems(observed, {"control-plane": result}) == {}
    assert await maker.problems(observed, {}) == {"APIServerAvailable": "Down."}


def test_a_backend_that_is_not_installed_is_named_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid) as error:
        a_local_backend(tmp_path / "grove", ShootBackendSettings(type="aws"))
    (problem,) = error.value.problems
    assert problem.startswith("seed grove: backend.type: must be one of")
    assert "is 'aws'" in problem


def test_a_backend_of_ones_own_is_found_through_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, "mine", "my_backend:Mine")
    installed(tmp_path, "broken", "no_such_module:Mine")
    (tmp_path / "my_backend.py").write_text(
        "from gardenbus.gardenlet.backend.local import LocalMaker\n\n\nclass Mine(LocalMaker):\n"
        "    kubernetes_version = '1.99.0'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))  # pyright: ignore[reportUnknownMemberType]
    backend_entry_points.cache_clear()
    try:
        assert a_local_backend(tmp_path, ShootBackendSettings(type="mine")).kubernetes_version == "1.99.0"
        with pytest.raises(SettingsInvalid, match="cannot be loaded"):
            a_local_backend(tmp_path, ShootBackendSettings(type="broken"))
    finally:
        backend_entry_points.cache_clear()


def test_a_maker_reads_the_whole_spec() -> None:
    observed = ObservedShoot.of(a_shoot(spec={"kubernetes": {"version": "1.34.4"}}), uid="u1", version=1, role="run")
    assert observed.spec["kubernetes"]["version"] == "1.34.4"
    assert observed.spec["cloudProfile"] == a_shoot()["spec"]["cloudProfile"]
