"""What somebody else could have put into a state directory is not taken, and no link of theirs is followed."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gardenbus.cli.local.directory import DirectoryForeign, DirectoryUnwritable, LandscapeDirectory
from gardenbus.cli.local.static_fleet import export
from gardenbus.cli.main import app
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest
from gardenbus.credentials import secret_files
from gardenbus.credentials.owned_directories import foreign_path
from gardenbus.embedded.detached import stop_supervisor
from gardenbus.embedded.removal import remove_state

NOBODY = 65534
only_as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def plant_directory(place: Path) -> Path:
    """Somebody else's directory is there first."""
    place.mkdir()
    os.chown(place, NOBODY, NOBODY)
    return place


def plant_key(place: Path) -> Path:
    """An authority whose key somebody else knows."""
    key = place / "identity" / "ca.key"
    key.parent.mkdir(parents=True)
    key.write_text("known to somebody")
    os.chown(key, NOBODY, NOBODY)
    return key


def plant_link(place: Path) -> Path:
    """A link of somebody else, to a directory of root's."""
    (place.parent / "roots").mkdir()
    place.mkdir()
    (place / "nats").symlink_to(place.parent / "roots")
    os.chown(place / "nats", NOBODY, NOBODY, follow_symlinks=False)
    return place / "nats"


def plant_parent(place: Path) -> Path:
    """The directory above is somebody else's, who can put another in the place of what is made in it."""
    os.chown(place.parent, NOBODY, NOBODY)
    return place.parent


@only_as_root
@pytest.mark.parametrize("plant", [plant_directory, plant_key, plant_link, plant_parent])
@pytest.mark.parametrize(
    "begin",
    [LandscapeDirectory.lock, LandscapeDirectory.prepare, remove_state, stop_supervisor],
    ids=["up", "up --detach", "up --fresh", "down"],
)
def test_a_directory_of_somebody_else_is_rejected_with_its_owner_and_left_as_it_is(
    tmp_path: Path, plant: Callable[[Path], Path], begin: Callable[[LandscapeDirectory], object]
) -> None:
    (tmp_path / "home").mkdir()
    planted = plant(tmp_path / "home" / ".gardenbus")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DirectoryForeign) as rejection:
        begin(LandscapeDirectory(tmp_path / "home" / ".gardenbus"))
    assert str(rejection.value).startswith(f"{planted} belongs to nobody")
    assert sorted(tmp_path.rglob("*")) == before


@only_as_root
@pytest.mark.parametrize("command", [["up"], ["up", "--detach"], ["up", "--fresh"], ["down"], ["down", "--purge"]])
def test_the_command_says_whose_it_is(tmp_path: Path, command: list[str]) -> None:
    place = plant_directory(tmp_path / "planted")
    result = CliRunner().invoke(app, [*command, "--dir", str(place)])
    assert result.exit_code == 1
    assert "belongs to nobody" in " ".join(result.output.split())
    assert not list(place.iterdir())


@only_as_root
def test_a_link_to_a_directory_of_somebody_else_leads_there(tmp_path: Path) -> None:
    plant_directory(tmp_path / "theirs")
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    with pytest.raises(DirectoryForeign, match="theirs belongs to nobody"):
        LandscapeDirectory(tmp_path / "link").lock()


@only_as_root
def test_keys_that_somebody_else_planted_are_not_exported(tmp_path: Path) -> None:
    (tmp_path / "services").mkdir()
    (tmp_path / "services" / "relay.nk").write_text("SU")
    os.chown(tmp_path / "services" / "relay.nk", NOBODY, NOBODY)
    with pytest.raises(BadRequest, match=r"relay\.nk belongs to nobody"):
        export(tmp_path, [], Subjects())


def test_what_is_ones_own_or_roots_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = LandscapeDirectory(tmp_path / "own")
    os.close(place.lock())
    place.prepare()
    assert foreign_path(tmp_path, tmp_path.iterdir()) is None
    if os.geteuid() == 0:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        assert foreign_path(tmp_path, tmp_path.iterdir()) is None


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "target").write_text("kept")
    (tmp_path / "state" / "up.lock").symlink_to(tmp_path / "target")
    with pytest.raises(DirectoryUnwritable, match="cannot write"):
        LandscapeDirectory(tmp_path / "state").lock()
    assert (tmp_path / "target").read_text() == "kept"


def test_a_link_is_no_directory_of_keys(tmp_path: Path) -> None:
    (tmp_path / "authority").mkdir(mode=0o755)
    (tmp_path / "authority").chmod(0o755)
    (tmp_path / "holder").symlink_to(tmp_path / "authority")
    with pytest.raises(OSError, match="holder"):
        secret_files.make_directory(tmp_path / "holder")
    assert (tmp_path / "authority").stat().st_mode & 0o777 == 0o755
