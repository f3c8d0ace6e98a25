"""`bind`, `cordon`, `uncordon`, `drain`, `rebalance`, `scale`, `rollout` as they are called."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gardenbus.cli.commands import options
from gardenbus.cli.main import app
from gardenbus.cli.output.console import print_api_error
from gardenbus.common.api.document import Document
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_seed, a_shoot, merged
from tests.support.fake_api import FakeApi

BACKUP: Document = {
    "spec": {"backup": {"provider": "aws"}},
    "status": {"conditions": [a_condition("GardenletReady"), a_condition("BackupBucketsReady")]},
}
TEMPLATES: Document = {
    "template": {"metadata": {"labels": {"set": "grove"}}, "spec": {"gardenlet": {"config": {"old": 1, "kept": 2}}}},
    "shootTemplate": {"spec": {"region": "eu-west-1"}},
}


def seed(name: str, **changes: Any) -> Document:
    return merged(a_seed(name, shoots=10), merged(BACKUP, changes))


def placed(name: str, place: str) -> Document:
    return a_shoot(
        name,
        metadata={"labels": {"shoot.gardener.cloud/status": "healthy"}, "generation": 1},
        spec={"seedName": place},
        status={
            "seedName": place,
            "observedGeneration": 1,
            "lastOperation": {"type": "Reconcile", "state": "Succeeded", "progress": 100},
        },
    )


def a_set(**changes: Any) -> Document:
    default: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeedSet",
        "metadata": {"name": "grove", "namespace": "garden", "uid": "u1", "generation": 2},
        "spec": {
            "replicas": 2,
            "template": {
                "metadata": {"labels": {"set": "grove"}},
                "spec": {"gardenlet": {"config": {"new": 1, "kept": 2}}},
            },
            "shootTemplate": {"spec": {"region": "eu-west-1"}},
        },
        "status": {
            "observedGeneration": 2,
            "replicas": 2,
            "readyReplicas": 2,
            "updatedReplicas": 2,
            "currentRevision": "grove-b",
            "updateRevision": "grove-b",
            "conditions": [{"type": "Progressing", "status": "True", "reason": "UpdateComplete", "message": "Done."}],
        },
    }
    return merged(default, changes)


def a_revision(name: str, number: int, data: Document, owner: str = "u1") -> Document:
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": "garden",
            "ownerReferences": [{"kind": "ManagedSeedSet", "name": "grove", "uid": owner, "controller": True}],
        },
        "revision": number,
        "data": data,
    }


def revisions() -> list[Document]:
    now = {name: a_set()["spec"][name] for name in TEMPLATES}
    return [
        a_revision("grove-b", 2, now),
        a_revision("grove-a", 1, TEMPLATES),
        a_revision("other-c", 3, TEMPLATES, owner="u2"),
    ]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    def call(bus: FakeApi, *words: str) -> Result:
        monkeypatch.setattr(options, "connected", bus.connected)
        return CliRunner().invoke(app, [*words, "--nats-url", "nats://nowhere:1"])

    return call


def a_landscape(*documents: Document) -> FakeApi:
    return FakeApi(a_project(), a_cloudprofile(), *documents, reads_until_restored=0)


def test_bind_moves_a_placed_shoot_and_says_from_where(run: Any):
    bus = a_landscape(seed("a"), seed("b"), placed("apollo", "a"))
    bus.stuck = {"apollo"}

    result = run(bus, "bind", "apollo", "b")

    assert result.exit_code == 0
    assert "shoot garden-dev/apollo moves from a to b" in result.stdout
    assert bus.questions("bind") == [{"namespace": "garden-dev", "name": "apollo", "seed": "b", "resourceVersion": "1"}]
    assert "stays on a" in run(bus, "bind", "garden-dev/apollo", "a").stdout


def test_bind_by_force_says_so_and_prints_the_shoot_for_programs(run: Any):
    bus = a_landscape(seed("a"), seed("b"), placed("apollo", "a"))

    result = run(bus, "bind", "apollo", "b", "--force", "-o", "json")

    assert json.loads(result.stdout)["spec"]["seedName"] == "b"
    assert bus.questions("bind")[0]["force"] is True


def test_a_refused_bind_ends_with_1(run: Any):
    bus = a_landscape(placed("apollo", "a"))
    bus.rejections = {"apollo": (1, "seed b cannot take the shoot: it is being deleted")}

    result = run(bus, "bind", "apollo", "b")

    assert result.exit_code == 1
    assert "it is being deleted" in result.stderr
    assert run(bus, "bind", "nobody", "b").exit_code == 1


def test_seeds_are_cordoned_and_uncordoned(run: Any):
    bus = a_landscape(seed("a"))

    assert run(bus, "cordon", "a").stdout == "seed a cordoned\n"
    assert run(bus, "cordon", "a").stdout == "seed a is cordoned already\n"
    settings = json.loads(run(bus, "uncordon", "a", "-o", "json").stdout)["spec"]["settings"]
    assert settings == {"scheduling": {"visible": True}}
    assert run(bus, "cordon", "nobody").exit_code == 1


def test_several_seeds_are_cordoned_by_name_or_label_and_one_that_is_missing_stops_none(run: Any):
    bus = a_landscape(merged(seed("a"), {"metadata": {"labels": {"tier": "gold"}}}), seed("b"))

    first = run(bus, "cordon", "seed.core.gardener.cloud/a", "nobody", "seed/b")

    assert (first.exit_code, first.stdout) == (1, "seed a cordoned\nseed b cordoned\n")
    assert "nobody" in first.stderr
    assert run(bus, "uncordon", "-l", "tier=gold").stdout == "seed a uncordoned\n"
    assert run(bus, "cordon", "a", "b", "-o", "name").stdout.split() == [
        "seed.core.gardener.cloud/a",
        "seed.core.gardener.cloud/b",
    ]
    assert run(bus, "cordon").exit_code == run(bus, "cordon", "a", "-l", "x").exit_code == 2
    assert run(bus, "cordon", "shoot/a").exit_code == 2


def test_who_binds_and_drains_may_write_the_kinds(run: Any):
    bus = a_landscape(seed("a"), seed("b"), placed("apollo", "a"))

    bound = run(bus, "bind", "shoot.core.gardener.cloud/apollo", "seed/b")
    drained = run(bus, "drain", "seed.core.gardener.cloud/a", "--dry-run")

    assert bound.stdout == "shoot garden-dev/apollo moves from a to b\n"
    assert drained.exit_code == 0
    assert run(bus, "bind", "seed.core.gardener.cloud/a", "b").exit_code == 2


def test_a_dry_run_shows_the_plan_and_changes_nothing(run: Any):
    bus = a_landscape(seed("a"), seed("b"), placed("apollo", "a"))

    text = run(bus, "drain", "a", "--dry-run")
    value = run(bus, "drain", "a", "--dry-run", "-o", "json")

    assert text.exit_code == value.exit_code == 0
    assert "would be cordoned" in text.stdout
    assert json.loads(value.stdout) == {
        "seed": "a",
        "cordoned": False,
        "leaving": [],
        "moves": [{"shoot": "garden-dev/apollo", "from": "a", "to": "b"}],
        "stays": [],
    }
    assert bus.questions("bind") == bus.questions("patch") == []


def test_a_dry_run_with_shoots_that_fit_nowhere_ends_with_1(run: Any):
    result = run(a_landscape(seed("a"), placed("apollo", "a")), "drain", "a", "--dry-run")

    assert result.exit_code == 1
    assert "<stays>" in result.stdout


def test_a_drain_tells_each_migration_and_its_end(run: Any):
    bus = a_landscape(seed("a"), seed("b"), placed("apollo", "a"))

    result = run(bus, "drain", "a")

    assert result.exit_code == 0
    assert "garden-dev/apollo moves a → b" in result.stdout
    assert "garden-dev/apollo has moved a → b" in result.stdout
    assert "seed a is empty; moved: 1 shoot; it stays cordoned" in result.stdout


def test_a_drain_for_programs_prints_nothing_else_on_stdout(run: Any):
    bus = a_landscape(seed("a"), seed("b"), placed("apollo", "a"))

    result = run(bus, "drain", "a", "-o", "json")

    assert json.loads(result.stdout)["moved"] == [{"shoot": "garden-dev/apollo", "from": "a", "to": "b"}]
    assert "has moved" in result.stderr


def test_a_failed_drain_says_what_to_do(run: Any):
    bus = a_landscape(seed("a"), seed("b"), placed("apollo", "a"))
    bus.failing = {"apollo"}

    result = run(bus, "drain", "a")

    assert result.exit_code == 1
    assert "Restore Failed" in result.stderr
    for hint in ("describe shoot apollo", "gardenbus drain a", "--force"):
        assert hint in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["drain", "a", "--timeout", "soon"],
        ["drain", "a", "--timeout", "0s"],
        ["drain", "a", "--at-once", "0"],
        ["drain"],
        ["rebalance", "--band", "wide"],
        ["rebalance", "--band", "120%"],
        ["scale", "managedseedset", "grove"],
        ["scale", "shoot", "apollo", "--replicas", "2"],
        ["scale", "mss", "--replicas", "2"],
        ["scale", "mss", "grove", "--replicas", "-1"],
        ["rollout", "status", "shoot", "apollo"],
        ["rollout", "undo", "mss", "grove", "--to-revision", "7"],
        ["rollout", "history", "mss", "grove", "--revision", "3"],
        ["bind", "apollo"],
    ],
)
def test_usage_errors_end_with_2(run: Any, words: list[str]):
    assert run(a_landscape(a_set(), *revisions()), *words).exit_code == 2


def test_a_set_is_not_scaled_above_the_maximum_of_its_autoscaler(run: Any):
    autoscaler: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "SeedAutoscaler",
        "metadata": {"name": "grove", "namespace": "garden"},
        "spec": {"scaleTargetRef": {"kind": "ManagedSeedSet", "name": "grove"}, "minReplicas": 1, "maxReplicas": 3},
    }
    bus = a_landscape(a_set(), autoscaler)

    result = run(bus, "scale", "mss", "grove", "--replicas", "99")

    assert result.exit_code == 2
    assert "--replicas: must be at most 3, spec.maxReplicas of SeedAutoscaler garden/grove, is 99" in result.stderr
    assert bus.questions("scale") == []
    assert run(bus, "scale", "mss", "grove", "--replicas", "3").exit_code == 0


def test_a_drain_that_leaves_its_seed_cordoned_reports_that(run: Any):
    lonely: Document = {"spec": {"seedSelector": {"matchLabels": {"only": "here"}}}}
    bus = a_landscape(seed("a"), seed("b"), merged(placed("s0", "a"), lonely))

    result = run(bus, "drain", "a", "--timeout", "1s")

    assert result.exit_code == 1
    assert "seed a stays cordoned; `gardenbus uncordon a` lets it take shoots again" in result.stderr


def test_a_landscape_out_of_reach_ends_with_3(run: Any, monkeypatch: pytest.MonkeyPatch):
    bus = a_landscape()
    bus.outages = 1_000
    for words in (["cordon", "a"], ["rebalance"], ["scale", "mss", "grove", "--replicas", "1"], ["drain", "a"]):
        assert run(bus, *words).exit_code == 3


def test_rebalance_prints_its_plan_and_lower_bound(run: Any):
    bus = a_landscape(seed("a"), seed("b"), *(placed(f"s{number}", "a") for number in range(9)))

    text = run(bus, "rebalance")
    value = json.loads(run(bus, "rebalance", "--band", "0.1", "-o", "json").stdout)

    assert "4 moves planned; no plan needs fewer than 4" in text.stdout
    assert value["lowerBound"] == 4
    assert value["complete"]
    assert [share["planned"] for share in value["seeds"]] == [5, 4]
    assert value["moves"][0] == {"shoot": "garden-dev/s0", "from": "a", "to": "b"}
    assert bus.questions("bind") == []


def test_rebalance_carries_out_at_a_bounded_rate(run: Any):
    bus = a_landscape(seed("a"), seed("b"), *(placed(f"s{number}", "a") for number in range(9)))

    result = run(bus, "rebalance", "--apply", "--max-moves", "3", "-o", "json")

    assert len(json.loads(result.stdout)["moved"]) == 3
    assert bus.most_moving == 1
    assert "1 move planned" in run(bus, "rebalance").stdout


def test_get_shows_what_a_set_waits_for_and_what_its_autoscaler_wants(run: Any):
    autoscaler = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "SeedAutoscaler",
        "metadata": {"name": "grove", "namespace": "garden"},
        "spec": {"scaleTargetRef": {"name": "grove"}, "minReplicas": 1, "maxReplicas": 3},
        "status": {"currentReplicas": 2, "desiredReplicas": 4, "pendingShoots": 5},
    }
    pending = {"status": {"pendingReplica": {"name": "grove-1", "reason": "SeedNotReady"}}}
    bus = a_landscape(a_set(**pending), autoscaler)

    assert "grove-1: SeedNotReady" in run(bus, "get", "mss", "-A").stdout
    row = run(bus, "get", "seedautoscalers").stdout.splitlines()[1]
    assert " ".join(row.split()).startswith("garden grove grove 1 3 2 4 5")
    assert run(bus, "get", "mss", "-A", "-n", "garden").exit_code == 2


def test_what_is_in_no_namespace_is_said_so(run: Any):
    result = run(a_landscape(), "get", "mss", "nobody")

    assert (result.exit_code, result.stderr) == (1, "gardenbus: managedseedset nobody not found in any namespace\n")


def test_a_refusal_tells_each_field_once(capsys: pytest.CaptureFixture[str]):
    named, more = {"field": "spec.a", "message": "no"}, {"field": "spec.b", "message": "neither"}

    print_api_error({"reason": "Invalid", "message": "it is invalid: spec.a: no", "details": [named, more]})

    assert capsys.readouterr().err == "gardenbus: Invalid: it is invalid: spec.a: no\n  spec.b: neither\n"


def test_a_refusal_names_once_what_it_is_about(capsys: pytest.CaptureFixture[str]):
    print_api_error({"reason": "NotFound", "message": "shoot dev/a not found"}, "Shoot dev/a")
    print_api_error({"reason": "Forbidden", "message": "shoot dev/ab is in use"}, "Shoot dev/a")

    assert capsys.readouterr().err.splitlines() == [
        "gardenbus: NotFound: shoot dev/a not found",
        "gardenbus: Shoot dev/a: Forbidden: shoot dev/ab is in use",
    ]


def test_a_refusal_of_several_fields_has_a_line_each(capsys: pytest.CaptureFixture[str]):
    one, two = {"field": "spec.a", "message": "no"}, {"field": "spec.b", "message": "neither"}

    print_api_error(
        {"reason": "Invalid", "message": "Shoot dev/a is invalid: spec.a: no", "details": [one]}, "Shoot dev/a"
    )
    print_api_error(
        {"reason": "Invalid", "message": "Shoot dev/a is invalid: spec.a: no; spec.b: neither", "details": [one, two]},
        "Shoot dev/a",
    )

    assert capsys.readouterr().err.splitlines() == [
        "gardenbus: Shoot dev/a: Invalid: spec.a: no",
        "gardenbus: Shoot dev/a: Invalid",
        "  spec.a: no",
        "  spec.b: neither",
    ]


def test_a_plan_that_leaves_seeds_uneven_does_not_boast_of_being_short(run: Any):
    bus = a_landscape(seed("a"), seed("b"), *(placed(f"s{number}", "a") for number in range(9)))

    reported = run(bus, "rebalance", "--max-moves", "2").stdout

    assert "2 moves planned\n" in reported
    assert "no plan needs fewer" not in reported
    assert "not every seed comes into the band, which takes 4 moves at the least" in reported


def test_scale_sets_replicas(run: Any):
    bus = a_landscape(a_set())

    result = run(bus, "scale", "managedseedset", "grove", "--replicas", "5")

    assert result.exit_code == 0
    assert "managedseedset garden/grove is scaled from 2 to 5; 1 are there" in result.stdout
    assert bus.questions("scale") == [{"namespace": "garden", "name": "grove", "replicas": 5}]
    assert run(bus, "scale", "mss/grove", "--replicas", "4", "--resource-version", "1").exit_code == 1
    assert json.loads(run(bus, "scale", "mss", "grove", "--replicas", "4", "-o", "json").stdout)["replicas"] == 4


def test_scale_warns_of_an_autoscaler_that_will_scale_again(run: Any):
    autoscaler = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "SeedAutoscaler",
        "metadata": {"name": "grower", "namespace": "garden"},
        "spec": {"scaleTargetRef": {"name": "grove"}, "maxReplicas": 3},
    }
    other = merged(autoscaler, {"metadata": {"name": "other"}, "spec": {"scaleTargetRef": {"name": "wood"}}})

    result = run(a_landscape(a_set(), autoscaler, other), "scale", "mss", "grove", "--replicas", "3")

    assert result.exit_code == 0
    assert result.stderr == (
        "gardenbus: warning: SeedAutoscaler garden/grower scales this set, and will scale it again, "
        "to 1 at the least and 3 at the most: change these to keep it\n"
    )


def test_a_seed_without_backup_is_not_cordoned_for_a_drain_that_cannot_be(run: Any):
    bus = a_landscape(merged(seed("lone"), {"spec": {"backup": None}}), placed("one", "lone"), placed("two", "lone"))

    result = run(bus, "drain", "lone")

    assert result.exit_code == 1
    assert "seed lone has no spec.backup" in result.stderr
    assert "its 2 shoots cannot leave it. Nothing was changed" in result.stderr
    assert not bus.questions("patch")
    assert not bus.questions("bind")


@pytest.mark.parametrize(
    ("changes", "code", "is_over"),
    [
        ({}, 0, True),
        ({"status": {"observedGeneration": 1}}, 0, False),
        ({"status": {"readyReplicas": 1}}, 0, False),
        ({"spec": {"replicas": 3}}, 0, False),
        ({"status": {"conditions": [{"type": "Progressing", "status": "True", "reason": "Updating"}]}}, 0, False),
        ({"status": {"conditions": [{"type": "Progressing", "status": "False", "reason": "UpdateFailed"}]}}, 1, True),
        ({"status": {"conditions": []}}, 0, True),
    ],
)
def test_rollout_status_says_how_far_it_is(run: Any, changes: Any, code: int, is_over: bool):
    result = run(a_landscape(a_set(**changes)), "rollout", "status", "mss", "grove", "-o", "json")

    assert result.exit_code == code
    assert json.loads(result.stdout)["over"] == is_over


def test_rollout_status_waits_no_longer_than_it_is_told(run: Any):
    bus = a_landscape(a_set(status={"readyReplicas": 1}))

    result = run(bus, "rollout", "status", "mss", "grove", "--watch", "--timeout", "1ms")

    assert result.exit_code == 1
    assert "not over after 1ms" in result.stderr


def test_rollout_history_lists_the_revisions_of_the_set_alone(run: Any):
    bus = a_landscape(a_set(), *revisions())

    listed = json.loads(run(bus, "rollout", "history", "mss", "grove", "-o", "json").stdout)
    table = run(bus, "rollout", "history", "mss", "grove").stdout

    assert [(each["revision"], each["name"]) for each in listed] == [(1, "grove-a"), (2, "grove-b")]
    assert listed[1]["inUseAs"] == ["current", "update"]
    assert "current,update" in table
    assert "old: 1" in run(bus, "rollout", "history", "mss", "grove", "--revision", "1").stdout


@pytest.mark.parametrize("words", [[], ["--to-revision", "1"]])
def test_rollout_undo_gives_the_set_exactly_the_old_templates(run: Any, words: list[str]):
    bus = a_landscape(a_set(), *revisions())

    result = run(bus, "rollout", "undo", "mss", "grove", *words)

    assert result.exit_code == 0
    assert "templates of revision 1 again" in result.stdout
    spec = bus.objects["managedseedset", "garden", "grove"]["spec"]
    assert {name: spec[name] for name in TEMPLATES} == TEMPLATES
    assert spec["replicas"] == 2
    assert bus.questions("patch")[0]["metadata"] == {"resourceVersion": "1"}


def test_undoing_goes_to_the_revision_before_the_present_one_also_after_an_undo(run: Any):
    bus = a_landscape(a_set(), *revisions())
    undone = [run(bus, "rollout", "undo", "mss", "grove").stdout for _ in range(2)]
    assert "templates of revision 1 again" in undone[0]
    assert "templates of revision 2 again" in undone[1]


def test_without_an_earlier_revision_nothing_is_undone(run: Any):
    result = run(a_landscape(a_set(), revisions()[0]), "rollout", "undo", "mss", "grove")
    assert (result.exit_code, result.stderr) == (1, "gardenbus: there is no earlier revision to go back to\n")


def test_undoing_to_what_is_there_changes_nothing(run: Any):
    bus = a_landscape(a_set(), *revisions())

    assert "already" in run(bus, "rollout", "undo", "mss", "grove", "--to-revision", "2").stdout
    assert bus.questions("patch") == []


@pytest.mark.parametrize(
    "command",
    ["bind", "cordon", "uncordon", "drain", "rebalance", "scale", "rollout status", "rollout history", "rollout undo"],
)
def test_each_command_helps_with_an_example(command: str):
    result = CliRunner().invoke(app, [*command.split(), "--help"])

    assert f"Example: gardenbus {command}" in result.stdout
