"""The backend of docs/backends.md is complete, 40 lines long, found by its entry point, and behaves as all do."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gardenbus.agent.installed_backends import backend_entry_points
from gardenbus.common.api.configuration.gardenlet import ShootBackendSettings
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from tests.support.entry_points import installed
from tests.support.maker_conformance import MakerConformance
from tests.support.seed_backends import a_local_backend
from tests.support.sessions import ROOT

SOURCE = ROOT / "examples" / "backend" / "sqlite_backend.py"
PAGE = ROOT / "docs" / "backends.md"


@pytest.fixture(autouse=True)
def beside_the_gardenlet(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Installed as the page says, with the entry point that it shows."""
    found = re.search(r'^(\w+) = "(sqlite_backend:\w+)"$', PAGE.read_text(), re.MULTILINE)
    assert found
    folder = tmp_path_factory.mktemp("site")
    installed(folder, *found.groups())
    for path in (folder, SOURCE.parent):
        monkeypatch.syspath_prepend(str(path))  # pyright: ignore[reportUnknownMemberType]
    backend_entry_points.cache_clear()
    yield
    backend_entry_points.cache_clear()


class TestTheBackendOfThePage(MakerConformance):
    def backend(self, directory: Path) -> SeedBackend:
        return a_local_backend(directory, ShootBackendSettings(type="sqlite"))

    def left(self, directory: Path) -> list[str]:
        return [str(path) for path in directory.glob("*.sqlite*")]

    async def test_the_database_has_the_spec_and_its_loss_is_a_problem(self, tmp_path: Path) -> None:
        backend = await self.a_life(tmp_path, 1)
        await self.run(backend, "Create", 1)
        (file,) = tmp_path.glob("*.sqlite")
        with closing(sqlite3.connect(file)) as database:
            ((spec,),) = database.execute("SELECT spec FROM shoot").fetchall()
        assert json.loads(spec) == self.observed().spec
        file.unlink()
        assert await backend.problems(self.observed()) == {"ControlPlaneHealthy": "Its database is gone."}
        await backend.stop()


def test_the_page_shows_the_file_as_it_is_and_it_has_at_most_40_lines() -> None:
    source = SOURCE.read_text()
    assert f"```python\n{source}```" in PAGE.read_text()
    assert len(source.splitlines()) <= 40
