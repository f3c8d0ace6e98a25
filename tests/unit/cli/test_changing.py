"""`edit`, `patch`, `label`, `annotate`: what they send, and what they say."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from gardenbus.cli.commands import options
from gardenbus.cli.main import app
from tests.support.builders import a_seed, a_shoot, merged
from tests.support.fake_api import FakeApi

AT = ("shoot", "apollo", "-n", "garden-dev")
Call = Callable[..., Result]


@pytest.fixture
def bus() -> FakeApi:
    shoot = a_shoot("apollo", metadata={"labels": {"tier": "gold", "old": "1"}}, spec={"purpose": "evaluation"})
    seed = a_seed("aws", metadata={"labels": {"env": "dev"}})
    return FakeApi(seed, merged(shoot, {"status": {"seedName": shoot["spec"].get("seedName")}}))


@pytest.fixture
def call(bus: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Call:
    monkeypatch.setattr(options, "connected", bus.connected)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def gardenbus(*words: str) -> Result:
        return CliRunner().invoke(app, [*words, "--nats-url", "nats://nowhere:1"])

    return gardenbus


def apollo(bus: FakeApi) -> Mapping[str, Any]:
    return bus.objects["shoot", "garden-dev", "apollo"]


def an_editor(directory: Path, script: str) -> str:
    file = directory / "editor"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


def test_a_label_is_set_on_the_version_that_was_seen(bus: FakeApi, call: Call):
    result = call("label", *AT, "team=red")

    assert (result.exit_code, result.stdout) == (0, "Shoot garden-dev/apollo configured\n")
    assert bus.questions("patch") == [{"metadata": {"labels": {"team": "red"}, "resourceVersion": "1"}}]
    assert apollo(bus)["metadata"]["labels"]["team"] == "red"


def test_a_label_with_another_value_stays_unless_it_is_to_be_overwritten(bus: FakeApi, call: Call):
    rejected = call("label", *AT, "tier=iron")

    assert rejected.exit_code == 1
    assert "has tier (gold) already: --overwrite changes it" in rejected.stderr
    assert bus.questions("patch") == []
    assert call("label", *AT, "tier=iron", "old-", "--overwrite").exit_code == 0
    assert bus.questions("patch") == [{"metadata": {"labels": {"tier": "iron", "old": None}}}]


def test_labels_go_to_all_that_a_selector_chooses(bus: FakeApi, call: Call):
    assert call("label", "seeds", "-l", "env=dev", "env=test", "--overwrite").exit_code == 0

    assert ("list.seed", {"limit": 500, "labelSelector": "env=dev"}) in bus.requests
    assert bus.objects["seed", "_", "aws"]["metadata"]["labels"]["env"] == "test"


def test_an_annotation_is_set(bus: FakeApi, call: Call):
    assert call("annotate", *AT, "gardener.cloud/operation=reconcile").exit_code == 0

    assert apollo(bus)["metadata"]["annotations"]["gardener.cloud/operation"] == "reconcile"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["label", *AT], "KEY=VALUE"),
        (["label", "shoot", "a=b"], "names or -l, one of them"),
        (["annotate", "shoot", "apollo", "-l", "a=b", "a=c"], "names or -l, not both"),
        (["label", "--dry-run=client", *AT, "a=b"], "server or none"),
        (["patch", *AT], "-p PATCH, or --patch-file FILE"),
        (["patch", *AT, "-p", "[1]"], "a merge patch is one mapping"),
        (["patch", *AT, "-p", "{"], "the patch is not YAML: line 2, column 1"),
        (["patch", *AT, "--patch-file", "/nowhere/patch.yaml"], "the patch cannot be read"),
        (["edit", "shoot", "a", "b"], "edit takes one object: KIND NAME"),
    ],
)
def test_what_cannot_be_read_ends_with_2_before_anybody_is_asked(
    bus: FakeApi, call: Call, words: list[str], problem: str
):
    result = call(*words)

    assert result.exit_code == 2
    assert problem in result.stderr
    assert bus.requests == []


@pytest.mark.parametrize(
    "words",
    [
        ("label", *AT, "a=b"),
        ("annotate", *AT, "a=b"),
        ("patch", *AT, "-p", "spec: {purpose: testing}"),
        ("edit", *AT, "--editor", "sed -i s/evaluation/testing/"),
    ],
)
def test_a_change_is_validated_strictly_or_as_it_says(bus: FakeApi, call: Call, words: tuple[str, ...]):
    assert call(*words, "--validate=maybe").exit_code == 2
    assert bus.requests == []
    assert call(*words, "--validate=warn", "--dry-run=server" if words[0] != "edit" else "--output=name").exit_code == 0
    assert bus.validations["patch"] == "warn"
    if words[0] != "edit":
        assert call(*words).exit_code == 0
        assert bus.validations["patch"] == "strict"


def test_a_patch_that_changes_nothing_is_a_patch(bus: FakeApi, call: Call):
    assert call("patch", *AT, "-p", "{}").exit_code == 0
    assert bus.questions("patch") == [{}]


def test_a_merge_patch_is_sent_as_it_is(bus: FakeApi, call: Call, tmp_path: Path):
    (tmp_path / "patch.yaml").write_text("spec: {purpose: production}")

    assert call("patch", *AT, "-p", '{"spec": {"purpose": "testing"}}').exit_code == 0
    assert call("patch", *AT, "--patch-file", str(tmp_path / "patch.yaml")).exit_code == 0

    assert bus.questions("patch") == [{"spec": {"purpose": "testing"}}, {"spec": {"purpose": "production"}}]


def test_operations_are_carried_out_on_the_version_that_was_seen(bus: FakeApi, call: Call):
    operations = (
        '[{"op": "test", "path": "/spec/purpose", "value": "evaluation"}, {"op": "remove", "path": "/spec/purpose"}]'
    )

    assert call("patch", *AT, "--type", "json", "-p", operations).exit_code == 0
    assert bus.questions("patch") == [{"spec": {"purpose": None}, "metadata": {"resourceVersion": "1"}}]
    again = call("patch", *AT, "--type", "json", "-p", operations)
    assert again.exit_code == 1
    assert "operation 0 (test)" in again.stderr


def test_who_was_quicker_is_not_overwritten(bus: FakeApi, call: Call, monkeypatch: pytest.MonkeyPatch):
    request = bus.request
    others = [{"metadata": {"labels": {"team": "blue"}}}]

    async def superseded(subject: str, body: bytes, **rest: Any) -> bytes:
        if ".patch." in subject and others:
            bus.put(merged(apollo(bus), others.pop()))
        return await request(subject, body, **rest)

    monkeypatch.setattr(bus, "request", superseded)
    rejected = call("label", *AT, "team=red")

    assert rejected.exit_code == 1
    assert "has team (blue) already" in rejected.stderr
    assert apollo(bus)["metadata"]["labels"]["team"] == "blue"


def test_an_edit_sends_only_what_was_changed_and_leaves_no_file(bus: FakeApi, call: Call, tmp_path: Path):
    editor = an_editor(tmp_path, "sed -i 's/purpose: evaluation/purpose: testing/' \"$1\"")

    result = call("edit", *AT, "--editor", editor)

    assert (result.exit_code, result.stdout) == (0, "Shoot garden-dev/apollo configured\n")
    assert bus.questions("patch") == [{"spec": {"purpose": "testing"}, "metadata": {"resourceVersion": "1"}}]
    assert not list(tmp_path.glob("*.yaml"))


def test_the_editor_is_shown_neither_the_status_nor_what_the_store_owns(call: Call, tmp_path: Path):
    shown = tmp_path / "shown"

    result = call("edit", *AT, "--editor", an_editor(tmp_path, f'cp -p "$1" {shown}'))

    assert result.stdout == "Shoot garden-dev/apollo unchanged\n"
    document = yaml.safe_load(shown.read_text())
    assert "status" not in document
    assert {"resourceVersion", "uid", "generation"}.isdisjoint(document["metadata"])
    assert shown.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("script", "code", "problem"),
    [
        ('echo "a: [" >> "$1"', 2, "the text cannot be read"),
        ("sed -i 's/name: apollo/name: other/' \"$1\"", 2, "is not Shoot garden-dev/apollo any more"),
        ("exit 3", 2, "failed, nothing is sent"),
    ],
)
def test_a_text_that_is_not_taken_is_kept_in_a_file_that_is_named(
    bus: FakeApi, call: Call, tmp_path: Path, script: str, code: int, problem: str
):
    result = call("edit", *AT, "--editor", an_editor(tmp_path, script))

    assert result.exit_code == code
    assert problem in result.stderr
    (kept,) = tmp_path.glob("*.yaml")
    assert f"your text is kept in {kept}" in result.stderr
    assert bus.questions("patch") == []


def test_an_edit_of_a_field_that_somebody_else_changed_is_refused(
    bus: FakeApi, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    request = bus.request
    others = [{"spec": {"purpose": "production"}}]

    async def superseded(subject: str, body: bytes, **rest: Any) -> bytes:
        if ".patch." in subject and others:
            bus.put(merged(apollo(bus), others.pop()))
        return await request(subject, body, **rest)

    monkeypatch.setattr(bus, "request", superseded)
    result = call("edit", *AT, "--editor", an_editor(tmp_path, "sed -i 's/: evaluation/: testing/' \"$1\""))

    assert result.exit_code == 1
    assert "spec.purpose changed meanwhile; nothing is written" in result.stderr
    assert apollo(bus)["spec"]["purpose"] == "production"
