"""`explain apply`: what it prints of the plug-ins, and how it ends."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from gardenbus.cli.commands import options
from gardenbus.cli.main import app
from gardenbus.common.api.document import Document
from tests.support.builders import a_shoot
from tests.support.fake_api import FakeApi

STEPS: list[Document] = [
    {"plugin": "Defaults", "outcome": "changed", "changes": [{"path": "spec.purpose", "after": "evaluation"}]},
    {
        "plugin": "ShootMutator",
        "outcome": "changed",
        "changes": [{"path": "spec.region", "before": "a", "after": "b"}, {"path": "spec.x", "before": ["y" * 99]}],
        "warnings": ["mind it"],
    },
    {"plugin": "ShootValidator", "outcome": "refuses", "messages": ["spec.region: is not offered"]},
    {"plugin": "Bastion", "outcome": "passed"},
    {"plugin": "ManagedSeed", "outcome": "not reached"},
]


@pytest.fixture
def explain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    bus = FakeApi()
    bus.admission = STEPS

    def call(name: str, *words: str) -> Result:
        path = tmp_path / "shoot.yaml"
        path.write_text(yaml.safe_dump(a_shoot(name)))
        monkeypatch.setattr(options, "connected", bus.connected)
        result = CliRunner().invoke(app, ["explain", "apply", str(path), *words, "--nats-url", "nats://nowhere:1"])
        assert bus.objects == {}, "nothing is written"
        return result

    return call


def test_each_change_warning_and_refusal_has_a_row_and_the_others_are_named(explain: Any) -> None:
    result = explain("apollo")
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert (result.exit_code, lines[0]) == (0, "Shoot garden-dev/apollo would be created")
    assert lines[1].split() == ["PLUG-IN", "OUTCOME", "WHAT"]
    assert lines[2].split(maxsplit=2) == ["Defaults", "changed", 'spec.purpose: (none) → "evaluation"']
    assert lines[3].split(maxsplit=2) == ["ShootMutator", "changed", 'spec.region: "a" → "b"']
    assert "… → (none)" in result.stdout
    assert "y" * 61 not in result.stdout, "a long value is cut"
    assert "warned   mind it" in result.stdout
    assert "refuses  spec.region: is not offered" in result.stdout
    assert lines[-2:] == [
        "1 more plug-in had nothing to change or reject: Bastion",
        "1 more plug-in would come after that: ManagedSeed",
    ]


def test_what_would_be_refused_is_said_and_ends_with_1(explain: Any) -> None:
    result = explain("no-name!")
    assert result.exit_code == 1
    assert result.stdout.startswith("Shoot garden-dev/no-name! would be rejected: metadata.name: is no name\n")


def test_programs_get_all_of_it(explain: Any) -> None:
    (created,) = json.loads(explain("apollo", "-o", "json").stdout)
    assert created == {
        "kind": "Shoot",
        "namespace": "garden-dev",
        "name": "apollo",
        "outcome": "created",
        "plugins": STEPS,
    }
    result = explain("no-name!", "-o", "json")
    (rejected,) = json.loads(result.stdout)
    assert (result.exit_code, rejected["outcome"], rejected["error"]["code"]) == (1, "refused", 422)
    assert explain("no-name!", "-o", "name").stdout == "Shoot garden-dev/no-name!\n"


def test_a_shoot_may_be_called_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "connected", FakeApi().connected)
    result = CliRunner().invoke(app, ["explain", "apply", "--nats-url", "nats://nowhere:1"])
    assert "apply" in result.stderr
    assert result.exit_code == 1
