"""What one batch reads: once what many of its objects ask for, and anew what others may have changed."""

import asyncio
from collections.abc import Sequence

from gardenbus.apiserver.domain.related_objects import KindQuery, ObjectQuery, ProjectQuery, QuotasQuery
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import Page
from tests.support.builders import CORE, a_cloudprofile, a_project, a_shoot
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

BINDING, QUOTA = ObjectKey("secretbinding", "garden-dev", "mine"), ObjectKey("quota", "garden-dev", "limit")
QUERIES = (
    ObjectQuery(ObjectKey("cloudprofile", "", "aws")),
    ProjectQuery("garden-dev"),
    QuotasQuery((BINDING,)),
)


async def a_store(quotas: list[Document]) -> MemoryStore:
    store = MemoryStore(FakeClock(), is_open=True)
    metadata = {"name": "mine", "namespace": "garden-dev"}
    quota = {"scope": {"apiVersion": CORE, "kind": "Project"}, "metrics": {"cpu": "10"}}
    for document in (
        a_cloudprofile(),
        a_project(),
        {"apiVersion": CORE, "kind": "Quota", "metadata": {**metadata, "name": "limit"}, "spec": quota},
        {"apiVersion": CORE, "kind": "SecretBinding", "metadata": metadata, "quotas": quotas},
    ):
        await store.create(document)
    return store


async def test_shoots_of_a_batch_share_what_they_need_where_no_quota_is_named() -> None:
    store = await a_store([])
    reads = ReadCache(store, ManifestCache(store))
    found = await reads.related(QUERIES)
    assert set(found.objects) == {BINDING, ObjectKey("cloudprofile", "", "aws")}
    assert set(found.projects) == {"garden-dev"}
    assert await reads.related(QUERIES) is found
    reads.invalidate(BINDING)
    assert await reads.related(QUERIES) is not found, "until something is written"


async def test_what_shoots_want_of_a_quota_is_read_for_each() -> None:
    store = await a_store([{"name": "limit", "namespace": "garden-dev"}])
    reads = ReadCache(store, ManifestCache(store))
    before = await reads.related(QUERIES)
    assert before.demands == {QUOTA: {}}
    await store.create(a_shoot(spec={"secretBindingName": "mine"}))
    after = await reads.related(QUERIES)
    assert sum(after.demands[QUOTA].values()) > 0
    assert set(after.objects) >= set(before.objects)
    assert after.projects == before.projects


async def test_objects_and_lists_are_read_in_one_round_trip_and_once() -> None:
    class Waiting(MemoryStore):
        """Returns what is read when two reads have begun."""

        began = 0

        async def _begin(self) -> None:
            self.began += 1
            async with asyncio.timeout(5):
                while self.began < 2:
                    await asyncio.sleep(0)

        async def get_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
            await self._begin()
            return await super().get_many(keys)

        async def list_page(
            self, kind: str, namespace: str | None = None, *, limit: int = 500, continue_token: str | None = None
        ) -> Page:
            await self._begin()
            return await super().list_page(kind, namespace, limit=limit, continue_token=continue_token)

    store = Waiting(FakeClock(), is_open=True)
    await store.create(a_cloudprofile())
    reads = ReadCache(store, ManifestCache(store))
    queries = (ObjectQuery(ObjectKey("cloudprofile", "", "aws")), KindQuery("cloudprofile"))
    await reads.prefetch_related(queries, [ObjectKey("shoot", "garden-dev", "apollo")])
    found = await reads.related(queries)
    assert len(found.objects) == len(found.all_of["cloudprofile"]) == 1
    assert reads.is_absent(ObjectKey("shoot", "garden-dev", "apollo"))
    assert store.began == 2
