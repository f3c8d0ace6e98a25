"""Random operations on the store in memory and on Redis: every answer, every entry of news and the end are the same.

Besides that, what must always hold holds on both: no bind above the allocatable shoots, versions never used twice nor
going back, usage, requests, groups and states as counted from the objects (the store in memory has no index of states),
no deleted object raised by an older request, no shoot on a seed that is marked for removal, and no shoot hosted by
itself.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.scheduling_requirements import resolved_of
from gardenbus.common.api.garden.seeds import removal_owner
from gardenbus.common.api.garden.shoot_groups import GroupCounts
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.store import (
    BindResults,
    EventRecord,
    RequestOrigin,
    SeenGroups,
    Superseded,
    UnblockIndexes,
    WritePrecondition,
)
from gardenbus.relay.ports.outbox import ObjectEntry, OutboxEntry, OutboxPage, QueueEntry, Restored
from tests.support.builders import NOW, merged
from tests.support.servers import Server
from tests.support.store_changes import (
    BINDING,
    CHANGES,
    COUNTED,
    GROUPS,
    HOSTS,
    KEYS,
    LIMITS,
    MANAGED_SEEDS,
    QUOTA,
    SCHEDULERS,
    SEEDS,
    SHOOT_STATES,
    SHOOTS,
    SHOOTS_THERE,
    any_changes,
    finalizers,
    first_document,
    keys,
    seed_names,
    small,
)
from tests.support.stores import StoreUnderTest, a_binding, an_unschedulable_shoot, in_memory, on_redis

EXAMPLES = int(os.environ.get("STORE_MACHINE_EXAMPLES", "40"))
"""The same few every time; 100 or more are drawn anew."""

NAMESPACES = ("garden-dev", "garden")
CREATED = 1_767_323_045_000_000_000
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
_EVENT_ID = re.compile(r"\b[0-9a-f]{40}\b")
_EXAMPLE = re.compile(r", for example [^)]*\)")


class Side:
    """One of the two stores, and what was read from it."""

    def __init__(self, kit: StoreUnderTest) -> None:
        self.kit = kit
        self.reads: dict[ObjectKey, list[StoredObject]] = {}
        self.labels: dict[str, str] = {}

    def remember(self, response: object) -> None:
        """Keep what was answered, to base later writes on it, stale ones too."""
        if isinstance(response, StoredObject):
            self.labels.setdefault(response.uid, f"uid-{len(self.labels)}")
            self.reads.setdefault(response.key, []).append(response)

    def read(self, key: ObjectKey, age: int) -> StoredObject:
        """The newest read of an object, or one that is older."""
        reads = self.reads[key]
        return reads[max(0, len(reads) - 1 - age)]

    def text(self, response: object) -> str:
        """An answer as comparable text, without what is random."""
        plain = msgspec.to_builtins(_ordered(response), builtin_types=(bytes,), order="sorted")
        text = _EXAMPLE.sub(")", repr(plain))
        text = _EVENT_ID.sub("event-id", text)
        return _UID.sub(lambda match: self.labels.get(match.group(), match.group()), text)


def _counts(census: Mapping[str, int]) -> dict[str, object]:
    """A census without the number of entries: news that belong together may share one in a store."""
    return {**census, "outbox": census["outbox"] > 0}


def is_circular(shoots: Mapping[str, str], places: Mapping[str, set[str]]) -> bool:
    """Whether some shoot stands on itself, by the shoot that each seed is and the seeds that each such shoot is on."""
    for host in places:
        below = places[host]
        for _step in SEEDS:
            below = below | {place for seed in below if seed in shoots for place in places.get(shoots[seed], set())}
        if any(shoots.get(seed) == host for seed in below):
            return True
    return False


def _ordered(response: object) -> object:
    """The same in an order of its own where the store promises none."""
    if isinstance(response, OutboxPage):
        return [_comparable(response.entries), sorted(response.objects.items())]
    if isinstance(response, list):
        return [_ordered(entry) for entry in cast("list[object]", response)]
    if isinstance(response, GardenbusError):
        return [type(response).__name__, response.message]
    return response


def _comparable(entries: Sequence[OutboxEntry]) -> list[object]:
    """News without entry ids; work that came in a row by its tail."""
    ordered: list[object] = []
    for is_work, group in groupby(entries, lambda entry: isinstance(entry, QueueEntry)):
        run = [[type(entry).__name__, msgspec.structs.replace(entry, entry="")] for entry in group]
        ordered += sorted(run, key=repr) if is_work else run
    return ordered


class StoreMachine(RuleBasedStateMachine):
    """See the module. `url` is set by the test."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.sides = [Side(in_memory(is_open=False)), Side(on_redis(self.url))]
        self.sequence = 1
        self.floor = 0
        self.taken: dict[ObjectKey, RequestOrigin] = {}
        self.newest = self.version = 0
        self.objects: dict[ObjectKey, StoredObject] = {}
        self.shoots_on: dict[str, list[ObjectKey]] = {}
        self.demands: dict[str, int] = {}
        self.owners: dict[int, tuple[ObjectKey, bool]] = {}
        self.groups: list[Mapping[str, GroupCounts]] = []
        self.requested: Mapping[str, Mapping[str, int]] = {}
        self.both(lambda side: side.kit.open())
        for key in (*SEEDS, *SHOOTS, *MANAGED_SEEDS, *SHOOT_STATES):
            document = first_document(key, "nobody")
            self.both(lambda side, document=document: side.kit.store.create(document))

    def teardown(self) -> None:
        for side in self.sides:
            self.runner.run(side.kit.store.close())
        self.runner.close()

    def both(self, call: Callable[[Side], Awaitable[Any]]) -> list[Any]:
        """Do the same on both sides, demand the same answer, and give both."""
        responses = [self.runner.run(self._respond(call, side)) for side in self.sides]
        for side, response in zip(self.sides, responses, strict=True):
            side.remember(response)
        memory, redis = (side.text(response) for side, response in zip(self.sides, responses, strict=True))
        assert memory == redis
        return responses

    @staticmethod
    async def _respond(call: Callable[[Side], Awaitable[Any]], side: Side) -> Any:
        try:
            return await call(side)
        except GardenbusError as error:
            return error

    def read_again(self, keys: Sequence[ObjectKey]) -> None:
        """Read objects that a write of several may have changed."""
        for key in keys:
            self.both(lambda side, key=key: side.kit.store.get(key))

    def origin(self, age: int | None) -> RequestOrigin | None:
        """No origin, the next one of the bus (0), or one that is delivered again."""
        if age is None:
            return None
        if age == 0:
            self.sequence += 1
        return RequestOrigin(CREATED, max(self.sequence - age, self.floor + 1))

    def check_write(self, key: ObjectKey, origin: RequestOrigin | None, response: object) -> None:
        """The order of the requests and of the versions."""
        before = self.taken.get(key)
        if origin and before and origin <= before:
            assert response == Superseded(before), "an older request changed or raised something"
        if origin and not isinstance(response, Superseded | GardenbusError):
            self.taken[key] = origin

    # ------------------------------------------------------------------------------------------ writes

    @rule(
        key=keys,
        data=st.data(),
        age=st.none() | small,
        placed=seed_names,
        scheduling_generation=st.sampled_from([None, 0, 1]),
        guards=st.sampled_from([[], COUNTED, COUNTED[:1]]),
    )
    def create(
        self,
        key: ObjectKey,
        data: st.DataObject,
        age: int | None,
        placed: str | None,
        scheduling_generation: int | None,
        guards: list[WritePrecondition],
    ) -> None:
        changes, held = data.draw(any_changes), data.draw(finalizers)
        origin = self.origin(age)

        async def call(side: Side) -> object:
            owner = side.reads[SEEDS[0]][-1].uid
            document = merged(merged(first_document(key, owner), changes), {"metadata": {"finalizers": held}})
            if key.kind == "shoot" and placed and scheduling_generation is not None:
                document = merged(document, {"spec": {"seedName": placed}})
            seed = ObjectKey("seed", "", placed or "")
            number = (
                side.read(seed, scheduling_generation or 0).scheduling_generation
                if scheduling_generation is not None and seed in side.reads
                else None
            )
            return await side.kit.store.create(
                document,
                origin=origin,
                last_applied=b"{}",
                scheduling_generation=number,
                preconditions=guards if key.kind == "shoot" else [],
            )

        responses = self.both(call)
        self.check_write(key, origin, responses[1])

    def recorded(self, data: st.DataObject) -> ObjectKey:
        """A key that was read before."""
        return data.draw(st.sampled_from(sorted(self.sides[0].reads)))

    @rule(data=st.data(), stale=st.sampled_from([0, 0, 0, 0, 1, 2]), age=st.none() | small, bump=st.booleans())
    def update(self, data: st.DataObject, stale: int, age: int | None, bump: bool) -> None:
        key = self.recorded(data)
        changes = data.draw(st.one_of(CHANGES[key.kind], any_changes))
        fences = data.draw(st.sampled_from([None, None, b"[1]", b"[2]"]))
        origin = self.origin(age)

        async def call(side: Side) -> object:
            base = side.read(key, stale)
            document = merged(base.document(), changes)
            return await side.kit.store.update(
                base,
                document,
                origin=origin,
                report_stamps=fences,
                bump_generation=bump and not stale,
                preconditions=COUNTED if key.kind == "shoot" and bump else [],
            )

        self.check_write(key, origin, self.both(call)[1])
        self.read_again([key])

    @rule(data=st.data(), stale=st.sampled_from([0, 0, 0, 1]), age=st.none() | small, guarded=st.booleans())
    def delete(self, data: st.DataObject, stale: int, age: int | None, guarded: bool) -> None:
        key = self.recorded(data)
        preconditions = (
            [WritePrecondition("usage", key.name, "in use"), WritePrecondition("references", key.stored, "referred to")]
            if guarded
            else []
        )
        origin = self.origin(age)
        responses = self.both(
            lambda side: side.kit.store.delete(side.read(key, stale), origin=origin, preconditions=preconditions)
        )
        self.check_write(key, origin, responses[1])

    @rule(
        items=st.lists(
            st.tuples(st.sampled_from(SHOOTS), st.sampled_from(SEEDS), small, small), min_size=1, max_size=4
        ),
        since=small,
    )
    def bind(self, items: list[tuple[ObjectKey, ObjectKey, int, int]], since: int) -> None:
        async def call(side: Side) -> object:
            bindings = [
                a_binding(
                    side.read(shoot, stale // 2),
                    seed.name,
                    scheduling_generation=side.read(seed, scheduling_generation - 1).scheduling_generation
                    if scheduling_generation
                    else None,
                    spec=merged(side.read(shoot, 0).document()["spec"], {"filled": True})
                    if scheduling_generation == 3
                    else None,
                    groups=await self.seen_groups(side, shoot, stale),
                )
                for shoot, seed, stale, scheduling_generation in items
            ]
            return await side.kit.store.bind(bindings, since)

        responses = self.both(call)
        self.read_again([shoot for shoot, _, _, _ in items])
        seeds = [seed for _, seed, _, _ in items]
        outcomes = cast("BindResults", responses[1]).outcomes
        for seed in {seed for seed, outcome in zip(seeds, outcomes, strict=True) if outcome == "bound"}:
            self.check_capacity(seed)

    @staticmethod
    async def seen_groups(side: Side, shoot: ObjectKey, stale: int) -> SeenGroups:
        """The groups of a shoot's namespace as they are, or (3) as they were before the last change."""
        counts = await side.kit.store.group_counts(shoot.namespace, GROUPS)
        return {group: (max(0, each.version - (stale == 3)), 0) for group, each in counts.items()}

    def check_capacity(self, seed: ObjectKey) -> None:
        """A bind that added a shoot left no more of them than the seed takes (one may have been counted there)."""
        for side in self.sides:
            stored = self.runner.run(side.kit.now(seed))
            used = len(self.runner.run(side.kit.store.shoots_on(seed.name)))
            places = stored.document()["status"].get("allocatable", {}).get("shoots")
            added = used > len(self.shoots_on[seed.name])
            assert places is None or not added or used <= {"0": 0, "1": 1, "1500m": 2, "2": 2, "3": 3}[places]

    @rule(
        shoots=st.lists(st.sampled_from(SHOOTS), min_size=1, max_size=4),
        late=st.sampled_from([0, 0, 0, 1]),
        stale=st.sampled_from([0, 0, 0, 1]),
        number=small,
    )
    def mark_unschedulable(self, shoots: list[ObjectKey], late: int, stale: int, number: int) -> None:
        async def call(side: Side) -> object:
            now = (await side.kit.store.usage()).unblock_indexes
            unschedulable = [
                an_unschedulable_shoot(
                    side.read(shoot, stale),
                    seen=UnblockIndexes(now.objects - late, now.usage),
                    message=f"refused {number}",
                    equivalence_class=f"class-{number % 2}",
                    scheduler_name=SCHEDULERS[shoot == SHOOTS[3]],
                )
                for shoot in shoots
            ]
            return await side.kit.store.mark_unschedulable(unschedulable)

        self.both(call)
        self.read_again(shoots)

    @rule(scheduler=st.sampled_from(SCHEDULERS), number=st.integers(0, 1), limit=small)
    def activate(self, scheduler: str, number: int, limit: int) -> None:
        self.both(lambda side: side.kit.store.activate(scheduler, f"class-{number}", limit))

    @rule(
        what=st.sampled_from(["event", "fence", "again", "repeat", "requeue", "time", "look"]),
        key=keys,
        seed=st.sampled_from(SEEDS),
        number=small,
    )
    def do_something_rare(self, what: str, key: ObjectKey, seed: ObjectKey, number: int) -> None:
        async def call(side: Side) -> object:
            store, outbox = side.kit.store, side.kit.outbox
            match what:
                case "event":
                    await store.record_event(EventRecord(key, "uid", "Normal", "Tested", str(number), "tester"))
                case "fence":
                    fenced = [await store.has_fencing_token(name) for name in (seed.name, "nowhere")]
                    return fenced, await store.accept_fencing_token(seed.name, number % 2, number)
                case "again":
                    uid = side.reads[key][-1].uid if number % 2 and side.reads.get(key) else ""
                    return await store.reannounce_object(key, seed.name, uid)
                case "repeat":
                    await outbox.reannounce(self.newest - 5 * number)
                case "requeue":
                    await outbox.requeue_pending()
                case "time":
                    side.kit.clock.advance(60)
                case _:
                    owner = side.reads[SEEDS[0]][-1].uid
                    page = await store.list_page(key.kind, limit=2)
                    token = page.continue_token
                    rest = await store.list_page(key.kind, limit=2, continue_token=token) if token else None
                    amounts = sorted((await store.stored_amounts()).items())
                    return [_counts(await store.census()), amounts, await store.dependents(owner), page, rest]
            return None

        self.both(call)

    # ------------------------------------------------------------------------------------------ the relay

    @rule()
    def announce(self) -> None:
        """The whole outbox at once: work that comes in a row has no order that could be cut in the same place."""

        async def call(side: Side) -> object:
            page = await side.kit.outbox.head(100_000)
            await side.kit.outbox.trim(
                page.entries[-1].entry if page.entries else None, {"OBJECTS": StreamPosition(1, 2)}
            )
            return page

        page = cast("OutboxPage", self.both(call)[1])
        for entry in page.entries:
            if isinstance(entry, ObjectEntry):
                recorded = self.owners.setdefault(entry.version, (entry.key, entry.verb == "deleted"))
                assert recorded == (entry.key, entry.verb == "deleted") or not entry.uid, "a version was used twice"

    @rule()
    @precondition(lambda self: self.sequence % 3 == 0)
    def collect_tombstones(self) -> None:
        self.floor = self.sequence
        self.both(lambda side: side.kit.outbox.collect_tombstones("9999", StreamPosition(CREATED, self.floor)))

    @rule(key=keys, ahead=small, deleted=st.booleans(), again=st.booleans(), seed=seed_names)
    def lose_the_newest_write(self, key: ObjectKey, ahead: int, deleted: bool, again: bool, seed: str | None) -> None:
        """The store comes back without a write that the bus has: it is put back, then the store opens."""
        shoots, places = self.hosting()
        if key in HOSTS:
            places[key.name] = {seed} if seed else set()
        if key in MANAGED_SEEDS:
            shoots[key.name] = HOSTS[MANAGED_SEEDS.index(key)].name
        onto_marked = key.kind == "shoot" and seed in self.marked()
        if not deleted and (onto_marked or is_circular(shoots, places)):
            return  # the bus has nothing that the store refused
        uid = f"00000000-0000-4000-8000-{self.newest:012}"

        async def call(side: Side) -> object:
            newest = (await side.kit.store.list_page(key.kind)).version
            current = await side.kit.store.get(key)
            await side.kit.close_for_writes()
            version = newest + ahead if ahead or not current else current.version
            version += not current and not ahead  # every version belongs to one object
            recorded = current.uid if current and again else uid
            side.labels.setdefault(recorded, f"uid-{len(side.labels)}")
            system = {"uid": recorded, "generation": 2, "creationTimestamp": NOW}
            placed = {"spec": {"seedName": seed}} if key.kind == "shoot" else {}
            document = merged(merged(first_document(key, "nobody"), {"metadata": system}), placed)
            response = await side.kit.outbox.restore(Restored(key, recorded, version, None if deleted else document))
            await side.kit.outbox.open(max(version, newest), 3)
            return response

        self.both(call)
        self.read_again([key])

    # ------------------------------------------------------------------------------------------ what always holds

    @invariant()
    def both_hold_the_same(self) -> None:
        async def call(side: Side) -> object:
            store = side.kit.store
            waiting = [
                sorted(await store.unschedulable_classes(name), key=lambda entry: entry.equivalence_class)
                for name in SCHEDULERS
            ]
            on = [await store.shoots_on(seed.name) for seed in SEEDS]
            page = await store.list_page("none")
            objects, counts = await store.get_many(KEYS), await store.shoot_state_counts(3)
            demands = sorted((await store.demand(LIMITS)).items())
            groups = [await store.group_counts(namespace, GROUPS) for namespace in NAMESPACES]
            return [objects, await store.usage(), waiting, on, page.version, counts, demands, groups]

        objects, usage, _, on, version, _, demands, self.groups = self.both(call)[1]
        self.requested = usage.requested
        self.demands = dict(demands)
        self.objects = {key: stored for key, stored in zip(KEYS, objects, strict=True) if stored}
        self.shoots_on = {seed.name: shoots for seed, shoots in zip(SEEDS, on, strict=True)}
        self.version = version

    @invariant()
    def usage_is_that_of_the_objects(self) -> None:
        for seed, shoots in self.shoots_on.items():
            named = {key: self.objects[key].parts for key in SHOOTS if key in self.objects}
            assert set(shoots) == {key for key, at in named.items() if seed in (at.seed_name, at.status_seed_name)}

    @invariant()
    def requests_and_groups_are_those_of_the_shoots_there(self) -> None:
        requested: Counter[tuple[str, str]] = Counter()
        members: Counter[tuple[str, str, str]] = Counter()
        keeping_off: Counter[tuple[str, str]] = Counter()
        for seed, shoots in self.shoots_on.items():
            for key in shoots:
                requirements = resolved_of(self.objects[key].document())
                requested.update({(seed, resource): amount for resource, amount in requirements.requests})
                members.update((key.namespace, group, seed) for group in requirements.group_rules.groups)
                keeping_off.update((key.namespace, seed) for _ in requirements.group_rules.anti_affinity)
        found = {(seed, name): count for seed, sums in self.requested.items() for name, count in sums.items() if count}
        assert found == requested
        for namespace, groups in zip(NAMESPACES, self.groups, strict=True):
            for group, counts in groups.items():
                there = {seed: members[namespace, group, seed] for seed in self.shoots_on}
                assert counts.members == {seed: count for seed, count in there.items() if count}
            kept_off = groups["pair"].keeping_off.get("seed", {})
            assert kept_off == {seed: count for (at, seed), count in keeping_off.items() if at == namespace}

    @invariant()
    def quotas_count_what_is_there(self) -> None:
        there = [self.objects[key].document() for key in SHOOTS[:4] if key in self.objects]
        if quota := self.objects.get(QUOTA):
            assert quota.document()["status"]["used"] == {SHOOTS_THERE: str(len(there))}
        binding = self.objects.get(BINDING)
        counts = bool(binding and binding.document().get("quotas"))
        wanting = [shoot for shoot in there if counts and shoot["spec"].get("secretBindingName")]
        assert self.demands.get("loadbalancers", 0) == len(wanting)
        pools = [pool for shoot in wanting for pool in shoot["spec"].get("provider", {}).get("workers") or ()]
        assert sum(self.demands.values()) == len(wanting) + sum(pool["maximum"] for pool in pools)

    def marked(self) -> set[str]:
        """The seeds that are marked for removal."""
        return {key.name for key in SEEDS if key in self.objects and removal_owner(self.objects[key].document())}

    def hosting(self) -> tuple[dict[str, str], dict[str, set[str]]]:
        """The shoot that each seed is, and the seeds that each such shoot is on."""
        hosts = {key.name: self.objects[key].parts for key in HOSTS if key in self.objects}
        return (
            {
                key.name: self.objects[key].document()["spec"]["shoot"]["name"]
                for key in MANAGED_SEEDS
                if key in self.objects
            },
            {name: {parts.seed_name, parts.status_seed_name} - {""} for name, parts in hosts.items()},
        )

    @invariant()
    def no_shoot_is_on_a_seed_that_is_marked_for_removal(self) -> None:
        for seed in self.marked():
            assert not self.shoots_on[seed]

    @invariant()
    def no_shoot_is_hosted_by_itself(self) -> None:
        assert not is_circular(*self.hosting())

    @invariant()
    def versions_never_go_back(self) -> None:
        assert self.version >= self.newest
        self.newest = self.version


def test_the_store_in_memory_and_the_store_on_redis_are_one_store(redis_server: Server) -> None:
    machine = type("Machine", (StoreMachine,), {"url": redis_server.url})
    run_state_machine_as_test(  # pyright: ignore[reportUnknownMemberType]
        machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=35,
            deadline=None,
            derandomize=EXAMPLES < 100,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )
