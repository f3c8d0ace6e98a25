"""Shoots that ask by annotation to be seeds have their ManagedSeed, whatever happens between the two writes."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from gardenbus.apiserver.decide.use_as_seed import FIELD
from gardenbus.apiserver.reconcilers.attempts import Contingent, Written
from gardenbus.apiserver.reconcilers.reads import Library, Reads
from gardenbus.apiserver.reconcilers.use_as_seed import UseAsSeed
from gardenbus.apiserver.reconcilers.writing import Writer
from gardenbus.common.adapters.memory_store import MemoryStore
from gardenbus.common.errors import Forbidden, InvalidResource, Unavailable
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import ObjectKey
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock

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


class Desk:
    """A writer and who follows it, on a store in memory; without `following` the second write is left undone."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.library = Library(self.store)
        self.writer = Writer(self.store, self.clock)
        self.use_as_seed = UseAsSeed(self.store, self.clock, self.writer, self.library)

    def following(self) -> "Desk":
        self.writer.followed_by(self.use_as_seed.follow)
        return self

    async def apply(self, *documents: Document) -> Written:
        for document in documents:
            written = await self.writer.apply(document, Reads(self.store, self.library), user="ann")
        return written  # pyright: ignore[reportPossiblyUnboundVariable]

    async def delete(self, key: ObjectKey) -> Written:
        return await self.writer.delete(key, Reads(self.store, self.library))

    async def there(self) -> Document | None:
        stored = await self.store.get(MANAGED_SEED)
        return stored.document() if stored is not None else None

    async def repair(self) -> None:
        """What an apiserver does when it starts: look at everything that the informer lists."""
        for kind in self.use_as_seed.KINDS:
            for stored in (await self.store.list_page(kind, "garden")).objects:
                self.use_as_seed.changed(stored.key, None, stored)
        assert await self.use_as_seed.catch_up()


@pytest.fixture
async def desk() -> Desk:
    desk = Desk()
    await desk.apply(a_project("garden", "garden"), a_project(), a_cloudprofile(), a_seed())
    return desk


async def test_the_write_that_stores_the_shoot_makes_its_managed_seed(desk: Desk) -> None:
    written = await desk.following().apply(a_child("true,protected"))

    made = await desk.there()
    assert made is not None
    assert written.stored is not None
    assert made["metadata"]["ownerReferences"][0]["uid"] == written.stored.uid
    assert made["metadata"]["annotations"]["gardener.cloud/created-by"] == "ann"
    seed = made["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]
    assert seed["taints"] == [{"key": "seed.gardener.cloud/protected"}]
    assert seed["ingress"]["domain"] == "ingress.child.example.org"


async def test_the_same_manifest_twice_changes_neither(desk: Desk) -> None:
    await desk.following().apply(a_child())
    before = await desk.there()
    assert (await desk.apply(a_child())).outcome == "unchanged"
    await desk.repair()
    assert await desk.there() == before


async def test_it_follows_the_annotation_and_forgets_what_that_does_not_say_any_more(desk: Desk) -> None:
    await desk.following().apply(a_child("true,invisible,minimumVolumeSize=20Gi"))
    await desk.apply(a_child("true"))

    made = await desk.there()
    assert made is not None
    seed = made["spec"]["gardenlet"]["config"]["seedConfig"]["spec"]
    assert seed["settings"]["scheduling"]["visible"] is True
    assert "volume" not in seed


@pytest.mark.parametrize("annotation", [None, "false"])
async def test_it_goes_with_the_annotation(desk: Desk, annotation: str | None) -> None:
    await desk.following().apply(a_child())
    await desk.apply(a_child(annotation))
    assert await desk.there() is None


async def test_a_patch_does_the_same(desk: Desk) -> None:
    desk.following()
    await desk.apply(a_child(None))
    for value, is_there in (("true", True), (None, False)):
        patch = {"metadata": {"annotations": {USE_AS_SEED: value}}}
        await desk.writer.patch(SHOOT, patch, Reads(desk.store, desk.library), user="ann")
        assert (await desk.there() is not None) == is_there


async def test_what_a_dead_process_left_undone_is_done_by_another(desk: Desk) -> None:
    await desk.apply(a_child())
    assert await desk.there() is None
    await desk.repair()
    assert await desk.there() is not None

    await desk.apply(a_child(None))
    assert await desk.there() is not None
    await desk.repair()
    assert await desk.there() is None


async def test_a_removed_annotation_is_noticed_in_the_news_too(desk: Desk) -> None:
    await desk.apply(a_child())
    await desk.repair()
    old = await desk.store.get(SHOOT)
    await desk.apply(a_child(None))
    desk.use_as_seed.changed(SHOOT, old, await desk.store.get(SHOOT))
    assert await desk.use_as_seed.catch_up()
    assert await desk.there() is None


async def test_a_managed_seed_that_somebody_made_stays_as_it_is(desk: Desk) -> None:
    await desk.following().apply(a_child(None))
    by_hand = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": "child", "namespace": "garden"},
        "spec": {"shoot": {"name": "child"}, "seedTemplate": {}},
    }
    await desk.apply(by_hand)
    before = await desk.there()
    written = await desk.apply(a_child())
    assert any("was not made from it" in one or "stands on this shoot already" in one for one in written.warnings)
    await desk.apply(a_child(None))
    assert await desk.there() == before


async def test_a_shoot_whose_managed_seed_would_be_refused_is_not_stored(desk: Desk) -> None:
    with pytest.raises(Contingent) as caught:
        await desk.following().apply(a_child(spec={"addons": {"nginxIngress": {"enabled": True}}}))
    assert isinstance(caught.value.error, InvalidResource)
    assert FIELD in caught.value.error.message
    assert await desk.store.get(SHOOT) is None


async def test_the_shoot_is_deleted_after_the_annotation(desk: Desk) -> None:
    confirmed = {"metadata": {"annotations": CONFIRMED}}
    await desk.following().apply(merged(a_child(), confirmed))
    with pytest.raises(Contingent, match="take off metadata") as caught:
        await desk.delete(SHOOT)
    assert isinstance(caught.value.error, Forbidden)
    await desk.apply(merged(a_child(None), confirmed))
    assert (await desk.delete(SHOOT)).outcome == "deleted"


async def test_the_annotation_stays_while_shoots_are_on_the_seed(desk: Desk) -> None:
    await desk.following().apply(a_child())
    await desk.apply(a_seed("child", spec={"provider": {"zones": ["eu-west-1a"]}}), a_shoot(spec={"seedName": "child"}))
    with pytest.raises(Contingent, match="shoots are on the seed child") as caught:
        await desk.apply(a_child(None))
    assert isinstance(caught.value.error, Forbidden)


async def test_what_came_to_be_in_use_meanwhile_is_tried_again_until_it_is_free(desk: Desk) -> None:
    await desk.following().apply(a_child())
    shoot, guest = await desk.store.get(SHOOT), ObjectKey("shoot", "garden-dev", "apollo")
    assert shoot is not None
    await desk.apply(a_seed("child"), a_shoot(spec={"seedName": "child"}, metadata={"annotations": CONFIRMED}))
    stripped = shoot.document()
    del stripped["metadata"]["annotations"][USE_AS_SEED]
    await desk.store.update(shoot, stripped)

    written = await desk.apply(a_child(None))
    assert any("is tried again" in warning for warning in written.warnings)
    await desk.repair()
    assert await desk.there() is not None
    await desk.delete(guest)
    going = await desk.store.get(guest)
    assert going is not None
    gone = going.document()
    del gone["metadata"]["finalizers"]
    await desk.store.update(going, gone)

    async with asyncio.timeout(5):
        following = asyncio.create_task(desk.use_as_seed.run(_nothing))
        desk.use_as_seed.changed(MANAGED_SEED, None, None)
        while await desk.there() is not None:
            await asyncio.sleep(0)
    following.cancel()


async def _nothing() -> None:
    pass


async def test_an_annotation_that_comes_back_while_the_managed_seed_goes_makes_it_anew(desk: Desk) -> None:
    await desk.following().apply(a_child())
    stored = await desk.store.get(MANAGED_SEED)
    assert stored is not None
    held = stored.document()
    held["metadata"]["finalizers"] = ["gardener"]
    await desk.store.update(stored, held)
    await desk.apply(a_child(None), a_child())

    going = await desk.store.get(MANAGED_SEED)
    assert going is not None
    assert going.is_deleting
    released = going.document()
    del released["metadata"]["finalizers"]
    await desk.store.update(going, released)
    desk.use_as_seed.changed(MANAGED_SEED, going, None)
    assert await desk.use_as_seed.catch_up()
    made = await desk.there()
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
            changed = shoot.document()
            changed["metadata"]["annotations"][USE_AS_SEED] = "true,invisible"
            changed["metadata"].setdefault("labels", {})["race"] = str(self.races)
            await self.update(shoot, changed)
        return await super().create(document, **options)


async def test_it_is_made_of_the_newest_annotation() -> None:
    desk = Desk()
    desk.store = store = Racing(desk.clock)
    desk.library = Library(store)
    desk.writer = Writer(store, desk.clock)
    desk.use_as_seed = UseAsSeed(store, desk.clock, desk.writer, desk.library)
    await desk.apply(a_project("garden", "garden"), a_cloudprofile())
    store.races = 3
    await desk.following().apply(a_child("true,visible"))

    made = await desk.there()
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
    desk = Desk()
    desk.store = store = Away(desk.clock)
    desk.library = Library(store)
    desk.writer = Writer(store, desk.clock)
    desk.use_as_seed = UseAsSeed(store, desk.clock, desk.writer, desk.library)
    await desk.apply(a_project("garden", "garden"), a_cloudprofile(), a_child())
    shoot = await store.get(SHOOT)
    desk.use_as_seed.changed(SHOOT, None, shoot)
    store.is_away = True
    assert not await desk.use_as_seed.catch_up()
    store.is_away = False
    assert await desk.use_as_seed.catch_up()
    assert await desk.there() is not None
