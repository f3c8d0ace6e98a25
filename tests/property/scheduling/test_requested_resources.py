"""Requests of resources: decisions agree with a naive scheduler, and nobody ever overfills a seed."""

from collections import Counter
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.configuration.scheduling_profiles import FILLS_TO_NINE_TENTHS
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.scheduling_profiles import (
    BalancedAllocation,
    ResourcesFit,
    SchedulingProfile,
    WeightedScore,
)
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.index_keys import index_keys_of
from gardenbus.common.errors import Forbidden
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.equivalence_classes import descriptor, equivalence_class, request_from_descriptor, request_of
from gardenbus.scheduling.free_capacity import FreeCapacity
from gardenbus.scheduling.results import Assignment
from gardenbus.scheduling.snapshot import Snapshot
from gardenbus.scheduling.usage_index import UsageIndex
from tests.support import naive_scores
from tests.support.builders import a_cloudprofile, a_project, a_requesting_shoot, a_seed, a_shoot, merged, resolved_as
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore
from tests.support.naive_scores import NaiveSeed
from tests.support.stores import a_binding, stored

RESOURCES = [{"name": "shoots"}, {"name": "cpu"}, {"name": "memory"}]
SHAPE = [{"utilization": each.utilization, "score": each.score} for each in FILLS_TO_NINE_TENTHS]
LEAST = {"scoringStrategy": {"type": "LeastAllocated", "resources": RESOURCES}}
RATIO = {"scoringStrategy": {"type": "RequestedToCapacityRatio", "resources": RESOURCES, "shape": SHAPE}}
PROFILES = {
    "fewest": SchedulingProfile(),
    "spread": SchedulingProfile(
        scores=(WeightedScore("fit", 2, ResourcesFit()), WeightedScore("balance", 1, BalancedAllocation()))
    ),
    "pack": SchedulingProfile(
        scores=(WeightedScore("fit", 1, ResourcesFit(type="RequestedToCapacityRatio", shape=FILLS_TO_NINE_TENTHS)),)
    ),
}

amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/lb"]), st.integers(1, 4), max_size=2)
limits = st.fixed_dictionaries(
    {}, optional={"shoots": st.integers(0, 4), "cpu": st.integers(0, 9), "memory": st.integers(0, 9)}
)


def a_seed_with(name: str, limits: Mapping[str, int]) -> Document:
    stated = {resource: f"{amount}m" if resource == "cpu" else str(amount) for resource, amount in limits.items()}
    return merged(a_seed(name, shoots=None), {"status": {"capacity": stated, "allocatable": stated}})


def naive_total(profile: str, seed: NaiveSeed, requests: Mapping[str, int]) -> Any:
    match profile:
        case "spread":
            fit = naive_scores.fit(LEAST, seed, requests)
            return -2 * fit - naive_scores.balance({"resources": RESOURCES}, seed, requests)
        case "pack":
            return -naive_scores.fit(RATIO, seed, requests)
        case _:
            return seed.used.get("shoots", 0)


def naive_choice(profile: str, seeds: Mapping[str, NaiveSeed], requests: Mapping[str, int]) -> str | None:
    open_ones = [seed for seed in seeds.values() if seed.has_room(requests)]
    chosen = min(open_ones, key=lambda seed: (naive_total(profile, seed, requests), seed.name), default=None)
    return chosen.name if chosen is not None else None


@settings(max_examples=150, deadline=None)
@given(
    seeds=st.lists(limits, min_size=1, max_size=5),
    shoots=st.lists(amounts, min_size=1, max_size=12),
    profile=st.sampled_from(sorted(PROFILES)),
    rest=st.randoms(use_true_random=False),
)
def test_decisions_agree_with_a_naive_scheduler_while_shoots_come_and_leave(
    seeds: list[dict[str, int]], shoots: list[dict[str, int]], profile: str, rest: Random
) -> None:
    names = [f"s{number}" for number in range(len(seeds))]
    documents = [a_seed_with(name, each) for name, each in zip(names, seeds, strict=True)]
    base = snapshot_of([a_project(), a_cloudprofile(), *documents])
    snapshot = Snapshot(base.landscape.with_profile(PROFILES[profile]), UsageIndex())
    naive = {name: NaiveSeed(name, {"allocatable": each, "used": {}}) for name, each in zip(names, seeds, strict=True)}
    placed: list[tuple[str, dict[str, int]]] = []
    for number, requests in enumerate(shoots):
        request = request_of(Shoot.from_document(a_requesting_shoot(f"shoot-{number}", requests)))
        wanted = {"shoots": 1, **requests}
        outcome = decide(request, snapshot)
        chosen = outcome.seed if isinstance(outcome, Assignment) else None
        assert chosen == naive_choice(profile, naive, wanted)
        places = FreeCapacity(snapshot).shoots(request)
        assert (places is None or places > 0) == (chosen is not None)
        if chosen is not None:
            snapshot.assume(chosen, request.requests)
            naive[chosen].used = dict(Counter(naive[chosen].used) + Counter(wanted))
            placed.append((chosen, requests))
        if placed and rest.random() < 0.3:
            seed, left = placed.pop(rest.randrange(len(placed)))
            snapshot.usage.move(seed, "", tuple(sorted(left.items())))
            naive[seed].used = dict(Counter(naive[seed].used) - Counter({"shoots": 1, **left}))


def test_a_class_of_shoots_without_requests_has_its_name_of_before() -> None:
    plain = request_of(Shoot.from_document(a_shoot()))
    requesting = request_of(Shoot.from_document(a_requesting_shoot("apollo", {"cpu": 5})))
    assert b"requests" not in descriptor(plain)
    assert equivalence_class(plain) != equivalence_class(requesting)
    for request in (plain, requesting):
        assert request_from_descriptor(descriptor(request)) == request


def overfilled(store: MemoryStore, limits: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Seeds whose shoots request more than there is, counted from the manifests."""
    taken: dict[str, Counter[str]] = {name: Counter() for name in limits}
    for row in store.state.rows.values():
        if row.stored.key.kind == "shoot":
            requests = dict(line.split(" ") for line in index_keys_of(row.stored.document()).requests)
            for seed in row.seeds:
                taken[seed].update({"shoots": 1, **{name: int(amount) for name, amount in requests.items()}})
    for name, sums in taken.items():
        assert store.state.requested(name) == {each: sums[each] for each in sums if each != "shoots"}
    return [
        name
        for name, sums in taken.items()
        if any(amount > limits[name].get(each, amount if each == "shoots" else 0) for each, amount in sums.items())
    ]


@pytest.mark.parametrize("seed", range(25))
async def test_schedulers_on_stale_caches_people_moves_and_changed_requests_overfill_nothing(seed: int) -> None:
    random, store = Random(seed), MemoryStore(FakeClock())
    limits = {f"s{number}": {"shoots": 4, "cpu": random.randint(2, 9), "memory": 6} for number in range(3)}
    documents = [a_seed_with(name, each) for name, each in limits.items()]
    for document in documents:
        await store.create(document)
    landscape = snapshot_of([a_project(), a_cloudprofile(), *documents]).landscape
    profiles = [landscape.with_profile(each) for each in PROFILES.values()]
    views = [Snapshot(each, UsageIndex()) for each in profiles]
    for number in range(40):
        wanted = {name: random.randint(1, 4) for name in random.sample(["cpu", "memory"], random.randint(0, 2))}
        shoot = stored(await store.create(a_requesting_shoot(f"shoot-{number}", wanted)))
        which = random.randrange(len(views))
        if random.random() < 0.4:  # the others go on with what they have read before
            usage = await store.usage()
            views[which] = Snapshot(views[which].landscape, UsageIndex(usage.seeds, usage.requested))
        outcome = decide(request_of(Shoot.from_document(shoot.encoded())), views[which])
        if isinstance(outcome, Assignment):
            await store.bind([a_binding(shoot, outcome.seed)])
        key = random.choice([each for each in store.state.rows if each.kind == "shoot"])
        await _changed(store, key, random, list(limits))
        assert overfilled(store, limits) == []


async def _changed(store: MemoryStore, key: Any, random: Random, seeds: list[str]) -> None:
    """One of the changes that people and gardenlets make to a shoot; it may be rejected."""
    base = stored(await store.get(key))
    changes: list[Document] = [
        {"metadata": resolved_as({"requests": {"cpu": random.randint(1, 5)}})},
        {"spec": {"seedName": random.choice(seeds)}},
        {"status": {"seedName": base.parts.seed_name or None}},
        {"metadata": {"annotations": None}},
    ]
    change = random.choice(changes)
    if change.keys() == {"spec"} and not base.parts.seed_name:
        change = {"spec": {"seedName": random.choice(seeds)}}
    try:
        await store.update(base, merged(base.document(), change))
    except Forbidden:
        return
