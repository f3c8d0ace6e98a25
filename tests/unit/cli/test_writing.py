"""`create`, `replace`, `diff`, `delete`: what they send, what they say, how they end."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from gardenbus.cli.commands import create, options
from gardenbus.cli.commands.create import as_new
from gardenbus.cli.main import app
from gardenbus.cli.manifests.differences import unified_diff
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.merge_patches import replacing_patch
from tests.support.builders import a_project, a_seed, a_shoot, merged
from tests.support.fake_api import FakeApi


@pytest.fixture
def bus() -> FakeApi:
    return FakeApi(a_project(), a_seed("aws"), a_shoot("apollo", spec={"seedName": "aws", "purpose": "testing"}))


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, bus: FakeApi) -> Any:
    def call(*words: str) -> Result:
        monkeypatch.setattr(options, "connected", bus.connected)
        return CliRunner().invoke(app, [*words, "--nats-url", "nats://nowhere:1"])

    return call


@pytest.fixture
def file(tmp_path: Path) -> Any:
    def written(*documents: Document) -> str:
        path = tmp_path / "manifests.yaml"
        path.write_text(yaml.safe_dump_all(documents))
        return str(path)

    return written


def test_what_is_there_is_not_created_and_the_others_are(run: Any, bus: FakeApi, file: Any):
    result = run("create", "-f", file(a_shoot("apollo"), a_shoot("bolt")))

    assert (result.exit_code, result.stdout) == (1, "Shoot garden-dev/bolt created\n")
    assert "AlreadyExists" in result.stderr
    assert bus.seed_of("apollo")[0] == "aws"


def test_a_name_is_made_of_its_beginning_and_another_one_where_it_is_taken(
    run: Any, bus: FakeApi, file: Any, monkeypatch: pytest.MonkeyPatch
):
    suffixes = iter(("bbbbb", "bbbbb", "ccccc"))
    monkeypatch.setattr(create, "random_suffix", lambda: next(suffixes))
    unnamed = a_shoot("x")
    unnamed["metadata"] = {"generateName": "load", "namespace": "garden-dev"}
    manifest = file(unnamed)

    assert run("create", "-f", manifest).stdout == "Shoot garden-dev/loadbbbbb created\n"
    assert run("create", "-f", manifest).stdout == "Shoot garden-dev/loadccccc created\n"
    assert {("shoot", "garden-dev", f"load{each * 5}") for each in "bc"} <= bus.objects.keys()


def test_a_generated_name_fits_into_a_label_and_a_stated_one_stays() -> None:
    made = create.named_by_prefix({"kind": "Job", "metadata": {"generateName": "a" * 80}})["metadata"]["name"]
    assert (len(made), made[:58]) == (63, "a" * 58)
    stated = {"kind": "Job", "metadata": {"generateName": "a-", "name": "b"}}
    assert create.named_by_prefix(stated) is stated
    assert create.named_by_prefix({"kind": "Job", "metadata": {}}) == {"kind": "Job", "metadata": {}}


def test_a_dry_run_creates_nothing(run: Any, bus: FakeApi, file: Any):
    result = run("create", "-f", file(a_shoot("bolt")), "--dry-run=server")

    assert (result.exit_code, result.stdout) == (0, "Shoot garden-dev/bolt created (server dry run)\n")
    assert ("shoot", "garden-dev", "bolt") not in bus.objects


def test_what_a_manifest_leaves_out_goes_with_a_replacement(run: Any, bus: FakeApi, file: Any):
    given = a_shoot("apollo")
    del given["spec"]["purpose"]

    result = run("replace", "-f", file(given))

    assert (result.exit_code, result.stdout) == (0, "Shoot garden-dev/apollo replaced\n")
    spec = bus.objects["shoot", "garden-dev", "apollo"]["spec"]
    assert "purpose" not in spec
    assert spec["seedName"] == "aws"


def test_only_what_is_there_is_replaced_and_only_in_the_version_that_was_read(run: Any, file: Any):
    missing = run("replace", "-f", file(a_shoot("nobody")))
    stale = run("replace", "-f", file(a_shoot("apollo", metadata={"resourceVersion": "77"})))

    assert (missing.exit_code, stale.exit_code) == (1, 1)
    assert "gardenbus create -f" in missing.stderr
    assert "resourceVersion" in stale.stderr


@pytest.mark.parametrize("words", [["--confirm"], ["--force", "--dry-run=server"]])
def test_a_replacement_that_makes_no_sense_is_a_usage_error(run: Any, file: Any, words: list[str]):
    assert run("replace", "-f", file(a_shoot("apollo")), *words).exit_code == 2


HELD = {"uid": "u-1", "finalizers": ["example.com/hold"], "deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.fixture
def wait_at_once(monkeypatch: pytest.MonkeyPatch, bus: FakeApi) -> None:
    """Have `replace --force` look once: the fake announces no changes."""

    async def left(_api: Any, awaited: Iterable[ObjectKey], *_: Any) -> dict[ObjectKey, Document]:
        stored = {key: bus.objects.get((key.kind, key.namespace or "_", key.name)) for key in awaited}
        return {key: document for key, document in stored.items() if document is not None}

    monkeypatch.setattr(create, "wait_until", left)


@pytest.mark.usefixtures("wait_at_once")
def test_what_finalizers_keep_is_not_created_anew_and_they_are_named(run: Any, bus: FakeApi, file: Any):
    bus.put(a_seed("held", metadata=HELD))

    result = run("replace", "-f", file(a_seed("held", metadata=HELD)), "--force", "--timeout", "0s")

    assert result.exit_code == 1
    assert "the finalizers example.com/hold keep it" in result.stderr
    assert bus.questions("apply") == []


@pytest.mark.usefixtures("wait_at_once")
def test_a_copy_is_created_without_what_its_original_had_of_the_system(run: Any, bus: FakeApi, file: Any):
    assert run("replace", "-f", file(a_seed("aws", metadata=HELD)), "--force").exit_code == 0
    assert bus.objects["seed", "_", "aws"]["metadata"].keys().isdisjoint(HELD)

    mine = a_seed("mine", metadata={"finalizers": ["example.com/mine"]})
    assert as_new(mine)["metadata"] == mine["metadata"], "a manifest that was written keeps what it says"


def test_a_replacement_keeps_what_the_system_set():
    present = a_shoot(
        metadata={"finalizers": ["gardener"], "labels": {"shoot.gardener.cloud/status": "healthy", "old": "1"}}
    )

    patch = replacing_patch(present, a_shoot(metadata={"labels": {"new": "1"}}))

    assert patch == {"metadata": {"labels": {"old": None, "new": "1"}}}


def test_a_difference_is_shown_and_ends_with_1(run: Any, bus: FakeApi, file: Any):
    changed = run("diff", "-f", file(a_shoot("apollo", spec={"purpose": "production"})))

    assert changed.exit_code == 1
    assert "-  purpose: testing\n+  purpose: production\n" in changed.stdout
    assert bus.objects["shoot", "garden-dev", "apollo"]["spec"]["purpose"] == "testing"


def test_no_difference_ends_with_0_and_what_cannot_be_told_with_2(run: Any, bus: FakeApi, file: Any):
    same = run("diff", "-f", file(bus.objects["shoot", "garden-dev", "apollo"]))
    rejected = run("diff", "-f", file(a_shoot("a.b"), a_shoot("bolt")))

    assert (same.exit_code, same.stdout) == (0, "")
    assert rejected.exit_code == 2
    assert "Shoot garden-dev/a.b: Invalid" in rejected.stderr
    assert "+  name: bolt" in rejected.stdout


def test_a_difference_is_looked_for_as_apply_would_validate(run: Any, bus: FakeApi, file: Any):
    bus.warnings = ["spec.purpos: unknown field"]
    announced = run("diff", "-f", file(a_shoot("bolt")), "--validate=ignore")

    assert (announced.exit_code, announced.stderr) == (1, "warning: spec.purpos: unknown field\n")
    assert bus.validations["apply"] == "ignore"
    assert run("diff", "-f", file(a_shoot("bolt")), "--validate=maybe").exit_code == 2


def test_a_difference_has_nothing_that_the_store_decides():
    before = a_shoot(metadata={"resourceVersion": "1"})
    after = merged(before, {"metadata": {"resourceVersion": "2", "uid": "x", "labels": {"a": "b"}}})

    lines = unified_diff(before, after, "Shoot")

    assert [line for line in lines if line[:1] == "+"] == ["+++ Shoot (applied)", "+  labels:", "+    a: b"]


def test_a_deletion_is_confirmed_in_a_dry_run_too(run: Any, bus: FakeApi):
    unconfirmed = run("delete", "shoot", "apollo", "-n", "garden-dev", "--dry-run=server")
    confirmed = run("delete", "shoot", "apollo", "-n", "garden-dev", "--confirm", "--dry-run=server")

    assert unconfirmed.exit_code == 1
    assert (confirmed.exit_code, confirmed.stdout) == (0, "shoot garden-dev/apollo deleted (server dry run)\n")
    assert bus.seed_of("apollo")[0] == "aws"


def test_all_objects_of_a_kind_are_deleted_where_one_says(run: Any, bus: FakeApi):
    bus.put(a_shoot("bolt"))
    bus.put(a_shoot("core", metadata={"namespace": "garden-core"}))

    inside = run("delete", "shoots", "--all", "-n", "garden-dev", "--confirm")
    everywhere = run("delete", "shoots", "--all", "-A", "--confirm", "-o", "name")

    assert inside.stdout == "Shoot garden-dev/apollo deleted\nShoot garden-dev/bolt deleted\n"
    assert (everywhere.exit_code, everywhere.stdout) == (0, "shoot.core.gardener.cloud/core\n")
    assert run("delete", "shoots", "--all", "-A").stderr == "no shoot found\n"


def test_many_manifests_are_sent_a_few_at_a_time_and_a_large_one_alone(run: Any, bus: FakeApi, file: Any):
    many = [a_shoot(f"n{number}") for number in range(120)]

    applied = run("apply", "-f", file(*many))
    deleted = run("delete", "-f", file(*many), "--confirm")

    assert (applied.exit_code, deleted.exit_code) == (0, 0)
    assert [len(result.stdout.splitlines()) for result in (applied, deleted)] == [120, 120]
    for verb in ("apply", "delete"):
        sizes = [len(body["items"]) for body in bus.questions(verb)]
        assert sum(sizes) == 120
        assert max(sizes) <= 50, "one request is answered as a whole, within its time limit"


def test_a_watch_of_a_kind_that_there_is_not_ends(run: Any, bus: FakeApi):
    bus.forbidden.add("list.foo")

    result = run("watch", "foo")

    assert result.exit_code == 1
    assert "it is not for this user" in result.stderr, "what the server says of the kind"


@pytest.mark.parametrize("name", ["../../x", "a b", "a."])
def test_a_name_that_no_object_can_have_is_said_to_be_none(run: Any, bus: FakeApi, name: str):
    result = run("get", "shoot", name, "-n", "garden-dev")

    assert (result.exit_code, bus.requests) == (2, [])
    assert f"{name!r} is the name of no object" in result.stderr


@pytest.mark.parametrize("verb", ["apply", "delete"])
def test_what_was_done_before_nobody_answered_is_said(run: Any, bus: FakeApi, file: Any, verb: str):
    many = [a_shoot(f"n{number}") for number in range(120)]
    for shoot in many if verb == "delete" else ():
        bus.put(shoot)
    bus.most_requests = 2

    result = run(verb, "-f", file(*many), *(["--confirm"] if verb == "delete" else []))

    assert result.exit_code == 3
    assert len(result.stdout.splitlines()) == 100
    assert "after 100 of 120 manifests" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["shoots", "--all"],
        ["shoots"],
        ["shoots", "--all", "-l", "a=b"],
        ["shoot", "apollo", "--all", "-A"],
        ["shoots", "--all", "-A", "-n", "garden-dev"],
        ["-f", "x.yaml", "--all"],
    ],
)
def test_what_is_to_be_deleted_must_be_clear(run: Any, words: list[str]):
    assert run("delete", *words).exit_code == 2


def test_get_takes_the_objects_that_manifests_name(run: Any, file: Any):
    path = file(a_shoot("apollo"), a_seed("aws"))

    assert (
        run("get", "-f", path, "-o", "name").stdout
        == "seed.core.gardener.cloud/aws\nshoot.core.gardener.cloud/apollo\n"
    )
    assert json.loads(run("get", "-f", file(a_seed("aws")), "-o", "json").stdout)["kind"] == "Seed"
    assert run("get", "-f", file(a_shoot("nobody"))).exit_code == 1
    assert run("get").exit_code == run("get", "shoots", "-f", path).exit_code == 2


def test_what_is_missing_may_be_ignored(run: Any):
    deleted = run("delete", "shoot", "nobody", "apollo", "-n", "garden-dev", "--ignore-not-found")
    got = run("get", "seed", "nobody", "aws", "--ignore-not-found", "-o", "name")

    assert deleted.exit_code == 1
    assert "nobody" not in deleted.stderr
    assert "confirmation" in deleted.stderr
    assert run("delete", "shoot", "nobody", "-n", "garden-dev", "--ignore-not-found").exit_code == 0
    assert (got.exit_code, got.stdout, got.stderr) == (0, "seed.core.gardener.cloud/aws\n", "")


@pytest.mark.parametrize(
    "words",
    [
        ["events"],
        ["watch"],
        ["wait", "shoots", "--for", "scheduled"],
        ["label", "shoots", "-l", "a", "b=c"],
        ["annotate", "shoots", "-l", "a", "b=c"],
        ["get", "shoots"],
    ],
)
def test_one_namespace_and_all_of_them_are_not_taken_together(run: Any, words: list[str]):
    result = run(*words, "-A", "-n", "garden-dev")

    assert result.exit_code == 2
    assert "-A is for all namespaces, -n for one" in result.stderr
