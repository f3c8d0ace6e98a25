"""Random histories of everybody who places shoots; each write is checked by rules and room as the manifests state them.

Three schedulers of different profiles, of which some decide on what they saw long ago; a person who binds, moves, takes
back and forces; gardenlets that report; people who order shoots, change what these require, and delete them; seeds
whose allocatable resources change. Whoever reads may find another one ahead before he goes on.
"""

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency, cause_of
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.garden.scheduling_profiles import (
    ResourcesFit,
    SchedulingProfile,
    ShootAffinity,
    TopologySpread,
    WeightedScore,
)
from gardenbus.common.api.garden.scheduling_requirements import REQUIREMENTS
from gardenbus.common.api.garden.shoot_groups import GroupCounts
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.request_bodies import BindRequest
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.store import BindResults, SeedBinding, Superseded
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_seed, a_shoot, a_shoot_state, merged
from tests.support.clocks import FakeClock
from tests.support.memory.store import MemoryStore
from tests.support.naive_groups import Labels, Placed, broken_rule
from tests.support.scheduling import SchedulerUnderTest

NAMESPACE = "garden-dev"
GROUPS = ("db", "web", "cache")
KEYS = ("seed", "rack")
RACKS: Labels = {
    name: {"seed": name, "rack": rack} for name, rack in (("a", "r1"), ("b", "r1"), ("c", "r2"), ("d", "r3"))
}
NAMES = [f"s{number}" for number in range(9)]
SHOOTS, CPU = "shoots", "cpu"
READY = [a_condition("GardenletReady"), a_condition("BackupBucketsReady")]
PROFILES = (
    SchedulingProfile(),
    SchedulingProfile(
        scores=(
            WeightedScore("ShootTopologySpread", 2, TopologySpread()),
            WeightedScore("InterShootAffinity", 1, ShootAffinity()),
            WeightedScore("SeedResourcesFit", 1, ResourcesFit()),
        )
    ),
    SchedulingProfile(scores=(WeightedScore("SeedResourcesFit", 1, ResourcesFit(type="MostAllocated")),)),
)

STEPS = 12
"""Steps of a phase."""

MOST_BATCHES = 60
"""Batches in which a scheduler has done all that is to be done."""

CHURNING = {"schedule": 9, "order": 6, "bind": 6, "arrive": 4, "delete": 4, "allocate": 1}
GROWING = {"schedule": 6, "order": 4, "bind": 1}

Step = Callable[[], Awaitable[None]]
Amounts = Mapping[tuple[str, str], int]
"""By seed and resource."""


class Violation(AssertionError):
    """What must never be."""


class PlacedShoot(NamedTuple):
    """A shoot as its manifest has it: what it states, and the seeds on which it counts."""

    rules: Document
    requests: Mapping[str, int]
    seeds: frozenset[str]


class CheckedStore(MemoryStore):
    """A store that checks each write which places a shoot, and lets others go ahead of who has just read."""

    def __init__(self) -> None:
        super().__init__(FakeClock())
        self.others_ahead: list[Step] = []
        self.refresh: Step | None = None
        self.checked = self.superseded = 0
        self._parsed: dict[str, tuple[int, PlacedShoot]] = {}

    async def _let_another_ahead(self, *, keeping: int = 1) -> None:
        """Let the next one go ahead; the last of them when groups are read, which a bind is based on."""
        if len(self.others_ahead) > keeping:
            await self.others_ahead.pop(0)()

    async def group_counts(self, namespace: str, groups: Sequence[str]) -> Mapping[str, GroupCounts]:
        found = await super().group_counts(namespace, groups)
        await self._let_another_ahead(keeping=0)
        return found

    async def get_many(self, keys: Sequence[ObjectKey]) -> Any:
        found = await super().get_many(keys)
        await self._let_another_ahead()
        return found

    async def get_many_partial(self, keys: Sequence[ObjectKey]) -> Any:
        found = await super().get_many_partial(keys)
        await self._let_another_ahead()
        return found

    def placed(self) -> dict[str, PlacedShoot]:
        """All shoots, by their names."""
        found: dict[str, PlacedShoot] = {}
        for key, stored in self.state.rows.of_kind("shoot").items():
            parsed = self._parsed.get(key.name)
            if parsed is None or parsed[0] != stored.version:
                document = stored.document()
                rules = json.loads(section(document, "metadata", "annotations").get(REQUIREMENTS, "{}"))
                requests = {name: _thousandths(amount) for name, amount in rules.get("requests", {}).items()}
                places = (section(document, part).get("seedName") for part in ("spec", "status"))
                seeds = frozenset(str(each) for each in places if each)
                self._parsed[key.name] = parsed = stored.version, PlacedShoot(rules, requests, seeds)
            found[key.name] = parsed[1]
        return found

    def allocatable(self) -> Amounts:
        """What the seeds state."""
        found: dict[tuple[str, str], int] = {}
        for key, stored in self.state.rows.of_kind("seed").items():
            for resource, amount in stored.document()["status"]["allocatable"].items():
                found[key.name, resource] = int(amount) if resource == SHOOTS else _thousandths(amount)
        return found

    async def bind(self, bindings: Sequence[SeedBinding], usage_since: int | None = 0) -> BindResults:
        shoots = self.placed()
        reply = await super().bind(bindings, usage_since)
        for binding, outcome in zip(bindings, reply.outcomes, strict=True):
            if outcome == "bound":
                self._check(binding.name, shoots, self.placed()[binding.name])
        self.superseded += len({"group-changed", "full"} & set(reply.outcomes))
        if self.refresh is not None and {"seed-changed", "seed-gone"} & set(reply.outcomes):
            await self.refresh()
        return reply

    async def update(self, base: StoredObject, document: Document, **options: Any) -> StoredObject | Superseded:
        shoots = self.placed()
        stored = await super().update(base, document, **options)
        if base.key.kind == "shoot" and (now := self.placed().get(base.key.name)) is not None:
            self._check(base.key.name, shoots, now)
        return stored

    def _check(self, name: str, shoots: dict[str, PlacedShoot], now: PlacedShoot) -> None:
        """Check what a write made of a shoot next to the others, which are `shoots`: it is among them afterwards."""
        before = shoots.get(name, PlacedShoot({}, {}, frozenset()))
        others = [
            Placed(each.rules, seed) for other, each in shoots.items() if other != name for seed in sorted(each.seeds)
        ]
        was = sums_of(shoots)
        shoots[name] = now
        for seed in now.seeds - before.seeds:
            self.checked += 1
            if rule := broken_rule(now.rules, seed, others, RACKS, list(RACKS)):
                raise Violation(f"{name} came to {seed}, which breaks {rule} of {now.rules} next to {others}")
        allocatable = self.allocatable()
        for what, amount in sums_of(shoots).items():
            if amount > max(was.get(what, 0), allocatable.get(what, 0)):
                raise Violation(f"{name} has {what} taken beyond what is allocatable: {amount}")


def _thousandths(amount: str) -> int:
    return int(float(amount) * 1000)


def sums_of(shoots: Mapping[str, PlacedShoot]) -> Counter[tuple[str, str]]:
    """What is taken of each resource of each seed."""
    sums: Counter[tuple[str, str]] = Counter()
    for each in shoots.values():
        for seed in each.seeds:
            sums[seed, SHOOTS] += 1
            sums.update({(seed, resource): amount for resource, amount in each.requests.items()})
    return sums


class History:
    """One history: `run` it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.store = CheckedStore()
        self.clock = FakeClock()
        self.manifests = ManifestCache(self.store)
        self.writer = Writer(self.store, self.clock)
        self.binder = SeedBinder(self.store, self.clock)
        self.schedulers = [SchedulerUnderTest(self.store, profiles=(each,)) for each in PROFILES]
        self.deciding: set[int] = set()
        self.newest: dict[str, GroupCounts] = {}
        self.versions: dict[str, int] = {}
        self.rejected: Counter[str] = Counter()

    async def run(self, phases: int) -> None:
        """Go through so many phases, of which each comes to rest; in some of them no shoot leaves. Raises Violation."""
        for document in (a_project(), a_cloudprofile()):
            await self.store.create(document)
        for name, domains in RACKS.items():
            await self.store.create(
                merged(
                    a_seed(name, shoots=str(self.random.randint(2, 5))),
                    {
                        "metadata": {"labels": {"rack": domains["rack"]}},
                        "spec": {"backup": {"provider": "aws"}},
                        "status": {"conditions": READY, **_allocatable(self.random)},
                    },
                )
            )
        self.store.refresh = self.refresh
        await self.refresh()
        for name in NAMES:
            await self._order(name, some_requirements(self.random))
        for _ in range(phases):
            weights = self.random.choice([CHURNING, GROWING])
            for _ in range(STEPS):
                self.store.others_ahead = [self._some_step(weights) for _ in range(self.random.randrange(4))]
                await self._some_step(weights)()
                await self.recount()
            self.store.others_ahead = []
            await self.come_to_rest()

    async def refresh(self) -> None:
        """Show all schedulers the objects as they are."""
        for each in self.schedulers:
            await each.informer.refresh()

    # ------------------------------------------------------------------------------------------ steps

    def _some_step(self, weights: Mapping[str, int]) -> Step:
        random, name = self.random, self.random.choice(NAMES)
        match random.choices([*weights], [*weights.values()])[0]:
            case "order":
                rules = some_requirements(random)
                return lambda: self._tried(self._order(name, rules))
            case "schedule":
                which, is_blind = random.randrange(len(self.schedulers)), random.random() < 0.5
                names = random.sample(NAMES, random.choice([1, 1, 2, 2, 4, len(NAMES)]))
                return lambda: self._schedule(which, names, is_blind=is_blind)
            case "bind":
                seed, force = random.choice(sorted(RACKS)), random.random() < 0.1
                return lambda: self._tried(self._bind(name, seed, force=force))
            case "arrive":
                return lambda: self._tried(self._arrive(name))
            case "delete":
                return lambda: self._tried(self._delete(name))
            case _:
                seed, shoots, allocatable = random.choice(sorted(RACKS)), random.randint(1, 5), _allocatable(random)
                return lambda: self._tried(self._allocate(seed, str(shoots), allocatable))

    async def _tried(self, step: Awaitable[None]) -> None:
        try:
            await step
        except (GardenbusError, UnmetDependency) as error:
            self.rejected[type(cause_of(error)).__name__] += 1

    async def _order(self, name: str, requirements: Document) -> None:
        manifest = a_shoot(name, metadata={"annotations": {REQUIREMENTS: json.dumps(requirements)}})
        await self.writer.apply(manifest, ReadCache(self.store, self.manifests), user="ann")

    async def _schedule(self, which: int, names: Sequence[str], *, is_blind: bool) -> None:
        if which in self.deciding:
            return
        self.deciding.add(which)
        scheduler = self.schedulers[which]
        handle = scheduler.handle_batch_blindly if is_blind else scheduler.handle_batch
        try:
            await handle(*names)
        finally:
            self.deciding.discard(which)

    async def _bind(self, name: str, seed: str, *, force: bool) -> None:
        request = BindRequest(NAMESPACE, name, seed, force=force)
        await self.binder.bind(request, ReadCache(self.store, self.manifests), user="ann")

    async def _arrive(self, name: str) -> None:
        """The gardenlet of the seed of a shoot reports it, with its state for whoever forces it away."""
        stored = await self._shoot(name)
        if stored is None or not stored.parts.seed_name:
            return
        await self.store.update(stored, merged(stored.document(), {"status": {"seedName": stored.parts.seed_name}}))
        if await self.store.get(ObjectKey("shootstate", NAMESPACE, name)) is None:
            await self.store.create(a_shoot_state(name))

    async def _delete(self, name: str) -> None:
        stored = await self._shoot(name)
        if stored is None:
            return
        if not stored.is_deleting:
            await self.store.delete(stored)
            stored = await self._shoot(name)
        if stored is not None and self.random.random() < 0.7:
            await self.store.update(stored, merged(stored.document(), {"metadata": {"finalizers": []}}))

    async def _allocate(self, seed: str, shoots: str, status: Document) -> None:
        stored = await self.store.get(ObjectKey("seed", "", seed))
        assert stored is not None
        allocatable = {"status": {"allocatable": {SHOOTS: shoots}}}
        await self.store.update(stored, merged(merged(stored.document(), {"status": status}), allocatable))

    async def _shoot(self, name: str) -> StoredObject | None:
        return await self.store.get(ObjectKey("shoot", NAMESPACE, name))

    # ------------------------------------------------------------------------------------------ what always holds

    async def recount(self) -> None:
        """Compare what the store counts with the manifests."""
        shoots = self.store.placed()
        sums = sums_of(shoots)
        usage = await self.store.usage()
        counted: Counter[tuple[str, str]] = Counter({(seed, SHOOTS): count for seed, count in usage.seeds.items()})
        for seed, requested in usage.requested.items():
            counted.update({(seed, resource): amount for resource, amount in requested.items()})
        if +counted != +sums:
            raise Violation(f"usage is {counted}, and the shoots have {sums}")
        for group, counts in (await self.store.group_counts(NAMESPACE, GROUPS)).items():
            members, keeping_off = _members(shoots, group), _keeping_off(shoots, group)
            if (counts.members, counts.keeping_off) != (members, keeping_off):
                raise Violation(f"{group} is {counts}, and its shoots are {members}, {keeping_off}")
            newest = self.versions.get(group, 0)
            before = self.newest.get(group, GroupCounts())
            if counts.version and counts.version != before.version and counts.version <= newest:
                raise Violation(f"{group} has had version {counts.version} before")
            if counts.version == before.version and counts != before:
                raise Violation(f"{group} has changed within version {counts.version}")
            self.newest[group], self.versions[group] = counts, max(newest, counts.version)

    async def come_to_rest(self) -> None:
        """Let one scheduler do all that is to be done: no shoot waits then that some seed could take."""
        scheduler = self.schedulers[0]
        for _ in range(MOST_BATCHES):
            await scheduler.activate()
            waiting = await scheduler.waiting()
            pending = await self._pending(waiting)
            if not pending:
                return self._check_waiting(waiting)
            size = self.random.choice([1, 3, len(NAMES)])
            await scheduler.handle_batch(*self.random.sample(pending, min(len(pending), size)))
            await self.recount()
        raise Violation("there is no rest")

    async def _pending(self, waiting: Collection[str]) -> list[str]:
        shoots = self.store.placed()
        found = [(name, await self._shoot(name)) for name in sorted(shoots) if not shoots[name].seeds]
        return [name for name, stored in found if name not in waiting and stored is not None and not stored.is_deleting]

    def _check_waiting(self, waiting: Collection[str]) -> None:
        shoots, allocatable = self.store.placed(), self.store.allocatable()
        sums = sums_of(shoots)
        for name in sorted(waiting):
            rules, requests, seeds = shoots[name]
            others = [
                Placed(each.rules, seed) for other, each in shoots.items() if other != name for seed in each.seeds
            ]
            wanted = {SHOOTS: 1, **requests}
            possible = [
                seed
                for seed in RACKS
                if all(sums[seed, what] + more <= allocatable.get((seed, what), 0) for what, more in wanted.items())
                and not broken_rule(rules, seed, others, RACKS, list(RACKS))
            ]
            if possible and not seeds:
                raise Violation(f"{name} waits, and {possible} could take it: {rules} next to {others}")


def _allocatable(random: Random) -> Document:
    cpu = str(random.randint(1, 6))
    return {"capacity": {CPU: cpu}, "allocatable": {CPU: cpu}}


def some_requirements(random: Random) -> Document:
    """Requirements as a person states them: often a member of a group, with one rule, and with a request."""
    group, key = random.choice(GROUPS), random.choice(KEYS)
    term = {"group": group, "topologyKey": key}
    rule = random.choice(
        [
            {"affinity": {"shootAntiAffinity": {"required": [term]}}},
            {"affinity": {"shootAffinity": {"required": [term]}}},
            {"topologySpreadConstraints": [{**term, "maxSkew": random.randint(1, 2)}]},
            {"affinity": {"shootAntiAffinity": {"preferred": [{"weight": 5, **term}]}}},
            {"affinity": {"shootAffinity": {"preferred": [{"weight": 5, **term}]}}},
            {"topologySpreadConstraints": [{**term, "whenUnsatisfiable": "ScheduleAnyway"}]},
            {},
        ]
    )
    requests = random.choice([{}, {}, {"requests": {CPU: "0.5"}}, {"requests": {CPU: "2"}}])
    return {"groups": random.choice([[group], [random.choice(GROUPS)], ["db", "web"], []]), **rule, **requests}


def _members(shoots: Mapping[str, PlacedShoot], group: str) -> dict[str, int]:
    placed = (seed for each in shoots.values() if group in each.rules.get("groups", []) for seed in each.seeds)
    return dict(Counter(placed))


def _keeping_off(shoots: Mapping[str, PlacedShoot], group: str) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for each in shoots.values():
        for term in each.rules.get("affinity", {}).get("shootAntiAffinity", {}).get("required", []):
            if term["group"] == group:
                found.setdefault(term["topologyKey"], Counter()).update(each.seeds)
    return {key: dict(counts) for key, counts in found.items() if counts}
