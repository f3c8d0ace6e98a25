"""`gardenbus identity`: what it writes, and for whom."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gardenbus.cli.contexts.config import ContextEntry, ContextsConfig, write_config
from gardenbus.cli.contexts.nats_cli import write_nats_context
from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile
from gardenbus.cli.main import app
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import BadRequest
from gardenbus.credentials.certificates import Authority, new_authority
from gardenbus.credentials.new_nkeys import new_nkey
from tests.support.files import open_to_others

runner = CliRunner()
NOW = datetime(2026, 3, 1, tzinfo=UTC)


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


@pytest.mark.parametrize("kind", ["login", "nkey", "certificate"])
def test_a_context_of_gardenbus_becomes_one_of_nats_where_nats_can_come_in_by_it(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GARDENBUS_CONFIG", str(tmp_path / "config.yaml"))
    own = new_nkey("user")
    issued = Authority(new_authority("garden", NOW)).client(Principal("user", "ann"), NOW)
    file = tmp_path / "own"
    file.write_bytes(
        {
            "login": b'{"user": "ann", "password": "s3cret"}',
            "nkey": own.seed.encode(),
            "certificate": issued.certificate + issued.key,
        }[kind]
    )
    entry = ContextEntry(nats_url="nats://lab:4222", credentials=str(file), user="ann" if kind == "nkey" else "")
    write_config(tmp_path / "config.yaml", ContextsConfig("lab", {"lab": entry}))

    result = runner.invoke(app, ["identity", "nats-context"])

    if kind == "certificate":
        assert result.exit_code == 2
        assert "no certificate" in result.output
        return
    assert result.exit_code == 0, result.output
    written = json.loads((tmp_path / "nats/context/gardenbus.json").read_text())
    assert written["inbox_prefix"] == "_INBOX.ann"
    expected = {"user": "ann", "password": "s3cret"} if kind == "login" else {"nkey": str(file)}
    assert expected.items() <= written.items()


@pytest.mark.parametrize("user", ["operator", "relay", "controllermanager", "seed:aws-cork"])
def test_nobody_is_issued_the_name_of_somebody_else(place: Path, tmp_path: Path, user: str):
    result = runner.invoke(
        app, ["identity", "issue", "--user", user, "-o", str(tmp_path / "x.json"), "--dir", str(place)]
    )
    assert result.exit_code == 2
    assert f"--user {user}: that name is for others" in " ".join(result.stderr.split())
    assert not (tmp_path / "x.json").exists()
