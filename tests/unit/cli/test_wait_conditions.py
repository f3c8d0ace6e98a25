"""What is waited for, what is described, and what an object has to do with."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardenbus.cli.commands.describe import condition_lines, head_lines, operation_lines, sections_of
from gardenbus.cli.describe.related import is_owned_by, listed, relations_of
from gardenbus.cli.wait.conditions import failure_message, has_given_up, parse_condition, progress_text
from gardenbus.cli.wait.waiter import PendingWaits, key_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest
from tests.support.builders import a_condition, a_seed, a_shoot, merged

NOW = datetime(2026, 1, 2, 4, 4, 5, tzinfo=UTC)


def placed(**status: Any) -> Document:
    operation = {"type": "Create", "state": "Succeeded", "progress": 100}
    return a_shoot(
        "apollo",
        metadata={"generation": 2},
        spec={"seedName": "aws"},
        status={"seedName": "aws", "observedGeneration": 2, "lastOperation": operation, **status},
    )


@pytest.mark.parametrize(
    ("goal", "document", "is_reached"),
    [
        ("scheduled", placed(), True),
        ("scheduled", a_shoot(), False),
        ("scheduled", None, False),
        ("reconciled", placed(), True),
        ("reconciled", placed(observedGeneration=1), False),
        ("reconciled", a_seed(), False),
        ("reconciled", {"metadata": {"generation": 3}, "status": {"observedGeneration": 3}}, True),
        ("delete", None, True),
        ("delete", placed(), False),
        ("create", placed(), True),
        ("condition=GardenletReady", a_seed(status={"conditions": [a_condition("GardenletReady")]}), True),
        ("condition=gardenletready=true", a_seed(status={"conditions": [a_condition("GardenletReady")]}), True),
        ("condition=GardenletReady=False", a_seed(status={"conditions": [a_condition("GardenletReady")]}), False),
        ("condition=Other", a_seed(), False),
        ("condition=Other", None, False),
        ("jsonpath={.spec.seedName}=aws", placed(), True),
        ("jsonpath={.spec.seedName}", placed(), True),
        ("jsonpath=.spec.seedName=gcp", placed(), False),
        ("jsonpath={.metadata.generation}=2", placed(), True),
        ("jsonpath={.nothing}", placed(), False),
        ('jsonpath={.status.conditions[?(@.type=="A")].status}=True', {"status": {"conditions": []}}, False),
    ],
)
def test_a_goal_is_reached_or_not(goal: str, document: Document | None, is_reached: bool):
    assert parse_condition(goal).reached(document) is is_reached


@pytest.mark.parametrize("text", ["", "ready", "condition", "jsonpath", "jsonpath={.a", "condition="])
def test_what_is_no_goal_is_refused(text: str):
    with pytest.raises(BadRequest):
        parse_condition(text)


def test_waiting_ends_for_who_arrives_and_for_who_has_failed():
    met: list[ObjectKey] = []
    goal = parse_condition("scheduled")
    apollo, bolt, comet = (ObjectKey("shoot", "garden-dev", name) for name in ("apollo", "bolt", "comet"))
    waiting = PendingWaits(dict.fromkeys((apollo, bolt, comet), goal), met.append)
    failed = a_shoot("bolt", status={"lastOperation": {"state": "Failed", "description": "no quota"}})

    waiting.observe(apollo, placed())
    waiting.observe(bolt, failed)
    waiting.observe(comet, None)

    assert met == [apollo]
    assert waiting.keys == {comet}
    assert dict(waiting.left) == {bolt: failed, comet: None}
    assert failure_message(failed) == "no quota"
    assert (progress_text(None), progress_text(a_shoot())) == ("not there", "nothing reported yet")
    assert key_of(placed()) == apollo
    assert key_of({"kind": "shoot", "namespace": "garden-dev", "name": "apollo"}) == apollo


def test_a_failure_from_before_the_last_change_does_not_end_a_wait() -> None:
    operation = {"state": "Failed", "type": "Create"}
    failed = a_shoot(metadata={"generation": 2}, status={"lastOperation": operation, "observedGeneration": 2})
    assert has_given_up(failed)
    assert not has_given_up(merged(failed, {"metadata": {"generation": 3}}))
    deleting = merged(failed, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert not has_given_up(deleting)
    assert has_given_up(merged(deleting, {"status": {"lastOperation": {"type": "Delete"}}}))


def test_an_operation_is_drawn_with_its_progress():
    operation = {
        "type": "Create",
        "state": "Processing",
        "progress": 45,
        "description": "Waiting for machines",
        "lastUpdateTime": "2026-01-02T04:03:55Z",
    }

    assert operation_lines(operation, NOW) == [
        "Create Processing  █████████░░░░░░░░░░░ 45%  (10s ago)",
        "Waiting for machines",
    ]


def test_conditions_are_a_table():
    conditions = [
        {"type": "A", "status": "True", "reason": "Fine", "lastTransitionTime": "2026-01-02T04:03:55Z"},
        {"type": "Longer", "status": "False", "message": "two\nlines"},
    ]

    assert condition_lines(conditions, NOW) == [
        "TYPE     STATUS   SINCE   REASON   MESSAGE",
        "A        True     10s     Fine",
        "Longer   False                     two lines",
    ]
    assert condition_lines("none", NOW) == []


def test_a_description_has_what_is_there_and_nothing_else():
    waiting = a_shoot(status={"lastOperation": {"type": "Create", "state": "Pending", "progress": 0}})
    shoot = merged(placed(conditions=[a_condition("APIServerAvailable")]), {"metadata": {"labels": {"a": "b"}}})

    assert [name for name, _ in sections_of(waiting, NOW)] == ["Spec", "Operation", "Waiting"]
    assert [name for name, _ in sections_of(shoot, NOW)] == ["Spec", "Operation", "Conditions", "Status"]
    assert "  Generation      2 (observed: 2)" in head_lines(shoot, NOW)
    assert "  Labels          a=b" in head_lines(shoot, NOW)
    assert sections_of({"kind": "ConfigMap", "data": {"a": "b"}}, NOW) == [("Spec", ["data:", "  a: b"])]


def test_an_object_is_related_to_those_that_it_names():
    shoot = merged(placed(), {"metadata": {"ownerReferences": [{"kind": "ManagedSeedSet", "name": "grove"}]}})

    relations = [(relation.word, str(relation.key)) for relation in relations_of(shoot)]

    assert relations[0] == ("owner", "managedseedset garden-dev/grove")
    assert ("to be on", "seed aws") in relations
    assert ("is on", "seed aws") in relations
    assert any(word == "profile" for word, _ in relations)
    assert [relation.word for relation in relations_of(a_seed("aws"))] == ["made of", "heartbeat"]
    assert is_owned_by({"metadata": {"ownerReferences": [{"uid": "u"}]}}, {"metadata": {"uid": "u"}})


def test_many_that_refer_to_one_are_counted():
    lines = listed("shoots", [a_shoot(f"s{number:02}") for number in range(12)])

    assert lines[0] == "shoots           12"
    assert len(lines) == 12
    assert lines[-1].strip() == "and 2 more"
