"""`up --fresh` and `down --purge` remove what a landscape left behind, and never anything else."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile
from gardenbus.cli.main import app
from gardenbus.embedded.removal import NotALandscape, remove_state

runner = CliRunner()


def a_stopped_landscape(path: Path) -> LandscapeDirectory:
    directory = LandscapeDirectory(path)
    os.close(directory.lock())
    directory.prepare()
    directory.write(LandscapeFile(nats_url="nats://127.0.0.1:1", redis_url="redis://127.0.0.1:1", state="stopped"))
    (directory.redis / "appendonly.aof").write_text("state")
    (directory.gardenlets / "earth").mkdir()
    return directory


def test_everything_of_a_landscape_goes(tmp_path: Path):
    directory = a_stopped_landscape(tmp_path / "state")

    assert remove_state(directory)

    assert list(tmp_path.iterdir()) == []


def test_the_start_of_a_landscape_that_failed_is_removed_too(tmp_path: Path):
    directory = a_stopped_landscape(tmp_path / "state")
    directory.landscape_file.unlink()

    assert remove_state(directory)


def test_nothing_is_there_to_remove(tmp_path: Path):
    assert not remove_state(LandscapeDirectory(tmp_path / "state"))
    assert not remove_state(LandscapeDirectory(tmp_path))


@pytest.mark.parametrize("foreign", ["thesis.txt", ".git", "node_modules"])
def test_a_directory_with_anything_else_is_left_alone(tmp_path: Path, foreign: str):
    directory = a_stopped_landscape(tmp_path / "state")
    (directory.path / foreign).mkdir()

    with pytest.raises(NotALandscape, match=foreign):
        remove_state(directory)

    assert (directory.redis / "appendonly.aof").exists()
    assert directory.landscape_file.exists()


def test_folders_of_the_same_names_make_no_landscape(tmp_path: Path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "config").mkdir()

    with pytest.raises(NotALandscape):
        remove_state(LandscapeDirectory(tmp_path))

    assert (tmp_path / "logs").exists()


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path):
    directory = a_stopped_landscape(tmp_path / "state")
    elsewhere = tmp_path / "elsewhere"
    directory.redis.rename(elsewhere)
    directory.redis.symlink_to(elsewhere)

    assert remove_state(directory)

    assert (elsewhere / "appendonly.aof").exists()


def test_up_fresh_refuses_while_the_landscape_runs(tmp_path: Path):
    directory = a_stopped_landscape(tmp_path / "state")
    lock = directory.lock()
    try:
        for detached in ([], ["--detach"]):
            result = runner.invoke(app, ["up", "--fresh", *detached, "--dir", str(directory.path)])

            assert result.exit_code == 1
            assert "in use by another" in result.stderr
            assert "gardenbus down" in result.stderr
    finally:
        os.close(lock)
    assert (directory.redis / "appendonly.aof").exists()


def test_up_fresh_does_not_begin_in_a_directory_that_is_not_ours(tmp_path: Path):
    (tmp_path / "thesis.txt").touch()

    result = runner.invoke(app, ["up", "--fresh", "--dir", str(tmp_path)])

    assert result.exit_code == 1
    assert "thesis.txt" in result.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]


def test_servers_of_others_are_not_emptied(tmp_path: Path):
    result = runner.invoke(app, ["up", "--fresh", "--dir", str(tmp_path), "--redis-url", "redis://127.0.0.1:1"])

    assert result.exit_code == 2
    assert "--fresh" in result.stderr


def test_down_purge_removes_the_state_and_says_so(tmp_path: Path):
    directory = a_stopped_landscape(tmp_path / "state")

    first = runner.invoke(app, ["down", "--purge", "--dir", str(directory.path)])
    second = runner.invoke(app, ["down", "--purge", "--dir", str(directory.path)])

    assert (first.exit_code, second.exit_code) == (0, 1)
    assert "its state was removed" in first.stdout
    assert f"no landscape in {directory.path}" in second.stderr
    assert not directory.path.exists()


def test_down_alone_keeps_the_state(tmp_path: Path):
    directory = a_stopped_landscape(tmp_path / "state")

    assert runner.invoke(app, ["down", "--dir", str(directory.path)]).exit_code == 0

    assert (directory.redis / "appendonly.aof").exists()
