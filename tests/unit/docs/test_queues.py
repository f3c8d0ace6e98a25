"""The table of queues is complete, and a row is all that a queue needs beside its controller."""

import re
from collections.abc import MutableMapping
from pathlib import Path
from typing import cast

import pytest

from gardenbus.common.api.identity.permissions import covers, permissions_of
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.api.kinds import KINDS, by_word
from gardenbus.common.api.queues import QUEUES, Queue, queues_of
from gardenbus.docs.asyncapi import asyncapi
from gardenbus.docs.subjects import subjects_page
from gardenbus.placement.app import CONTROLLERS

ROOT = Path(__file__).parents[3]
SUBJECTS = Subjects()


def names(service: str) -> list[str]:
    return [queue.name for queue in queues_of(service)]


def test_each_controller_of_placement_has_a_row_and_each_row_a_controller() -> None:
    assert list(CONTROLLERS) == names("placement")


@pytest.mark.parametrize("queue", QUEUES.values(), ids=lambda queue: queue.name)
def test_the_kinds_of_a_row_are_kinds_and_their_scope_is_right(queue: Queue) -> None:
    for namespace, word in (("", queue.kind), ("dev", queue.namespaced_kind)):
        if word:
            kind = by_word(word, stored=())
            assert kind.kind.lower() == word
            assert kind.namespaced or not namespace
    if queue.namespaced_kind:
        assert not by_word(queue.kind, stored=()).namespaced


@pytest.mark.parametrize("queue", QUEUES.values(), ids=lambda queue: queue.name)
def test_only_the_consumer_of_a_queue_may_take_its_work(queue: Queue) -> None:
    consumer = queue.consumer_of("default-scheduler") if queue.is_per_scheduler else queue.name
    subject = f"$JS.API.CONSUMER.MSG.NEXT.QUEUES.{consumer}"
    allowed = {
        service
        for service in {each.consumer for each in QUEUES.values()}
        if covers(permissions_of(Principal("service", service), SUBJECTS).publish, subject)
    }
    assert queue.consumer in allowed
    assert allowed <= {queue.consumer, "scheduler"}  # its consumers have the names of users' schedulers


def test_a_row_brings_permissions_and_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    added = Queue("shootgreeting", "controllermanager", "shoot", "greets new shoots")
    monkeypatch.setitem(cast("MutableMapping[str, Queue]", QUEUES), added.name, added)
    publish = permissions_of(Principal("service", "controllermanager"), SUBJECTS).publish
    for subject in (
        "garden.queue.shootgreeting.dev.apollo",
        "garden.later.shootgreeting.dev.apollo",
        "$JS.API.CONSUMER.CREATE.QUEUES.shootgreeting",
        "$JS.ACK.QUEUES.shootgreeting.1.2.3",
    ):
        assert covers(publish, subject), subject
        assert not covers(permissions_of(Principal("service", "lifecycle"), SUBJECTS).publish, subject), subject
    assert "| `shootgreeting` | greets new shoots | controllermanager | shoot | informer |" in subjects_page()
    assert "shootgreeting" in asyncapi()["channels"]["queue"]["parameters"]["controller"]["enum"]


def test_a_queue_is_named_by_its_row_and_its_controller_alone() -> None:
    """Configuration files have some of the names as keys; names that kinds have too are everywhere."""
    sources = {path: path.read_text(encoding="utf-8") for path in ROOT.glob("*/*/src/**/*.py")}
    for name in set(names("controllermanager")) - KINDS.keys():
        holding = {path.name for path, text in sources.items() if re.search(rf"[\"'.]{name}\"", text)}
        assert "queues.py" in holding
        assert len(holding - {"queues.py", "controller_manager.py", "shoot_controllers.py"}) <= 1, (name, holding)
