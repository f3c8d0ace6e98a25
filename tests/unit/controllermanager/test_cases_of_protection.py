"""Finalizers of profiles, classes and quotas, staleness' triggers, references and Events: Gardener's remaining cases.

Source: `{cloudprofile,namespacedcloudprofile,exposureclass,quota,event,shoot/reference}/reconciler_test.go` and
`project/stale/add_test.go` of `pkg/controllermanager/controller`. The others are in `test_protection.py`,
`test_cases_of_references.py` and `test_events.py`.
"""

from datetime import datetime
from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import REFERENCE_FINALIZER
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.controller import Done
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import Message, StreamMessage
from gardenbus.common.ports.clock import timestamp
from gardenbus.controllermanager.controllers import project, protection, reference, stale_project
from gardenbus.controllermanager.housekeeping import CHECKS, EventExpiry
from gardenbus.controllermanager.watch.loop import Loop
from tests.support.builders import CORE, a_cloudprofile, a_namespaced_cloudprofile, a_project, a_shoot
from tests.support.clocks import FakeClock
from tests.support.loops import Garden, request_of
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

LOOPS: dict[str, Loop] = {loop.kind: loop for loop in protection.LOOPS}


def an_object(kind: str, name: str, namespace: str = "", **more: Any) -> Document:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": CORE, "kind": kind, "metadata": metadata, **more}


LIMIT = [{"name": "limit", "namespace": "garden-dev"}]
BINDING: Document = {"provider": {"type": "aws"}, "quotas": LIMIT, "secretRef": {"name": "key"}}
PROTECTED: dict[str, tuple[Document, Document]] = {
    "cloudprofile": (a_cloudprofile(), a_shoot()),
    "namespacedcloudprofile": (
        a_namespaced_cloudprofile(),
        a_shoot(spec={"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "own"}}),
    ),
    "exposureclass": (
        an_object("ExposureClass", "public", handler="public"),
        a_shoot(spec={"exposureClassName": "public"}),
    ),
    "quota": (an_object("Quota", "limit", "garden-dev"), an_object("SecretBinding", "mine", "garden-dev", **BINDING)),
}
BY_KIND = pytest.mark.parametrize(("protected", "user"), PROTECTED.values(), ids=PROTECTED)


def key_of(document: Document) -> ObjectKey:
    metadata = document["metadata"]
    return ObjectKey(document["kind"].lower(), metadata.get("namespace", ""), metadata["name"])


async def finalizers(garden: Garden, key: ObjectKey) -> tuple[str, ...] | None:
    stored = await garden.store.get(key)
    return None if stored is None else stored.parts.finalizers


@BY_KIND
async def test_what_is_not_there_is_done(protected: Document, user: Document) -> None:
    assert user
    assert await Garden().reconcile(LOOPS[key_of(protected).kind], key_of(protected)) == Done("it is gone")


@BY_KIND
async def test_what_is_deleted_without_the_finalizer_is_left_alone_though_it_is_used(
    protected: Document, user: Document
) -> None:
    garden, key = Garden(), key_of(protected)
    kept = {**protected, "metadata": {**protected["metadata"], "finalizers": ["other"]}}
    await garden.add(kept, user)
    await garden.delete(key)
    before = await garden.store.get(key)
    assert await garden.reconcile(LOOPS[key.kind], key) == Done("it is being deleted")
    assert await garden.store.get(key) == before
    assert garden.events() == []


@BY_KIND
async def test_what_nothing_uses_goes_at_once(protected: Document, user: Document) -> None:
    garden, key = Garden(), key_of(protected)
    assert key != key_of(user)
    await garden.add(protected)
    await garden.reconcile(LOOPS[key.kind], key)
    assert await garden.delete(key)
    assert await garden.reconcile(LOOPS[key.kind], key) == Done("it is released")
    assert await finalizers(garden, key) is None


@pytest.mark.parametrize("is_deleted", [False, True])
@BY_KIND
async def test_a_store_that_is_away_has_it_tried_again(
    protected: Document, user: Document, *, is_deleted: bool
) -> None:
    garden, key = Garden(), key_of(protected)
    assert key != key_of(user)
    await garden.add(protected)
    if is_deleted:
        await garden.reconcile(LOOPS[key.kind], key)
        await garden.delete(key)
    before = await garden.store.get(key)
    garden.store.close_for_writes()
    reconcile = LOOPS[key.kind].build(garden.context(key.kind)).reconcile
    with pytest.raises(Unavailable):
        await reconcile(request_of(LOOPS[key.kind], key))
    garden.store.open()
    assert await garden.store.get(key) == before
    await garden.reconcile(LOOPS[key.kind], key)
    assert await finalizers(garden, key) == (None if is_deleted else ("gardener",))


# ------------------------------------------------------------------------------------------- Secrets of resources


def named(*names: str) -> Document:
    return {
        "resources": [
            {"name": name, "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": name}} for name in names
        ]
    }


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ((), (), ()),
        ((), ("a", "b"), ("a", "b")),
        (("a", "b"), ("b",), ("b",)),
        (("a",), None, ()),
    ],
    ids=["none", "two are named", "one is named no more", "the shoot goes"],
)
async def test_secrets_among_the_resources_have_the_finalizer_while_a_shoot_names_them(
    before: tuple[str, ...], after: tuple[str, ...] | None, kept: tuple[str, ...]
) -> None:
    garden, shoot = Garden(), ObjectKey("shoot", "garden-dev", "apollo")
    of_shoots = reference.LOOPS[0]
    of_secrets = next(loop for loop in reference.LOOPS if loop.kind == "secret")
    secrets = [ObjectKey("secret", "garden-dev", name) for name in ("a", "b")]
    for key in secrets:
        secret = an_object("Secret", key.name, key.namespace)
        await garden.add({**secret, "apiVersion": "v1"})
    stored = await garden.add(a_shoot(spec=named(*before)))
    await garden.reconcile(of_shoots, shoot)
    built = of_secrets.build(garden.context(of_secrets.name))
    built.changed(shoot, None, stored)
    if after is None:
        await garden.delete(shoot)
    else:
        await garden.change(shoot, lambda document: document["spec"].update(named(*after)))
    await garden.reconcile(of_shoots, shoot)
    built.changed(shoot, stored, await garden.store.get(shoot))
    for key in secrets:
        await built.reconcile(request_of(of_secrets, key))
    expected = {key: (REFERENCE_FINALIZER,) if key.name in kept else () for key in secrets}
    assert {key: await finalizers(garden, key) for key in secrets} == expected
    assert await finalizers(garden, shoot) == (None if after is None else (REFERENCE_FINALIZER,) if after else ())


# ------------------------------------------------------------------------------------ checks of stale projects

NOW = datetime.fromisoformat("2026-06-01T12:00:00+00:00")
PROJECT = ObjectKey("project", "", "dev")


@pytest.mark.parametrize("case", ["created", "active", "unchanged", "changed", "deleted", "exempted"])
async def test_when_a_project_is_checked(case: str) -> None:
    """A difference: a project that was checked comes back by its timer alone; a change of it has Gardener check it."""
    garden = Garden(clock=FakeClock(NOW))
    await garden.add(a_project())
    await garden.reconcile(project.LOOP, PROJECT)
    old = await garden.store.get(PROJECT)
    assert old is not None
    changed = stale_project.LOOP.build(garden.context(stale_project.NAME)).changed
    garden.enqueued.clear()
    if case == "exempted":
        key = ObjectKey("namespace", "", "garden-dev")
        namespace = await garden.store.get(key)
        garden.projects.changed(PROJECT, None, old)
        annotations = {"project.gardener.cloud/skip-stale-check": "true"}
        exempt = await garden.change(
            key, lambda each: each["metadata"].setdefault("annotations", {}).update(annotations)
        )
        changed(key, namespace, exempt)
    else:
        part, fields = {
            "active": ("status", {"lastActivityTimestamp": timestamp(NOW)}),
            "changed": ("spec", {"description": "x"}),
        }.get(case, ("spec", {}))
        new = await garden.change(PROJECT, lambda dev: dev[part].update(fields)) if fields else old
        changed(PROJECT, None if case == "created" else old, None if case == "deleted" else new)
    assert garden.enqueued == ([(stale_project.NAME, PROJECT)] if case in ("created", "exempted") else [])


# ------------------------------------------------------------------------------------------- Events

TTL = 3600.0


async def kinds_left(*about: tuple[str, float], after: float) -> list[str]:
    """Kinds of Events that are left some hours later: each of them published at an hour."""
    clock, subjects = FakeClock(), Subjects()
    bus = MemoryBus(clock)
    expiry = EventExpiry(MemoryStore(clock), bus, subjects, clock, ttl_seconds=TTL)
    for check in range(round(after * CHECKS) + 1):
        for kind, hour in about:
            if round(hour * CHECKS) == check:
                await bus.publish(Message(subjects.event(ObjectKey(kind, "garden-dev", "one")), b"{}"))
        await expiry.check()
        clock.advance(TTL / CHECKS)
    found: list[str] = []
    async with bus.follow("EVENTS", ["garden.event.>"]) as follower:
        async for event in follower:
            if not isinstance(event, StreamMessage):
                return found
            found.append(event.subject.split(".")[2])
    return found


@pytest.mark.parametrize("kind", ["project", "namespace", "secret", "seed", "managedseed"])
async def test_an_event_lives_for_its_time_after_it_occurred(kind: str) -> None:
    assert await kinds_left((kind, 0), after=1 - 1 / CHECKS) == [kind]
    assert await kinds_left((kind, 0), after=1) == []


async def test_of_an_event_that_occurs_again_the_last_time_counts() -> None:
    assert await kinds_left(("project", 0), ("project", 2), after=3 - 1 / CHECKS) == ["project"]
    assert await kinds_left(("project", 0), ("project", 2), after=3) == []


async def test_an_event_about_a_shoot_stays_and_one_that_is_gone_is_no_matter() -> None:
    assert await kinds_left(("shoot", 0), after=5) == ["shoot"]
    assert await kinds_left(after=2) == []
