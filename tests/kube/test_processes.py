"""The maker of processes is one like any other."""

from pathlib import Path

import pytest

from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.api.document import Document
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from tests.support.builders import a_shoot
from tests.support.control_plane_processes import left_below
from tests.support.maker_conformance import MakerConformance
from tests.support.seed_backends import a_local_backend


class TestProcesses(MakerConformance):
    cuts = (0, 1, 4, 9)
    kills = (3,)  # where a step waits for what it has started; its beginning is that of the others' tests

    @pytest.fixture(autouse=True)
    def _use(self, binaries: str) -> None:
        self.binaries = binaries

    def backend(self, directory: Path) -> SeedBackend:
        settings = ShootBackendSettings(type="processes", binaries=self.binaries)
        return a_local_backend(directory, settings, SystemClock())

    @pytest.mark.timeout(600)  # it starts real control planes a dozen times, which a busy machine is slow at
    def test_a_gardenlet_that_is_killed_in_each_step_leaves_nothing_behind(self, tmp_path: Path) -> None:
        super().test_a_gardenlet_that_is_killed_in_each_step_leaves_nothing_behind(tmp_path)

    def left(self, directory: Path) -> list[str]:
        return left_below(directory)

    def shoot(self) -> Document:
        return a_shoot(spec={"kubernetes": {"version": "1.34.4"}, "provider": {"workers": []}})
