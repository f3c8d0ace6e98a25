"""A gardenlet that registers its own Seed, while the ManagedSeed that it comes from is being deleted."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gardenbus.apiserver.domain.request_subjects import reported_object
from gardenbus.apiserver.messages.reports import ReportHandler
from gardenbus.apiserver.registry.read_cache import ManifestCache
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject, encode
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.controller.dead_letter import DeadLetter
from gardenbus.common.ports.bus import Message, WorkQueue
from gardenbus.common.ports.connections import Connections
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

SEED = ObjectKey("seed", "", "child")
MANAGED_SEED = ObjectKey("managedseed", "garden", "child")


class Meddled(MemoryStore):
    """Something happens right before a Seed is written."""

    before_writing: Callable[[], Awaitable[None]] | None = None

    async def create(self, document: Document, **options: Any) -> Any:
        await self._meddle(document)
        return await super().create(document, **options)

    async def update(self, base: StoredObject, document: Document, **options: Any) -> Any:
        await self._meddle(document)
        return await super().update(base, document, **options)

    async def _meddle(self, document: Document) -> None:
        if document["kind"] == "Seed" and self.before_writing is not None:
            meddling, self.before_writing = self.before_writing, None
            await meddling()


class Registry:
    """The apiserver's part that takes reports."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.store = Meddled(clock)
        self.bus = MemoryBus(clock)
        self.subjects = Subjects()
        self.queue: WorkQueue

    async def begin(self) -> "Registry":
        self.queue = await self.bus.work_queue("REPORTS", "apiserver", "garden.report.>")
        self.reports = ReportHandler(
            bus=self.bus,
            store=self.store,
            subjects=self.subjects,
            queue=self.queue,
            writer=Writer(self.store, FakeClock()),
            manifests=ManifestCache(self.store),
            dead_letter=DeadLetter(
                Connections(self.store, self.bus, self.subjects),
                reporter="apiserver",
                object_of=reported_object(self.subjects),
            ),
            concurrency=1,
        )
        for document in (a_project("garden", "garden"), a_cloudprofile(), a_seed("host")):
            await self.store.create(document)
        await self.store.create(a_shoot("child", "garden", spec={"seedName": "host"}, status={"seedName": "host"}))
        await self.store.create(a_managed_seed())
        return self

    async def register(self, seed: str = "child", **changes: Any) -> None:
        """Have the gardenlet of a seed apply its own Seed."""
        body = encode(a_seed(seed, ready=False, **changes))
        subject = self.subjects.report(seed, ObjectKey("seed", "", seed))
        await self.bus.publish(Message(subject, body, {Header.VERB: "apply"}))
        await self.reports.handle(await self.queue.fetch(10, 0))

    async def delete_managed_seed(self) -> None:
        stored = await self.store.get(MANAGED_SEED)
        assert stored is not None
        await self.store.delete(stored)

    async def remove_seed(self) -> None:
        stored = await self.store.get(SEED)
        assert stored is not None
        await self.store.delete(stored)

    async def reasons(self) -> list[str]:
        stream = self.bus.server.stream("REJECTED")
        return [message.headers["Gardenbus-Reason"] for message in stream.messages.values()]


def a_managed_seed() -> Document:
    return {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "child", "namespace": "garden", "finalizers": ["gardener"]},
        "spec": {"shoot": {"name": "child"}, "gardenlet": {}},
    }


@pytest.fixture
async def registry() -> Registry:
    return await Registry().begin()


async def test_it_is_refused_when_its_managed_seed_is_deleted_between_the_check_and_the_write(
    registry: Registry,
) -> None:
    registry.store.before_writing = registry.delete_managed_seed
    await registry.register()

    assert await registry.store.get(SEED) is None
    assert "is being deleted" in (await registry.reasons())[0]


async def test_it_is_not_raised_when_its_seed_is_removed_between_the_check_and_the_write(registry: Registry) -> None:
    await registry.register()
    await registry.delete_managed_seed()
    registry.store.before_writing = registry.remove_seed
    await registry.register(metadata={"labels": {"a": "b"}})

    assert await registry.store.get(SEED) is None
    assert "is being deleted" in (await registry.reasons())[0]


async def test_it_is_taken_when_its_managed_seed_merely_changed_meanwhile(registry: Registry) -> None:
    async def change() -> None:
        stored = await registry.store.get(MANAGED_SEED)
        assert stored is not None
        await registry.store.update(stored, {**stored.document(), "status": {"observedGeneration": 1}})

    registry.store.before_writing = change
    await registry.register()

    assert await registry.store.get(SEED) is not None


async def test_one_without_managed_seed_registers_and_changes_its_seed(registry: Registry) -> None:
    await registry.register("other")
    await registry.register("other", metadata={"labels": {"a": "b"}})

    stored = await registry.store.get(ObjectKey("seed", "", "other"))
    assert stored is not None
    assert stored.document()["metadata"]["labels"]["a"] == "b"
