"""Seed backends outside of a gardenlet."""

from pathlib import Path

from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.installed import new_maker
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.backend.port import MakerContext
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from tests.support.clocks import FakeClock


def a_local_backend(
    directory: Path,
    settings: ShootBackendSettings | None = None,
    clock: Clock | None = None,
    files: LocalFiles | None = None,
) -> SeedBackend:
    """The backend that the settings name (the simulation, unless they say otherwise), in a directory."""
    files = files or LocalFiles(directory)
    clock = clock or FakeClock()
    context = MakerContext(directory.name, directory, settings or ShootBackendSettings(), clock, files.owned)
    return SeedBackend(new_maker(context), files, clock)
