"""What one batch reads: once what many of its objects ask for, and anew what others may have changed."""

from gardenbus.apiserver.domain.related_objects import ObjectQuery, ProjectQuery, QuotasQuery
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
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
