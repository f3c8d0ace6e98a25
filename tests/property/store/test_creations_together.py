"""Objects that are created in one call leave the store as if each had come alone, whatever they have in common."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, cast

import msgspec
from hypothesis import event, given, settings
from hypothesis import strategies as st

from gardenbus.common.adapters.redis.store import RedisStore
from gardenbus.common.api.changes import creation_of
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, Forbidden, GardenbusError
from gardenbus.common.ports.store import Creation, DemandLimits, RequestOrigin, Superseded, WritePrecondition
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

NAMES = ("a", "b", "c", "d")
PROFILE, QUOTA = ObjectKey("cloudprofile", "", "aws"), ObjectKey("quota", "garden-dev", "quota")


A_BINDING: Document = {
    "apiVersion": "security.gardener.cloud/v1alpha1",
    "kind": "CredentialsBinding",
    "metadata": {"name": "own", "namespace": "garden-dev"},
    "provider": {"type": "aws"},
    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "a", "namespace": "garden-dev"},
    "quotas": [{"name": "quota", "namespace": "garden-dev"}],
}


def a_secret(name: str) -> Document:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "garden-dev"}}


def a_managed_seed(name: str) -> Document:
    return {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeed",
        "metadata": {"name": name, "namespace": "garden"},
        "spec": {"shoot": {"name": name}},
    }


def a_resource_quota(most: int) -> Document:
    hard = {"count/shoots.core.gardener.cloud": str(most)}
    metadata = {"name": "quota", "namespace": "garden-dev"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


BOUND = a_shoot(spec={"credentialsBindingName": "own"})
UNITS = [line.split(" ", 2)[2] for line in creation_of(BOUND).index_keys.demands]


def within(most: int) -> WritePrecondition:
    """A condition on the demand through bindings of a Quota."""
    limits = DemandLimits(most={"pools": most}, amounts={unit: {"pools": 1} for unit in UNITS}, namespace="garden-dev")
    return WritePrecondition("demand", QUOTA.stored, "too much", limits=limits)


def a_waiting_shoot(name: str, namespace: str, scheduler: str, bound: Document) -> Document:
    return a_shoot(name, namespace, spec={"schedulerName": scheduler, **bound})


def a_placed_shoot(name: str) -> Document:
    return a_shoot(name, spec={"seedName": "aws-eu1"})


DOCUMENTS: st.SearchStrategy[Document] = st.one_of(
    st.builds(
        a_waiting_shoot,
        st.sampled_from(NAMES),
        st.sampled_from(("garden-dev", "garden")),
        st.sampled_from(("default-scheduler", "other")),
        st.sampled_from(({}, {"credentialsBindingName": "own"})),
    ),
    st.builds(a_secret, st.sampled_from(NAMES)),
    st.builds(a_managed_seed, st.sampled_from(NAMES)),
    st.builds(a_project, st.sampled_from(NAMES)),
    st.builds(a_placed_shoot, st.sampled_from(NAMES)),
    st.builds(a_resource_quota, st.integers(1, 3)),
)


def a_budget(objects: int) -> WritePrecondition:
    limits = DemandLimits(most={"storedObjects": objects, "storedBytes": 10_000})
    return WritePrecondition("stored", "garden-dev", "", limits=limits)


def a_creation(document: Document, origin: int, guards: Sequence[WritePrecondition]) -> Creation:
    return Creation(document, RequestOrigin(1, origin) if origin else None, b'{"a":1}', preconditions=guards)


GUARDS: st.SearchStrategy[WritePrecondition] = st.one_of(
    st.just(WritePrecondition("version", PROFILE.stored, "changed", version=1)),
    st.just(WritePrecondition("version", PROFILE.stored, "changed", version=2)),
    st.sampled_from([WritePrecondition("version", f"secret:garden-dev:{name}", "changed") for name in NAMES]),
    st.just(WritePrecondition("references", PROFILE.stored, "in use")),
    st.just(WritePrecondition("references", ObjectKey("namespace", "", "garden-dev").stored, "in use")),
    st.just(WritePrecondition("quota", "", "too many")),
    st.just(WritePrecondition("count", "shoot", "too many", most=2)),
    st.builds(a_budget, st.integers(1, 5)),
)
CREATIONS: st.SearchStrategy[Creation] = st.builds(
    a_creation, DOCUMENTS, st.integers(0, 6), st.lists(GUARDS, max_size=2).map(tuple)
)
BATCHES = st.lists(st.lists(CREATIONS, min_size=1, max_size=8), min_size=1, max_size=3)


class Stores:
    """Two stores with the same past: names that were there before, and what shoots refer to."""

    def __init__(self) -> None:
        self.together, self.alone = self._a_store(), self._a_store()

    @staticmethod
    def _a_store() -> MemoryStore:
        numbers = count()
        return MemoryStore(FakeClock(), new_uid=lambda: f"{next(numbers):08d}-0000-4000-8000-000000000000")

    async def on_both(self, work: Any) -> None:
        for store in (self.together, self.alone):
            await work(store)


async def past_of(store: RedisStore) -> None:
    for document in (a_cloudprofile(), a_seed(), A_BINDING, a_shoot("a"), a_secret("a")):
        await store.create(document, origin=RequestOrigin(1, 2))
    for key in (ObjectKey("shoot", "garden-dev", "a"), ObjectKey("secret", "garden-dev", "a")):
        stored = await store.get(key)
        assert stored is not None
        await store.delete(stored, origin=RequestOrigin(1, 3))


async def created_alone(store: RedisStore, creation: Creation) -> StoredObject | Superseded | GardenbusError:
    try:
        return await store.create(
            creation.document,
            origin=creation.origin,
            last_applied=creation.last_applied,
            preconditions=creation.preconditions,
        )
    except GardenbusError as error:
        return error


def outcome_of(result: Any) -> object:
    return (type(result), str(result)) if isinstance(result, GardenbusError) else result


def content_of(store: MemoryStore) -> Mapping[str, object]:
    """All that is stored but for the opening, of which each has its own."""
    values: Mapping[bytes, Any] = store.copied()["values"]
    return {
        key.decode(): cast("object", vars(value) if hasattr(value, "__dict__") else value)
        for key, value in values.items()
        if not key.endswith((b":opening", b":led"))
    }


@given(BATCHES)
@settings(max_examples=300, deadline=None)
def test_together_or_alone_the_same_is_stored(batches: Sequence[Sequence[Creation]]) -> None:
    asyncio.run(_compare(batches))


async def _compare(batches: Sequence[Sequence[Creation]]) -> None:
    stores, ended = Stores(), list[Any]()
    await stores.on_both(past_of)
    for batch in batches:
        together = await stores.together.create_many(batch)
        alone = [await created_alone(stores.alone, creation) for creation in batch]
        assert list(map(outcome_of, together)) == list(map(outcome_of, alone))
        assert content_of(stores.together) == content_of(stores.alone)
        ended += together
    event(f"created: {sum(isinstance(each, StoredObject) for each in ended)}")
    event(f"superseded: {any(isinstance(each, Superseded) for each in ended)}")


async def _ended(creations: Sequence[Creation]) -> list[object]:
    stores = Stores()
    await stores.on_both(past_of)
    together = await stores.together.create_many(creations)
    alone = [await created_alone(stores.alone, creation) for creation in creations]
    assert list(map(outcome_of, together)) == list(map(outcome_of, alone))
    assert content_of(stores.together) == content_of(stores.alone)
    return [type(each) for each in together]


async def test_a_condition_sees_what_was_created_before_it_in_the_call() -> None:
    absent = (WritePrecondition("version", "shoot:garden-dev:b", "changed"),)
    unused = (WritePrecondition("references", PROFILE.stored, "in use"),)
    assert await _ended(
        [
            Creation(a_shoot("c"), preconditions=absent),
            Creation(a_shoot("b"), preconditions=absent),
            Creation(a_shoot("d"), preconditions=absent),
            Creation(a_secret("b"), preconditions=absent),
            Creation(a_shoot("e"), preconditions=unused),
        ]
    ) == [StoredObject, StoredObject, Conflict, Conflict, Forbidden]


async def test_a_shoot_is_followed_by_what_was_created_before_it_in_the_call() -> None:
    creations = [Creation(a_managed_seed("a")), Creation(a_shoot("a", "garden")), Creation(a_shoot("b", "garden"))]
    assert await _ended([*creations, Creation(a_managed_seed("b"))]) == [StoredObject] * 4


async def test_demands_of_one_call_are_summed_before_a_condition_reads_them() -> None:
    creations = [Creation(merged(BOUND, {"metadata": {"name": name}})) for name in NAMES]
    assert await _ended(
        [
            *creations[:2],
            msgspec.structs.replace(creations[2], preconditions=(within(2),)),
            msgspec.structs.replace(creations[3], preconditions=(within(100),)),
        ]
    ) == [StoredObject, StoredObject, Forbidden, StoredObject]
