"""Durable requests on one object end the same in whatever order, and however often, replicas take them."""

import asyncio
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import Missing
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import RequestOrigin
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore

KEY = ObjectKey("configmap", "garden", "regions")

Request = Document | None
"""A manifest to apply, or a deletion."""


def a_configmap(data: dict[str, str], labels: dict[str, str]) -> Document:
    metadata = {"name": KEY.name, "namespace": KEY.namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


async def taken(requests: list[tuple[int, Request]]) -> Document | None:
    """What is there after taking them in this order; a deletion of nothing waits until all earlier ones were taken."""
    clock = FakeClock()
    store = MemoryStore(clock)
    writer, manifests = Writer(store, clock), ManifestCache(store)
    postponed: list[int] = []
    for sequence, request in requests:
        reads, origin = ReadCache(store, manifests), RequestOrigin(1, sequence)
        if request is not None:
            await writer.apply(request, reads, user="ann", origin=origin)
            continue
        try:
            await writer.delete(KEY, reads, origin=origin)
        except Missing:
            postponed.append(sequence)
    for sequence in sorted(postponed):
        try:
            await writer.delete(KEY, ReadCache(store, manifests), origin=RequestOrigin(1, sequence))
        except Missing:
            continue
    stored = await store.get(KEY)
    return None if stored is None else content(stored.document())


def content(document: Document) -> Document:
    return {"data": document.get("data"), "labels": document["metadata"].get("labels")}


texts = st.dictionaries(st.sampled_from("abc"), st.sampled_from("123"), min_size=1, max_size=3)
requests = st.none() | st.builds(a_configmap, texts, texts)


@given(st.lists(requests, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_any_order_with_any_redelivery_ends_as_the_last_one_says(given_requests: list[Request], random: Random) -> None:
    numbered = list(enumerate(given_requests, start=1))
    shuffled = numbered + random.sample(numbered, random.randint(0, len(numbered)))
    random.shuffle(shuffled)

    assert asyncio.run(taken(shuffled)) == asyncio.run(taken(numbered))
