"""`gardenbus identity`: what it writes, and for whom."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gardenbus.cli.contexts.nats_cli import write_nats_context
from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile
from gardenbus.cli.main import app
from gardenbus.common.errors import BadRequest
from tests.support.files import open_to_others

runner = CliRunner()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    landscape = LandscapeFile(
        nats_url="nats://127.0.0.1:4222",
        redis_url="redis://127.0.0.1:6379/0",
        state="ready",
        nats_user="operator",
        nats_password="s3cret",
    )
    directory = LandscapeDirectory(tmp_path / "state")
    directory.prepare()
    directory.write(landscape)
    return directory.path


def test_the_nats_command_gets_a_context_of_its_own(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    result = runner.invoke(app, ["identity", "nats-context", "--dir", str(place)])
    assert result.exit_code == 0, result.output
    assert "nats context selected" in result.output
    assert "s3cret" not in result.output
    written = json.loads((tmp_path / "config/nats/context/gardenbus.json").read_text())
    assert written["url"] == "nats://127.0.0.1:4222"
    assert (written["user"], written["password"]) == ("operator", "s3cret")
    assert (tmp_path / "config/nats/context.txt").read_text() == "gardenbus"
    assert open_to_others(tmp_path / "config/nats/context") == []
    assert open_to_others(tmp_path / "config/nats/context.txt") == []


def test_a_context_that_is_not_selected_leaves_the_current_one(tmp_path: Path):
    environ = {"HOME": str(tmp_path)}
    write_nats_context("one", {"url": "nats://one"}, is_selected=True, environ=environ)
    write_nats_context("two", {"url": "nats://two"}, is_selected=False, environ=environ)
    assert (tmp_path / ".config/nats/context.txt").read_text() == "one"


@pytest.mark.parametrize("name", ["", "../escape", "a/b", ".hidden"])
def test_a_name_that_would_lead_elsewhere_is_refused(tmp_path: Path, name: str):
    with pytest.raises(BadRequest, match="no name of a context"):
        write_nats_context(name, {}, is_selected=True, environ={"HOME": str(tmp_path)})


def test_without_a_home_nothing_is_written():
    with pytest.raises(BadRequest, match="set HOME"):
        write_nats_context("one", {}, is_selected=True, environ={})
