"""The seed of a ManagedSeed that somebody deletes takes no shoot from then on."""

from typing import Any

import pytest

from gardenbus.apiserver.access.audit_log import AuditLog
from gardenbus.apiserver.access.authorizer import Authorizer
from gardenbus.apiserver.controllers.garbage_collector import GarbageCollector
from gardenbus.apiserver.registry.preconditions import Precondition
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import StaleVersion, UnmetDependency, WriteResult
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.garden.seed_management import REMOVAL_ANNOTATION
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.store import RequestOrigin
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

SEED = ObjectKey("seed", "", "child")
MANAGED_SEED = ObjectKey("managedseed", "garden", "child")


def a_managed_seed(**metadata: Any) -> Document:
    return {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "child", "namespace": "garden", "finalizers": ["gardener"]} | metadata,
        "spec": {"shoot": {"name": "child"}, "gardenlet": {}},
    }


class Garden:
    """A ManagedSeed with its Seed, and a writer."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.store = MemoryStore(clock)
        self.manifests = ManifestCache(self.store)
        self.writer = Writer(self.store, clock)

    async def begin(self, *documents: Document) -> None:
        for document in (a_project("garden", "garden"), a_project(), a_cloudprofile(), a_seed("host"), *documents):
            await self.store.create(document)

    async def delete(self, **options: Any) -> WriteResult:
        return await self.writer.delete(MANAGED_SEED, ReadCache(self.store, self.manifests), **options)

    async def now(self, key: ObjectKey) -> StoredObject:
        stored = await self.store.get(key)
        assert stored is not None
        return stored

    async def mark(self) -> str | None:
        return section((await self.now(SEED)).document(), "metadata", "annotations").get(REMOVAL_ANNOTATION)


@pytest.fixture
async def garden() -> Garden:
    garden = Garden()
    await garden.begin(
        a_shoot("child", "garden", spec={"seedName": "host"}, status={"seedName": "host"}),
        a_managed_seed(),
        a_seed("child"),
    )
    return garden


async def test_it_is_marked_and_takes_no_shoot(garden: Garden) -> None:
    assert (await garden.delete()).outcome == "deleting"

    assert await garden.mark() == "the deletion of managedseed garden/child"
    with pytest.raises(Forbidden):
        await garden.store.create(a_shoot(spec={"seedName": "child"}))


async def test_one_in_use_is_neither_deleted_nor_marked(garden: Garden) -> None:
    await garden.store.create(a_shoot(spec={"seedName": "child"}))

    with pytest.raises(UnmetDependency, match="gardenbus drain child"):
        await garden.delete()
    assert await garden.mark() is None


async def test_the_mark_of_a_set_stands(garden: Garden) -> None:
    seed = await garden.now(SEED)
    mark = {"metadata": {"annotations": {REMOVAL_ANNOTATION: "garden/set"}}}
    await garden.store.update(seed, merged(seed.document(), mark))
    await garden.delete()

    assert await garden.mark() == "garden/set"


async def test_it_takes_shoots_again_when_the_deletion_is_refused_after_all(garden: Garden) -> None:
    held = (await garden.now(MANAGED_SEED)).version
    stored = await garden.now(MANAGED_SEED)
    await garden.store.update(stored, stored.document(), origin=RequestOrigin(1, 8))
    assert (await garden.delete(origin=RequestOrigin(1, 7))).outcome == "superseded"
    assert await garden.mark() is None

    with pytest.raises(StaleVersion):
        await garden.delete(condition=Precondition(MANAGED_SEED, held + 100))
    assert await garden.mark() is None


async def test_deleting_twice_is_deleting_once(garden: Garden) -> None:
    await garden.delete(origin=RequestOrigin(1, 7))
    version = (await garden.now(SEED)).version
    await garden.delete(origin=RequestOrigin(1, 7))
    await garden.delete(origin=RequestOrigin(1, 8))

    assert (await garden.now(SEED)).version == version


async def test_a_seed_that_comes_about_meanwhile_is_marked_too() -> None:
    garden = Garden()
    await garden.begin(a_shoot("child", "garden", spec={"seedName": "host"}), a_managed_seed())
    reads_nothing_first = garden.store.get
    requested: list[ObjectKey] = []

    async def get(key: ObjectKey) -> StoredObject | None:
        found = await reads_nothing_first(key)
        if key == SEED and SEED not in requested:
            await garden.store.create(a_seed("child"))
        requested.append(key)
        return found

    garden.store.get = get  # pyright: ignore[reportAttributeAccessIssue]
    await garden.delete()

    assert requested.count(SEED) >= 2
    assert await garden.mark() == "the deletion of managedseed garden/child"


async def test_a_seed_of_that_name_stays_as_it_is_when_nobody_has_begun_to_make_one() -> None:
    garden = Garden()
    await garden.begin(a_shoot("child", "garden"), a_managed_seed(finalizers=[]), a_seed("child"))

    assert (await garden.delete()).outcome == "deleted"
    assert await garden.mark() is None


async def test_one_that_goes_with_its_owner_is_marked_too() -> None:
    garden = Garden()
    owner = {"apiVersion": "v1", "kind": "ManagedSeedSet", "name": "gone", "uid": "gone"}
    await garden.begin(a_shoot("child", "garden"), a_seed("child"))
    await garden.store.create(a_managed_seed(ownerReferences=[owner]), owner_setters=b"gone managedseedset")
    authorizer = Authorizer(garden.store, AuditLog(FakeClock()), is_enforced=True)
    collector = GarbageCollector(
        garden.store, garden.writer.admission, authorizer, garden.manifests, garden.writer.agent_credentials
    )

    assert await collector.collect("gone") == 0
    assert (await garden.now(MANAGED_SEED)).is_deleting
    assert await garden.mark() == "the deletion of managedseed garden/child"
