"""Rules between shoots: decisions agree with a naive reference, and no rule is ever broken, whoever places a shoot."""

from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.scheduling_profiles import ResourcesFit, SchedulingProfile, WeightedScore
from gardenbus.common.api.garden.shoot_groups import GroupCounts
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.store import SeedBinding
from gardenbus.scheduling.assignment import decide
from gardenbus.scheduling.diagnosis import rejections_of
from gardenbus.scheduling.equivalence_classes import descriptor, request_from_descriptor, request_of
from gardenbus.scheduling.group_index import GroupIndex
from gardenbus.scheduling.results import Assignment
from gardenbus.scheduling.snapshot import Landscape, Snapshot
from gardenbus.scheduling.usage_index import UsageIndex
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged, resolved_as
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore
from tests.support.naive_groups import Labels, Placed, broken_rule
from tests.support.stores import stored

NAMESPACE = "garden-dev"
KEYS = ("seed", "rack", "region")
GROUPS = ("db", "web")
PROFILES = (SchedulingProfile(), SchedulingProfile(scores=(WeightedScore("fit", 1, ResourcesFit()),)))

terms = st.lists(
    st.fixed_dictionaries({"group": st.sampled_from(GROUPS), "topologyKey": st.sampled_from(KEYS)}),
    max_size=1,
)
constraints = st.lists(
    st.fixed_dictionaries(
        {"group": st.sampled_from(GROUPS), "topologyKey": st.sampled_from(KEYS), "maxSkew": st.integers(1, 2)},
        optional={"minDomains": st.integers(1, 3), "fullDomains": st.just("Ignore")},
    ),
    max_size=1,
)


def rules_of(groups: set[str], near: list[Document], apart: list[Document], spread: list[Document]) -> Document:
    return {
        "groups": sorted(groups),
        "affinity": {"shootAffinity": {"required": near}, "shootAntiAffinity": {"required": apart}},
        "topologySpreadConstraints": spread,
    }


requirements = st.builds(rules_of, st.sets(st.sampled_from(GROUPS)), terms, terms, constraints)
racks = st.lists(st.sampled_from(["r1", "r2", None]), min_size=1, max_size=5)


def seeds_of(racks: Sequence[str | None], shoots: int = 3) -> tuple[list[Document], Labels]:
    """Seeds of one region in racks, some without a label, and their domains."""
    documents: list[Document] = []
    labels: dict[str, dict[str, str]] = {}
    for number, rack in enumerate(racks):
        seed = a_seed(f"s{number}", shoots=str(shoots))
        provider = seed["spec"]["provider"]
        labels[f"s{number}"] = {"seed": f"s{number}", "region": f"{provider['type']}/{provider['region']}"}
        if rack is not None:
            labels[f"s{number}"]["rack"] = rack
            seed = merged(seed, {"metadata": {"labels": {"rack": rack}}})
        documents.append(seed)
    return documents, labels


def landscape_of(documents: Sequence[Document]) -> Landscape:
    return snapshot_of([a_project(), a_cloudprofile(), *documents]).landscape


def a_member(name: str, rules: Document) -> Document:
    return merged(a_shoot(name), {"metadata": resolved_as(rules)})


@settings(max_examples=200, deadline=None)
@given(
    racks=racks,
    shoots=st.lists(requirements, min_size=1, max_size=12),
    profile=st.sampled_from(PROFILES),
    rest=st.randoms(use_true_random=False),
)
def test_decisions_agree_with_a_naive_reference_while_shoots_come_and_leave(
    racks: list[str | None], shoots: list[Document], profile: SchedulingProfile, rest: Random
) -> None:
    documents, labels = seeds_of(racks)
    snapshot = Snapshot(landscape_of(documents).with_profile(profile))
    placed: list[Placed] = []
    for number, rules in enumerate(shoots):
        request = request_of(Shoot.from_document(a_member(f"shoot-{number}", rules)))
        assert request_from_descriptor(descriptor(request)) == request
        used = {seed: sum(each.seed == seed for each in placed) for seed in labels}
        open_seeds = [seed for seed in labels if used[seed] < 3]
        broken = {seed: broken_rule(rules, seed, placed, labels, open_seeds) for seed in labels}
        feasible = [seed for seed in open_seeds if not broken[seed]]
        outcome = decide(request, snapshot)
        chosen = outcome.seed if isinstance(outcome, Assignment) else None
        assert chosen == min(feasible, key=lambda seed: (used[seed], seed), default=None)
        rejections = rejections_of(request, snapshot)
        assert {seed: each.rule for seed, each in rejections.items()} == {
            seed: broken[seed] or "capacity" for seed in labels if seed not in feasible
        }
        if chosen is not None:
            snapshot.assume(chosen)
            snapshot.groups.assume(NAMESPACE, request.rules, chosen)
            placed.append(Placed(rules, chosen))
        if placed and rest.random() < 0.3:
            left = placed.pop(rest.randrange(len(placed)))
            snapshot.usage.move(left.seed, "")
            of_left = request_of(Shoot.from_document(a_member("left", left.rules))).rules
            snapshot.groups.take_away(NAMESPACE, of_left, left.seed)


def test_a_class_of_shoots_without_groups_is_described_as_before() -> None:
    plain = request_of(Shoot.from_document(a_shoot()))
    assert b"rules" not in descriptor(plain)
    requesting = request_of(Shoot.from_document(merged(a_shoot(), {"metadata": resolved_as({"requests": {"cpu": 1}})})))
    assert b"rules" not in descriptor(requesting)


class _Landscape:
    """A store, the shoots whose rules were stated, and what is on its seeds by the manifests."""

    def __init__(self, labels: Labels) -> None:
        self.store = MemoryStore(FakeClock())
        self.labels = labels
        self.rules: dict[ObjectKey, Document] = {}

    async def counts(self) -> dict[str, GroupCounts]:
        return dict(await self.store.group_counts(NAMESPACE, GROUPS))


@pytest.mark.parametrize("seed", range(40))
async def test_several_schedulers_on_stale_counts_break_no_rule(seed: int) -> None:
    random = Random(seed)
    documents, labels = seeds_of([random.choice(["r1", "r2", "r3"]) for _ in range(4)], shoots=4)
    world = _Landscape(labels)
    for document in documents:
        await world.store.create(document)
    landscape = landscape_of(documents)
    read = [await world.counts() for _ in range(3)]
    bound = superseded = 0
    for number in range(40):
        rules = _some_rules(random)
        shoot = stored(await world.store.create(a_member(f"shoot-{number}", rules)))
        world.rules[shoot.key] = rules
        which = random.randrange(len(read))
        if random.random() < 0.5:  # the others go on with what they have read before
            read[which] = await world.counts()
        waiting = [each for each in world.rules if not world.store.state.rows[each].stored.parts.seed_name]
        batch = [shoot, *[stored(await world.store.get(each)) for each in random.sample(waiting, min(2, len(waiting)))]]
        outcomes = await _decide_and_bind(world, landscape, read[which], batch)
        bound += outcomes.count("bound")
        superseded += outcomes.count("group-changed")
        if random.random() < 0.3:
            await _leave(world, random)
    assert bound
    assert superseded


async def _decide_and_bind(
    world: _Landscape, landscape: Landscape, read: dict[str, GroupCounts], batch: Sequence[StoredObject]
) -> list[str]:
    usage = await world.store.usage()
    groups = GroupIndex({(NAMESPACE, group): each for group, each in read.items()})
    snapshot = Snapshot(landscape, UsageIndex(usage.seeds, usage.requested), groups)
    bindings: list[SeedBinding] = []
    for shoot in {each.key: each for each in batch}.values():
        request = request_of(Shoot.from_document(shoot.encoded()))
        outcome = decide(request, snapshot)
        if isinstance(outcome, Assignment):
            seen = groups.seen(NAMESPACE, request.rules)
            bindings.append(_binding(shoot, outcome.seed, seen))
            snapshot.assume(outcome.seed)
            groups.assume(NAMESPACE, request.rules, outcome.seed)
    if not bindings:
        return []
    outcomes = (await world.store.bind(bindings)).outcomes
    placed = [each for each, outcome in zip(bindings, outcomes, strict=True) if outcome == "bound"]
    for position, binding in enumerate(placed):
        later = {ObjectKey("shoot", each.namespace, each.name) for each in placed[position:]}
        others = [
            Placed(world.rules[row.stored.key], on)
            for row in world.store.state.rows.values()
            if row.stored.key in world.rules and row.stored.key not in later
            for on in sorted(row.seeds)
        ]
        rules = world.rules[ObjectKey("shoot", binding.namespace, binding.name)]
        assert not broken_rule(rules, binding.seed, others, world.labels, list(world.labels))
    return list(outcomes)


def _binding(shoot: StoredObject, seed: str, seen: Any) -> SeedBinding:
    return SeedBinding(
        shoot.key.namespace, shoot.key.name, shoot.uid, shoot.generation, seed, scheduling_generation=None, groups=seen
    )


def _some_rules(random: Random) -> Document:
    group, key = random.choice(GROUPS), random.choice(KEYS)
    term = {"group": group, "topologyKey": key}
    return {
        "groups": random.choice([[group], [group], ["db", "web"], []]),
        **random.choice(
            [
                {"affinity": {"shootAntiAffinity": {"required": [term]}}},
                {"affinity": {"shootAffinity": {"required": [term]}}},
                {"topologySpreadConstraints": [{**term, "maxSkew": random.randint(1, 2)}]},
                {},
            ]
        ),
    }


async def _leave(world: _Landscape, random: Random) -> None:
    """A shoot is removed, or what it states changes where it is."""
    key = random.choice(sorted(world.rules))
    base = stored(await world.store.get(key))
    if random.random() < 0.5:
        await world.store.delete(base)
        current = await world.store.get(key)
        if current is not None:
            await world.store.update(current, merged(current.document(), {"metadata": {"finalizers": []}}))
        del world.rules[key]
        return
    rules = _some_rules(random)
    await world.store.update(base, merged(base.document(), {"metadata": resolved_as(rules)}))
    world.rules[key] = rules
