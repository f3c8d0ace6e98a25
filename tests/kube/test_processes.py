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

    @pytest.fixture(autouse=True)
    def _use(self, binaries: str) -> None:
        self.binaries = binaries

    def backend(self, directory: Path) -> SeedBackend:
        settings = ShootBackendSettings(type="processes", binaries=self.binaries)
        return a_local_backend(directory, settings, SystemClock())

    def left(self, directory: Path) -> list[str]:
        return left_below(directory)

    def shoot(self) -> Document:
        return a_shoot(spec={"kubernetes": {"version": "1.34.4"}, "provider": {"workers": []}})
