"""A namespace that leaves between the reads of a request and its write."""

import pytest

from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

NAMESPACE = ObjectKey("namespace", "", "garden-dev")
SECRET: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "late", "namespace": "garden-dev"}}


async def test_what_was_admitted_before_its_namespace_was_marked_is_refused_by_the_write() -> None:
    clock = FakeClock()
    store = MemoryStore(clock)
    metadata = {"name": NAMESPACE.name, "finalizers": ["gardener"]}
    stored = await store.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    assert isinstance(stored, StoredObject)
    reads = ReadCache(store, ManifestCache(store))
    assert await reads.get(NAMESPACE) == stored
    await store.delete(stored)

    with pytest.raises(UnmetDependency, match="because it is being terminated"):
        await Writer(store, clock).apply(SECRET, reads, user="ann")
    assert await store.get(ObjectKey("secret", "garden-dev", "late")) is None
