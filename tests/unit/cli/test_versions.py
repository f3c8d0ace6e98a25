"""`version`: the client's, and the services'."""

import json
from importlib.metadata import version
from pathlib import Path

from typer.testing import CliRunner

from gardenbus.cli.commands.version import service_versions
from gardenbus.cli.main import app


def test_the_clients_version_needs_no_landscape():
    shown = CliRunner().invoke(app, ["version", "--client", "-o", "json"])

    assert (shown.exit_code, json.loads(shown.stdout)) == (0, {"clientVersion": version("gardenbus")})


def test_without_a_landscape_the_clients_version_is_shown_and_the_end_is_3(tmp_path: Path):
    shown = CliRunner().invoke(app, ["version", "--dir", str(tmp_path)])

    assert shown.exit_code == 3
    assert shown.stdout.splitlines()[1].split() == ["client", version("gardenbus")]
    assert "no landscape" in shown.stderr


def test_replicas_are_counted_by_service_and_version():
    responses = [{"name": "relay", "version": "1"}, {"name": "api", "version": "1"}, {"name": "api", "version": "1"}]

    assert service_versions([*responses, {"name": "api", "version": "2"}]) == [
        {"name": "api", "version": "1", "replicas": 2},
        {"name": "api", "version": "2", "replicas": 1},
        {"name": "relay", "version": "1", "replicas": 1},
    ]
