"""The commands on objects, as an operator types them, against one live landscape."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Generator, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from gardenbus.cli.client.api import connected
from gardenbus.cli.client.following import follow
from gardenbus.cli.client.targets import find_landscape
from gardenbus.cli.commands.apply import wait_for_conditions
from gardenbus.cli.wait.conditions import parse_condition
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.watches import WatchedKind
from gardenbus.common.ports.bus import ReplayDone
from gardenbus.common.runtime import event_loop
from tests.support.builders import a_cloudprofile, a_gardenlet_configuration, a_project, a_shoot, merged
from tests.support.cancelling import assert_cancellable, closed_sockets, sockets
from tests.support.commands import gardenbus_program
from tests.support.eventually import HANG_SECONDS

pytestmark = pytest.mark.slow

Document = dict[str, Any]


class CommandResult(NamedTuple):
    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        return self.stdout.splitlines()


Call = Callable[..., CommandResult]


def gardenbus(*words: str, given: str | None = None, environ: dict[str, str] | None = None) -> CommandResult:
    ended = subprocess.run(
        [str(gardenbus_program()), *words],
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
        env={**os.environ, "COLUMNS": "200", **(environ or {})},
    )
    return CommandResult(ended.returncode, ended.stdout, ended.stderr)


@contextmanager
def going_on(command: Sequence[str]) -> Generator["subprocess.Popen[str]"]:
    """A command that does not end by itself; it is gone afterwards, whatever the test came to."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    directory = tmp_path_factory.mktemp("operator") / "state"
    file = directory.parent / "landscape.yaml"
    file.write_text(yaml.safe_dump_all([a_gardenlet_configuration("seed-a", 40), a_project(), a_cloudprofile()]))
    started = gardenbus("up", "--dir", str(directory), "--detach", "-f", str(file))
    try:
        assert started.code == 0, started.stderr
        yield directory
    finally:
        gardenbus("down", "--dir", str(directory))


@pytest.fixture
def call(place: Path) -> Call:
    def called(*words: str, given: str | None = None, environ: dict[str, str] | None = None) -> CommandResult:
        return gardenbus(*words, "--dir", str(place), given=given, environ=environ)

    return called


def manifests(*documents: Document) -> str:
    return yaml.safe_dump_all(documents)


def shoots(call: Call, *names: str, **changes: Any) -> None:
    """Apply shoots and wait until they stand."""
    documents = [merged(a_shoot(name), changes) for name in names]
    applied = call("apply", "-f", "-", given=manifests(*documents))
    assert applied.code == 0, applied.stderr


def until(call: Call, words: Sequence[str], expected: str) -> None:
    """Ask again until the answer is the one expected."""
    reported = call(*words)
    for _ in range(100):
        if reported.stdout == expected:
            return
        reported = call(*words)
    raise AssertionError(f"{' '.join(words)}: {reported}")


def test_get_chooses_by_labels_and_fields_and_prints_what_a_template_says(call: Call):
    shoots(call, "get-a", metadata={"labels": {"rank": "gold"}})
    shoots(call, "get-b", metadata={"labels": {"rank": "iron"}})
    until(call, ["get", "shoot", "get-b", "-o", "jsonpath={.status.lastOperation.state}"], "Succeeded")

    def names(*chosen: str) -> str:
        return call("get", "shoots", *chosen, "-o", "jsonpath={.items[*].metadata.name}").stdout

    assert names("-l", "rank in (gold,silver)") == "get-a"
    assert names("-l", "rank,rank!=gold") == "get-b"
    others = names("--field-selector", "spec.seedName=seed-a,metadata.name!=get-a").split()
    assert ("get-b" in others, "get-a" in others) == (True, False)
    assert call("get", "shoots", "-l", "a b").code == 1
    assert call("get", "shoot/get-a", "seed/seed-a", "-o", "name").lines == [
        "shoot.core.gardener.cloud/get-a",
        "seed.core.gardener.cloud/seed-a",
    ]


def test_get_goes_on_with_what_changes(call: Call, place: Path):
    shoots(call, "watched")
    command = [str(gardenbus_program()), "get", "shoot", "watched", "-w", "--dir", str(place), "--no-headers", "-o"]
    command.append("custom-columns=NAME:.metadata.name,NOTE:.metadata.annotations.note")
    with going_on(command) as watching:
        assert watching.stdout is not None
        first = watching.stdout.readline().split()
        shoots(call, "watched", metadata={"annotations": {"note": "hello"}})
        announced = next(line for line in watching.stdout if "hello" in line)
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()
        assert watching.wait(HANG_SECONDS) == 130

    assert first == ["watched", "<none>"]
    assert announced.split() == ["watched", "hello"]


def test_documents_for_programs_can_be_read_by_them(call: Call):
    assert json.loads(call("get", "seeds", "-o", "json").stdout)["items"][0]["metadata"]["name"] == "seed-a"
    assert yaml.safe_load(call("get", "seed", "seed-a", "-o", "yaml").stdout)["kind"] == "Seed"


def test_apply_waits_until_shoots_stand_and_says_a_line_for_each(call: Call, tmp_path: Path):
    nested = tmp_path / "below"
    nested.mkdir()
    (tmp_path / "one.yaml").write_text(yaml.safe_dump(a_shoot("wait-one")))
    (nested / "two.yaml").write_text(yaml.safe_dump(a_shoot("wait-two")))

    flat = call("apply", "-f", str(tmp_path))
    deep = call("apply", "-f", str(tmp_path), "-R", "--wait", "--timeout", "60s")

    assert flat.lines == ["Shoot garden-dev/wait-one created"]
    assert deep.code == 0, deep.stderr
    assert sorted(deep.lines[:2]) == ["Shoot garden-dev/wait-one unchanged", "Shoot garden-dev/wait-two created"]
    assert sorted(deep.lines[2:]) == ["shoot garden-dev/wait-one reconciled", "shoot garden-dev/wait-two reconciled"]


def test_who_waits_in_vain_is_told_how_it_stands(call: Call):
    nowhere = merged(a_shoot("nowhere"), {"spec": {"seedSelector": {"matchLabels": {"not": "there"}}}})

    applied = call("apply", "-f", "-", "--wait", "--timeout", "2s", given=manifests(nowhere))
    waited = call("wait", "shoot", "nowhere", "--for", "scheduled", "--timeout", "500ms")

    assert (applied.code, waited.code) == (1, 1)
    assert (
        "shoot garden-dev/nowhere: not reconciled within 2 s (Create Pending 0%: Failed to schedule" in applied.stderr
    )
    assert "not scheduled within 0.5 s" in waited.stderr
    assert "gardenbus explain shoot" in call("describe", "shoot", "nowhere").stdout


def test_wait_hears_of_what_comes_and_of_what_goes(call: Call):
    shoots(call, "goes")

    stands = call("wait", "shoot/goes", "--for", "jsonpath={.status.lastOperation.state}=Succeeded", "--timeout", "60s")
    seeds = call("wait", "seeds", "--for", "condition=GardenletReady")
    deleted = call("delete", "shoot", "goes", "-n", "garden-dev", "--confirm", "--wait", "--timeout", "60s")
    gone = call("wait", "shoot/goes", "--for", "delete")

    assert (stands.code, stands.lines) == (0, ["shoot garden-dev/goes condition met"])
    assert (seeds.code, seeds.lines) == (0, ["seed seed-a condition met"])
    assert deleted.code == 0, deleted.stderr
    assert deleted.lines[-1] == "shoot garden-dev/goes deleted"
    assert (gone.code, gone.lines) == (0, ["shoot goes deleted"])


def test_what_has_a_label_is_deleted_by_it(call: Call):
    shoots(call, "doomed-a", "doomed-b", metadata={"labels": {"doomed": "yes"}})

    deleted = call("delete", "shoots", "-l", "doomed=yes", "--confirm", "--wait")

    assert deleted.code == 0, deleted.stderr
    assert call("get", "shoots", "-l", "doomed").stderr == "no shoot found\n"


def test_what_get_names_every_command_on_objects_takes(call: Call):
    shoots(call, "named")
    (name,) = call("get", "shoots", "--field-selector", "metadata.name=named", "-o", "name").lines
    place = ("-n", "garden-dev")

    assert name == "shoot.core.gardener.cloud/named"
    for words in (
        ("get", name, *place),
        ("describe", name, *place),
        ("wait", name, *place, "--for", "reconciled"),
        ("label", name, *place, "a=b"),
        ("annotate", name, *place, "a=b", "--dry-run=server"),
        ("patch", name, *place, "-p", "{spec: {purpose: testing}}", "--dry-run=server"),
        ("events", "--for", name, *place),
        ("explain", name, *place),
        ("explain", "seed.core.gardener.cloud/seed-a"),
        ("delete", name, *place, "--confirm", "--dry-run=server"),
    ):
        reported = call(*words)
        assert reported.code == 0, (words, reported.stderr)
    assert call("get", name, *place, "-o", "jsonpath={.metadata.deletionTimestamp}").stdout == ""


def test_manifests_are_compared_created_once_and_replaced_whole(call: Call, tmp_path: Path):
    file = tmp_path / "shoot.yaml"
    file.write_text(yaml.safe_dump(merged(a_shoot("whole"), {"metadata": {"labels": {"a": "1", "b": "2"}}})))

    missing = call("diff", "-f", str(file))
    first, second = call("create", "-f", str(file)), call("create", "-f", str(file))
    assert call("wait", "shoot/whole", "--for", "reconciled").code == 0
    same = call("diff", "-f", str(file))
    file.write_text(yaml.safe_dump(merged(a_shoot("whole"), {"metadata": {"labels": {"b": "3"}}})))
    changed = call("diff", "-f", str(file))
    replaced = call("replace", "-f", str(file))

    assert (missing.code, "+kind: Shoot" in missing.lines) == (1, True)
    assert (first.lines, second.code) == (["Shoot garden-dev/whole created"], 1)
    assert "AlreadyExists" in second.stderr
    assert (same.code, same.stdout) == (0, "")
    assert changed.code == 1
    assert {"-    a: '1'", "-    b: '2'", "+    b: '3'"} <= set(changed.lines)
    assert replaced.lines == ["Shoot garden-dev/whole replaced"]
    labels = json.loads(call("get", "-f", str(file), "-o", "json").stdout)["metadata"]["labels"]
    assert ("a" in labels, labels["b"]) == (False, "3")
    assert call("get", "-f", str(file), "-o", "jsonpath={.spec.seedName}").stdout == "seed-a"


def test_client_and_services_have_versions(call: Call):
    versions = json.loads(call("version", "-o", "json").stdout)

    assert {each["version"] for each in versions["services"]} == {versions["clientVersion"]}
    assert {"apiserver", "scheduler"} <= {each["name"] for each in versions["services"]}


def test_a_description_shows_operation_relations_and_events(call: Call):
    shoots(call, "described")
    assert call("wait", "shoot/described", "--for", "reconciled").code == 0

    announced = call("describe", "shoot", "described").stdout

    for words in ("Create Succeeded  ████████████████████ 100%", "seed seed-a  (GardenletReady True)", "Conditions"):
        assert words in announced
    assert "SchedulingSuccessful" in announced
    assert "garden-dev/described" in call("describe", "seed/seed-a").stdout


def test_labels_and_annotations_are_set_and_taken_away_and_not_overwritten_by_accident(call: Call):
    shoots(call, "labelled")
    at = ("shoot", "labelled", "-n", "garden-dev")

    assert call("label", *at, "tier=gold", "old=1").lines == ["Shoot garden-dev/labelled configured"]
    rejected = call("label", *at, "tier=iron")
    assert rejected.code == 1
    assert "has tier (gold) already: --overwrite changes it" in rejected.stderr
    assert call("label", *at, "tier=iron", "old-", "--overwrite").code == 0
    assert call("label", *at, "tier=iron").lines == ["Shoot garden-dev/labelled unchanged"]
    assert call("annotate", "shoots", "-l", "tier=iron", "note=by label").code == 0
    template = "{.metadata.labels.tier} {.metadata.labels.old}|{.metadata.annotations.note}"
    assert call("get", *at, "-o", f"jsonpath={template}").stdout == "iron |by label"
    assert call("label", *at, "no/such/key=1").code == 1
    assert call("label", "shoot", "labelled").code == 2


def test_patches_merge_or_are_carried_out_step_by_step(call: Call):
    shoots(call, "patched")
    at = ("shoot", "patched", "-n", "garden-dev")
    remove = '[{"op": "test", "path": "/spec/purpose", "value": "testing"}, {"op": "remove", "path": "/spec/purpose"}]'

    merged_in = call("patch", *at, "-p", "spec: {purpose: testing}")
    assert (merged_in.code, merged_in.lines) == (0, ["Shoot garden-dev/patched configured"])
    tried = call("patch", *at, "-p", "spec: {purpose: evaluation}", "--dry-run=server", "-o", "json")
    assert json.loads(tried.stdout)["spec"]["purpose"] == "evaluation"
    assert call("get", *at, "-o", "jsonpath={.spec.purpose}").stdout == "testing"
    stepwise = call("patch", *at, "--type", "json", "-p", remove)
    assert stepwise.code == 0, stepwise.stderr
    again = call("patch", *at, "--type", "json", "-p", remove)
    assert again.code == 1
    assert "operation 0 (test)" in again.stderr
    assert call("patch", *at, "-p", "[1]").code == 2


def an_editor(directory: Path, script: str) -> dict[str, str]:
    file = directory / "editor"
    file.write_text(f'#!/bin/sh\nset -e\nfile="$1"\n{script}\n')
    file.chmod(0o755)
    return {"EDITOR": str(file), "VISUAL": "", "TMPDIR": str(directory)}


def test_an_edit_sends_what_was_changed_and_keeps_what_others_did_meanwhile(call: Call, place: Path, tmp_path: Path):
    shoots(call, "edited")
    others = f"{gardenbus_program()} label shoot edited -n garden-dev meanwhile=yes --dir {place} >/dev/null"
    environ = an_editor(tmp_path, f"{others}\nsed -i 's/purpose: evaluation/purpose: testing/' \"$file\"")

    reported = call("edit", "shoot", "edited", "-n", "garden-dev", environ=environ)

    assert reported.code == 0, reported.stderr
    assert reported.lines == ["Shoot garden-dev/edited configured"]
    template = "jsonpath={.spec.purpose} {.metadata.labels.meanwhile}"
    assert call("get", "shoot", "edited", "-n", "garden-dev", "-o", template).stdout == "testing yes"
    assert not list(tmp_path.glob("*.yaml"))


def test_a_refused_edit_is_kept_in_a_file_that_is_named(call: Call, place: Path, tmp_path: Path):
    shoots(call, "fought", metadata={"labels": {"tier": "gold"}})
    at = ("edit", "shoot", "fought", "-n", "garden-dev")
    others = f"{gardenbus_program()} label shoot fought -n garden-dev tier=iron --overwrite --dir {place} >/dev/null"
    contested = an_editor(tmp_path, f"{others}\nsed -i 's/tier: gold/tier: mine/' \"$file\"")

    fought = call(*at, environ=contested)
    invalid = call(*at, environ=an_editor(tmp_path, "sed -i 's/purpose: evaluation/purpose: nonsense/' \"$file\""))
    broken = call(*at, environ=an_editor(tmp_path, 'echo "a: [" >> "$file"'))
    renamed = call(*at, environ=an_editor(tmp_path, "sed -i 's/name: fought/name: other/' \"$file\""))
    untouched = call(*at, environ=an_editor(tmp_path, "true"))
    failed = call(*at, environ=an_editor(tmp_path, "exit 3"))

    assert fought.code == 1
    assert "metadata.labels.tier changed meanwhile; nothing is written" in fought.stderr
    kept = Path(fought.stderr.partition("your text is kept in ")[2].partition(";")[0])
    assert yaml.safe_load(kept.read_text())["metadata"]["labels"]["tier"] == "mine"
    assert [ended.code for ended in (invalid, broken, renamed, failed)] == [1, 2, 2, 2]
    assert all("your text is kept in" in ended.stderr for ended in (invalid, broken, renamed, failed))
    assert (untouched.code, untouched.lines) == (0, ["Shoot garden-dev/fought unchanged"])
    assert len(list(tmp_path.glob("*.yaml"))) == 5


def test_a_dry_run_writes_nothing(call: Call):
    tried = call("apply", "-f", "-", "--dry-run=server", given=manifests(a_shoot("never")))

    assert tried.code == 0, tried.stderr
    assert tried.lines == ["Shoot garden-dev/never created (server dry run)"]
    assert call("get", "shoot", "never").code == 1
    assert call("apply", "-f", "-", "--dry-run=client", given=manifests(a_shoot("never"))).code == 2


def test_what_admission_makes_of_a_manifest_is_explained_as_the_documentation_shows(call: Call, tmp_path: Path):
    page = (Path(__file__).parents[2] / "docs" / "manifests.md").read_text()
    shown = page.split("$ gardenbus explain apply shoot.yaml\n", 1)[1].split("```", 1)[0].splitlines()
    file = tmp_path / "shoot.yaml"
    file.write_text(manifests(a_shoot("apollo")))
    explained = call("explain", "apply", str(file))

    assert explained.code == 0, explained.stderr
    printed = [line.split() for line in explained.lines]
    assert [line for line in shown if line.split() not in printed] == [], explained.stdout
    assert call("get", "shoot", "apollo").code == 1

    rejected = call("explain", "apply", "-", "-o", "json", given=manifests(a_shoot("apollo", spec={"region": 7})))
    assert rejected.code == 1, rejected.stdout


def test_events_are_about_one_object_and_go_on(call: Call, place: Path):
    shoots(call, "eventful")
    assert call("wait", "shoot/eventful", "--for", "scheduled").code == 0
    watch = [str(gardenbus_program()), "events", "-w", "--for", "shoot/later", "-n", "garden-dev", "--dir", str(place)]

    about = call("events", "--for", "shoot/eventful")
    with going_on(watch) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith("LAST SEEN")
        shoots(call, "later")
        announced = next(line for line in watching.stdout if "SchedulingSuccessful" in line)
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()
        watching.wait(HANG_SECONDS)

    assert "SchedulingSuccessful" in about.stdout
    assert all("garden-dev/eventful" in line for line in about.lines[2:])
    assert "garden-dev/later" in announced
    assert call("events", "--types", "Nothing").stdout == ""


def test_ctrl_c_ends_a_command_wherever_it_waits(place: Path):
    """A command's coroutine is cancelled by it; what is left then is a task, or a socket."""

    async def wait() -> None:
        async with connected(find_landscape(place, None, None)) as api:
            missing = ObjectKey("shoot", "garden-dev", "missing")
            await wait_for_conditions(api, {missing: parse_condition("create")}, 0.2)

    async def watch() -> None:
        seeds = [WatchedKind("seed", None)]
        async with connected(find_landscape(place, None, None)) as api, aclosing(follow(api, seeds, None)) as following:
            async for event in following:
                if isinstance(event, ReplayDone):
                    return

    async def check() -> None:
        before = sockets()
        for work in (wait, watch):
            assert await assert_cancellable(work) > 10
        await closed_sockets(before)

    event_loop.run(check())
