"""Shoots that ask by annotation to be seeds have their ManagedSeed, whatever happens between the two writes."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from gardenbus.apiserver.controllers.use_as_seed import UseAsSeed
from gardenbus.apiserver.domain.use_as_seed import FIELD
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency, WriteResult
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.wait import RETRY_SECONDS
from gardenbus.common.errors import Forbidden, InvalidResource, Unavailable
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.eventually import HANG_SECONDS
from tests.support.memory.store import MemoryStore

SHOOT = ObjectKey("shoot", "garden", "child")
MANAGED_SEED = ObjectKey("managedseed", "garden", "child")
USE_AS_SEED = "shoot.gardener.cloud/use-as-seed"
CONFIRMED = {"confirmation.gardener.cloud/deletion": "true"}


def a_child(annotation: str | None = "true", **changes: Any) -> Document:
    annotations = {USE_AS_SEED: annotation} if annotation is not None else {}
    child = a_shoot(
        "child",
        "garden",
        metadata={"annotations": annotations},
        spec={"dns": {"domain": "child.example.org"}, "networking": {"pods": "100.96.0.0/11"}},
    )
    return merged(child, changes)


class Registry:
    """A writer and who follows it, on a store in memory; without `following` the second write is left undone."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.manifests = ManifestCache(self.store)
        self.writer = Writer(self.store, self.clock)
        self.use_as_seed = UseAsSeed(self.store, self.clock, self.writer, self.manifests)

    def following(self) -> "Registry":
        self.writer.add_follow_up(self.use_as_seed.follow_up)
        return self

    async def apply(self, *documents: Document) -> WriteResult:
        for document in documents:
            written = await self.writer.apply(document, ReadCache(self.store, self.manifests), user="ann")
        return written  # pyright: ignore[reportPossiblyUnboundVariable]

    async def delete(self, key: ObjectKey) -> WriteResult:
        return await self.writer.delete(key, ReadCache(self.store, self.manifests))

    async def there(self) -> Document | None:
        stored = await self.store.get(MANAGED_SEED)
        return stored.document() if stored is not None else None

    async def repair(self) -> None:
        """What an apiserver does when it starts: look at everything that the informer lists."""
        for kind in self.use_as_seed.KINDS:
            for stored in (await self.store.list_page(kind, "garden")).objects:
                self.use_as_seed.on_change(stored.key, None, stored)
        assert await self.use_as_seed.reconcile_due()


@pytest.fixture
async def registry() -> Registry:
    registry = Registry()
    await registry.apply(a_project("garden", "garden"), a_project(), a_cloudprofile(), a_seed())
    return registry


async def test_the_write_that_stores_the_shoot_makes_its_managed_seed(registry: Registry) -> None:
    written = await registry.following().apply(a_child("true,protected"))

    made = await registry.there()
    assert made is not None
    assert written.stored is not None
    assert made["metadata"]["ownerReferences"][0]["uid"] == written.stored.uid
    assert made["metadata"]["annotations"]["gardener.cloud/created-by"] == "ann"
    seed = made["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]
    assert seed["taints"] == [{"key": "seed.gardener.cloud/protected"}]
    assert seed["ingress"]["domain"] == "ingress.child.example.org"


async def test_the_same_manifest_twice_changes_neither(registry: Registry) -> None:
    await registry.following().apply(a_child())
    before = await registry.there()
    assert (await registry.apply(a_child())).outcome == "unchanged"
    await registry.repair()
    assert await registry.there() == before


async def test_it_follows_the_annotation_and_forgets_what_that_does_not_say_any_more(registry: Registry) -> None:
    await registry.following().apply(a_child("true,invisible,minimumVolumeSize=20Gi"))
    await registry.apply(a_child("true"))

    made = await registry.there()
    assert made is not None
    seed = made["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]
    assert seed["settings"]["scheduling"]["visible"] is True
    assert "volume" not in seed


@pytest.mark.parametrize("annotation", [None, "false"])
async def test_it_goes_with_the_annotation(registry: Registry, annotation: str | None) -> None:
    await registry.following().apply(a_child())
    await registry.apply(a_child(annotation))
    assert await registry.there() is None


async def test_a_patch_does_the_same(registry: Registry) -> None:
    registry.following()
    await registry.apply(a_child(None))
    for value, is_there in (("true", True), (None, False)):
        patch = {"metadata": {"annotations": {USE_AS_SEED: value}}}
        await registry.writer.patch(SHOOT, patch, ReadCache(registry.store, registry.manifests), user="ann")
        assert (await registry.there() is not None) == is_there


async def test_what_a_dead_process_left_undone_is_done_by_another(registry: Registry) -> None:
    await registry.apply(a_child())
    assert await registry.there() is None
    await registry.repair()
    assert await registry.there() is not None

    await registry.apply(a_child(None))
    assert await registry.there() is not None
    await registry.repair()
    assert await registry.there() is None


async def test_a_removed_annotation_is_noticed_in_the_news_too(registry: Registry) -> None:
    await registry.apply(a_child())
    await registry.repair()
    old = await registry.store.get(SHOOT)
    await registry.apply(a_child(None))
    registry.use_as_seed.on_change(SHOOT, old, await registry.store.get(SHOOT))
    assert await registry.use_as_seed.reconcile_due()
    assert await registry.there() is None


async def test_a_managed_seed_that_somebody_made_stays_as_it_is(registry: Registry) -> None:
    await registry.following().apply(a_child(None))
    by_hand = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "child", "namespace": "garden"},
        "spec": {"shoot": {"name": "child"}, "seedTemplate": {}},
    }
    await registry.apply(by_hand)
    before = await registry.there()
    written = await registry.apply(a_child())
    assert any("was not made from it" in one or "stands on this shoot already" in one for one in written.warnings)
    await registry.apply(a_child(None))
    assert await registry.there() == before


async def test_a_shoot_whose_managed_seed_would_be_refused_is_not_stored(registry: Registry) -> None:
    with pytest.raises(UnmetDependency) as caught:
        await registry.following().apply(a_child(spec={"addons": {"nginxIngress": {"enabled": True}}}))
    assert isinstance(caught.value.error, InvalidResource)
    assert FIELD in caught.value.error.message
    assert await registry.store.get(SHOOT) is None


async def test_the_shoot_is_deleted_after_the_annotation(registry: Registry) -> None:
    confirmed = {"metadata": {"annotations": CONFIRMED}}
    await registry.following().apply(merged(a_child(), confirmed))
    with pytest.raises(UnmetDependency, match="take off metadata") as caught:
        await registry.delete(SHOOT)
    assert isinstance(caught.value.error, Forbidden)
    await registry.apply(merged(a_child(None), confirmed))
    assert (await registry.delete(SHOOT)).outcome == "deleted"


async def test_the_annotation_stays_while_shoots_are_on_the_seed(registry: Registry) -> None:
    await registry.following().apply(a_child())
    await registry.apply(
        a_seed("child", spec={"provider": {"zones": ["eu-west-1a"]}}), a_shoot(spec={"seedName": "child"})
    )
    with pytest.raises(UnmetDependency, match="shoots are on the seed child") as caught:
        await registry.apply(a_child(None))
    assert isinstance(caught.value.error, Forbidden)


async def test_what_came_to_be_in_use_meanwhile_is_tried_again_until_it_is_free(registry: Registry) -> None:
    await registry.following().apply(a_child())
    shoot, guest = await registry.store.get(SHOOT), ObjectKey("shoot", "garden-dev", "apollo")
    assert shoot is not None
    await registry.apply(a_seed("child"), a_shoot(spec={"seedName": "child"}, metadata={"annotations": CONFIRMED}))
    stripped = shoot.document()
    del stripped["metadata"]["annotations"][USE_AS_SEED]
    await registry.store.update(shoot, stripped)

    written = await registry.apply(a_child(None))
    assert any("is tried again" in warning for warning in written.warnings)
    await registry.repair()
    assert await registry.there() is not None
    await registry.delete(guest)
    going = await registry.store.get(guest)
    assert going is not None
    gone = going.document()
    del gone["metadata"]["finalizers"]
    await registry.store.update(going, gone)

    async with asyncio.timeout(HANG_SECONDS):
        following = asyncio.create_task(registry.use_as_seed.run(_nothing))
        registry.use_as_seed.on_change(MANAGED_SEED, None, None)
        while await registry.there() is not None:
            await asyncio.sleep(0)
    following.cancel()


async def _nothing() -> None:
    pass


async def test_an_annotation_that_comes_back_while_the_managed_seed_goes_makes_it_anew(registry: Registry) -> None:
    await registry.following().apply(a_child())
    stored = await registry.store.get(MANAGED_SEED)
    assert stored is not None
    held = stored.document()
    held["metadata"]["finalizers"] = ["gardener"]
    await registry.store.update(stored, held)
    await registry.apply(a_child(None), a_child())

    going = await registry.store.get(MANAGED_SEED)
    assert going is not None
    assert going.is_deleting
    released = going.document()
    del released["metadata"]["finalizers"]
    await registry.store.update(going, released)
    registry.use_as_seed.on_change(MANAGED_SEED, going, None)
    assert await registry.use_as_seed.reconcile_due()
    made = await registry.there()
    assert made is not None
    assert made["metadata"]["uid"] != held["metadata"]["uid"]


class Racing(MemoryStore):
    """A store on which the shoot changes just before its ManagedSeed is written."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__(clock)
        self.races = 0

    async def create(self, document: Document, **options: Any) -> Any:
        if document["kind"] == "ManagedSeed" and self.races:
            self.races -= 1
            shoot = await self.get(SHOOT)
            assert shoot is not None
            on_change = shoot.document()
            on_change["metadata"]["annotations"][USE_AS_SEED] = "true,invisible"
            on_change["metadata"].setdefault("labels", {})["race"] = str(self.races)
            await self.update(shoot, on_change)
        return await super().create(document, **options)


async def test_it_is_made_of_the_newest_annotation() -> None:
    registry = Registry()
    registry.store = store = Racing(registry.clock)
    registry.manifests = ManifestCache(store)
    registry.writer = Writer(store, registry.clock)
    registry.use_as_seed = UseAsSeed(store, registry.clock, registry.writer, registry.manifests)
    await registry.apply(a_project("garden", "garden"), a_cloudprofile())
    store.races = 3
    await registry.following().apply(a_child("true,visible"))

    made = await registry.there()
    assert made is not None
    seed = made["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]
    assert seed["settings"]["scheduling"]["visible"] is False


class Away(MemoryStore):
    """A store that is away when it is asked for several objects."""

    is_away = False

    async def get_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        if self.is_away:
            raise Unavailable("the store is away")
        return await super().get_many(keys)


async def test_nothing_due_is_forgotten_while_the_store_is_away() -> None:
    registry = Registry()
    registry.store = store = Away(registry.clock)
    registry.manifests = ManifestCache(store)
    registry.writer = Writer(store, registry.clock)
    registry.use_as_seed = UseAsSeed(store, registry.clock, registry.writer, registry.manifests)
    await registry.apply(a_project("garden", "garden"), a_cloudprofile(), a_child())
    shoot = await store.get(SHOOT)
    registry.use_as_seed.on_change(SHOOT, None, shoot)
    store.is_away = True
    assert not await registry.use_as_seed.reconcile_due()
    store.is_away = False
    registry.clock.advance(RETRY_SECONDS)
    assert await registry.use_as_seed.reconcile_due()
    assert await registry.there() is not None
