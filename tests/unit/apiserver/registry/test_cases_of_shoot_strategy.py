"""When a change of a shoot raises its generation: each case of Gardener's registry strategy of Shoot.

Source: `pkg/apiserver/registry/core/shoot/strategy_test.go`.
"""

from typing import Any

import pytest

from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.shoot_operations import OPERATION
from gardenbus.common.api.keys import ObjectKey
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
SEED = "aws-eu1"
RUNNING = {"seedName": SEED, "lastOperation": {"type": "Reconcile", "state": "Succeeded"}}


class Registry:
    """A writer on a store in memory, and a shoot that runs on a seed."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.store = MemoryStore(clock)
        self.writer = Writer(self.store, clock)

    def reads(self) -> ReadCache:
        return ReadCache(self.store, ManifestCache(self.store))

    async def begin(self, **changes: Any) -> StoredObject:
        for document in (a_project(), a_cloudprofile(), a_seed(SEED)):
            await self.writer.apply(document, self.reads(), user="ann")
        await self.writer.apply(a_shoot(), self.reads(), user="ann")
        stored = await self.now()
        document = merged(stored.document(), merged({"spec": {"seedName": SEED}, "status": RUNNING}, changes))
        await self.store.update(stored, document)
        return await self.now()

    async def now(self) -> StoredObject:
        stored = await self.store.get(APOLLO)
        assert stored is not None
        return stored

    async def raised(self, patch: Document, **changes: Any) -> int:
        """By how much a change raises the generation."""
        before = await self.begin(**changes)
        await self.writer.patch(APOLLO, patch, self.reads(), user="ann")
        return (await self.now()).generation - before.generation

    async def deleted(self, **changes: Any) -> int:
        before = await self.begin(metadata={"finalizers": ["gardener"]}, **changes)
        confirmed = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
        await self.writer.patch(APOLLO, confirmed, self.reads(), user="ann")
        await self.writer.delete(APOLLO, self.reads())
        return (await self.now()).generation - before.generation


def annotated(**annotations: str) -> Document:
    return {"metadata": {"annotations": annotations}}


@pytest.mark.parametrize(
    ("patch", "is_raised"),
    [
        ({}, False),
        ({"metadata": {"labels": {"foo": "bar"}}}, False),
        ({"spec": {"purpose": "testing"}}, True),
    ],
    ids=["no change", "a label", "the spec"],
)
async def test_changes_of_the_spec_raise_the_generation(patch: Document, *, is_raised: bool) -> None:
    assert await Registry().raised(patch) == int(is_raised)


async def test_a_forced_deletion_raises_the_generation() -> None:
    forced = annotated(**{"confirmation.gardener.cloud/force-deletion": "true"})
    errors = [{"description": "it stays", "codes": ["ERR_CLEANUP_CLUSTER_RESOURCES"]}]
    registry = Registry()
    await registry.deleted(status={"lastErrors": errors})
    before = await registry.now()
    await registry.writer.patch(APOLLO, forced, registry.reads(), user="ann")
    assert (await registry.now()).generation == before.generation + 1


async def test_a_deletion_raises_the_generation() -> None:
    assert await Registry().deleted() == 1


def confined(*, by: bool | None) -> Document:
    return {} if by is None else {"maintenance": {"confineSpecUpdateRollout": by}}


@pytest.mark.parametrize(
    ("before", "after", "more", "is_raised"),
    [
        (True, False, {}, True),
        (False, True, {}, False),
        (None, False, {"purpose": "testing"}, True),
        (True, True, {"purpose": "testing"}, False),
    ],
)
async def test_a_confined_rollout_waits(
    before: bool | None,
    after: bool,
    more: Document,
    *,
    is_raised: bool,
) -> None:
    patch = {"spec": {**confined(by=after), **more}}
    assert await Registry().raised(patch, spec=confined(by=before)) == int(is_raised)


NOTHING: Document | None = None
UNSTATED: Document = {"schedules": []}
ON, OFF, TAKEN_OFF = {"enabled": True}, {"enabled": False}, {"enabled": None}
TRANSITIONS: list[tuple[Document | None, Document | None, bool]] = [
    *((NOTHING, NOTHING, False), (NOTHING, OFF, False), (NOTHING, ON, True)),
    *((UNSTATED, OFF, False), (UNSTATED, ON, True), (UNSTATED, NOTHING, False)),
    *((ON, ON, False), (ON, OFF, True), (ON, TAKEN_OFF, True), (ON, NOTHING, True)),
    *((OFF, ON, True), (OFF, OFF, False), (OFF, TAKEN_OFF, False), (OFF, NOTHING, False)),
]
"""Of `spec.hibernation`: before, what a patch states, and whether the generation grows."""


@pytest.mark.parametrize(("before", "after", "is_raised"), TRANSITIONS)
async def test_hibernation_is_switched_at_once_all_the_same(
    before: Document | None, after: Document | None, *, is_raised: bool
) -> None:
    spec = confined(by=True) | ({} if before is None else {"hibernation": before})
    assert await Registry().raised({"spec": {"hibernation": after}}, spec=spec) == int(is_raised)


ROTATIONS = (
    *("rotate-credentials-start", "rotate-credentials-start-without-workers-rollout", "rotate-credentials-complete"),
    *("rotate-ssh-keypair", "rotate-observability-credentials"),
    *("rotate-etcd-encryption-key", "rotate-etcd-encryption-key-start", "rotate-etcd-encryption-key-complete"),
    *("rotate-ca-start", "rotate-ca-start-without-workers-rollout", "rotate-ca-complete"),
    *("rotate-serviceaccount-key-start", "rotate-serviceaccount-key-start-without-workers-rollout"),
    *("rotate-serviceaccount-key-complete", "rotate-rollout-workers=pool-a"),
)


@pytest.mark.parametrize(
    ("operation", "state", "is_raised", "is_kept"),
    [
        ("retry", "Failed", True, False),
        ("retry", "Succeeded", False, True),
        ("retry", None, False, True),
        ("reconcile", "Succeeded", True, False),
        ("force-in-place-update", "Succeeded", False, True),
    ],
)
async def test_an_operation_raises_the_generation_and_goes(
    operation: str, state: str | None, *, is_raised: bool, is_kept: bool
) -> None:
    registry = Registry()
    last = {"lastOperation": state and {"type": "Reconcile", "state": state}}
    assert await registry.raised(annotated(**{OPERATION: operation}), status=last) == int(is_raised)
    annotations = (await registry.now()).annotations
    assert annotations.get(OPERATION) == (operation if is_kept else None)


OF_STEPS = ("certificateAuthorities", "serviceAccountKey", "etcdEncryptionKey")


@pytest.mark.parametrize("operation", ROTATIONS)
async def test_a_rotation_raises_it_once_and_stays(operation: str) -> None:
    registry = Registry()
    is_rollout = operation.startswith("rotate-rollout-workers")
    phase = "WaitingForWorkersRollout" if is_rollout else "Prepared" if operation.endswith("-complete") else "Completed"
    rotation = {"credentials": {"rotation": {field: {"phase": phase} for field in OF_STEPS}}}
    older = {"kubernetes": {"version": "1.33.6"}}
    assert await registry.raised(annotated(**{OPERATION: operation}), status=rotation, spec=older) == 1
    assert (await registry.now()).annotations.get(OPERATION) == operation


async def test_differences_nothing_waits_without_a_gardenlet_and_shoots_without_workers_are_reconciled() -> None:
    """In Gardener the change waits, and the annotation goes without a reconciliation."""
    unclaimed = {"seedName": None}
    assert await Registry().raised({"spec": {"purpose": "testing"}}, spec=confined(by=True), status=unclaimed) == 1
    rotation = annotated(**{OPERATION: "rotate-ssh-keypair"})
    assert await Registry().raised(rotation, spec={"provider": {"workers": []}}) == 1
