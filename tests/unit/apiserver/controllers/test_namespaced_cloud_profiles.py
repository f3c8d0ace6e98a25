"""A NamespacedCloudProfile's status follows its parent."""

from gardenbus.apiserver.controllers.namespaced_cloud_profiles import NamespacedCloudProfiles
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from tests.support.builders import a_cloudprofile, a_namespaced_cloudprofile, merged
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

AWS = ObjectKey("cloudprofile", "", "aws")
OWN = ObjectKey("namespacedcloudprofile", "garden-dev", "own")
SELECTS: Document = {"spec": {"seedSelector": {"matchLabels": {"env": "prod"}}}}


class Watch:
    """A store and a controller that hears of each change when the test says so."""

    def __init__(self) -> None:
        self.store = MemoryStore(FakeClock())
        self.profiles = NamespacedCloudProfiles(self.store, FakeClock())

    async def hold(self, document: Document) -> StoredObject:
        stored = await self.store.create(document)
        assert isinstance(stored, StoredObject)
        self.profiles.on_change(stored.key, None, stored)
        return stored

    async def change(self, key: ObjectKey, changes: Document) -> None:
        old = await self.now(key)
        new = await self.store.update(old, merged(old.document(), changes))
        assert isinstance(new, StoredObject)
        self.profiles.on_change(key, old, new)

    async def now(self, key: ObjectKey = OWN) -> StoredObject:
        stored = await self.store.get(key)
        assert stored is not None
        return stored

    async def merged_spec(self) -> Document:
        return (await self.now()).document()["status"]["cloudProfileSpec"]


async def test_it_follows_its_parent_and_itself() -> None:
    watch = Watch()
    await watch.hold(a_cloudprofile())
    await watch.hold(a_namespaced_cloudprofile(status=None))
    assert await watch.profiles.reconcile_due()
    assert (await watch.merged_spec())["type"] == "aws"

    await watch.change(AWS, SELECTS)
    assert await watch.profiles.reconcile_due()
    assert (await watch.merged_spec())["seedSelector"] == SELECTS["spec"]["seedSelector"]

    await watch.change(OWN, {"spec": {"machineTypes": [{"name": "own.large"}]}})
    assert await watch.profiles.reconcile_due()
    assert [each["name"] for each in (await watch.merged_spec())["machineTypes"]] == ["m5.large", "own.large"]
    document = (await watch.now()).document()
    assert document["status"]["observedGeneration"] == document["metadata"]["generation"] == 2


async def test_what_is_current_is_not_written() -> None:
    watch = Watch()
    await watch.hold(a_cloudprofile())
    await watch.hold(a_namespaced_cloudprofile())
    before = (await watch.now()).version
    await watch.change(AWS, {"metadata": {"labels": {"a": "b"}}})
    assert await watch.profiles.reconcile_due()
    assert (await watch.now()).version == before


async def test_whoever_is_slower_looks_again() -> None:
    watch = Watch()
    await watch.hold(a_cloudprofile(spec=SELECTS["spec"]))
    await watch.hold(a_namespaced_cloudprofile())
    watch.store.redis.conflicts = 1
    assert not await watch.profiles.reconcile_due()
    assert await watch.profiles.reconcile_due()
    assert (await watch.merged_spec())["seedSelector"] == SELECTS["spec"]["seedSelector"]


async def test_a_profile_or_a_parent_that_is_gone_is_left_alone() -> None:
    watch = Watch()
    await watch.hold(a_namespaced_cloudprofile())
    assert await watch.profiles.reconcile_due()
    parent = await watch.hold(a_cloudprofile(spec=SELECTS["spec"]))
    stored = await watch.now()
    await watch.store.delete(stored)
    watch.profiles.on_change(OWN, stored, None)
    watch.profiles.on_change(AWS, None, parent)
    assert await watch.profiles.reconcile_due()
    assert await watch.store.get(OWN) is None
