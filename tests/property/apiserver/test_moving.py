"""Whatever operators ask and gardenlets say, in whatever order: a shoot is on one seed, and only its own is heard."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gardenbus.apiserver.domain.request_subjects import reported_object, reports_filter
from gardenbus.apiserver.messages.reports import ReportHandler
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.document import Document, StoredObject, encode, section
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.api.request_bodies import BindRequest
from gardenbus.common.controller.dead_letter import DeadLetter
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.connections import Connections
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
SEEDS = ("a", "b", "c")

Action = tuple[str, Any]


def an_operation(kind: str, state: str) -> Document:
    return {"lastOperation": {"type": kind, "state": state}}


def a_status(operation: Document, seed: str, reported: str) -> Document:
    return {**operation, **({"seedName": seed} if seed else {}), "technicalID": reported}


NO_OPERATION: Document = {}
OPERATIONS = st.builds(
    an_operation,
    st.sampled_from(("Create", "Reconcile", "Migrate", "Restore")),
    st.sampled_from(("Processing", "Succeeded", "Error", "Failed")),
)
STATUSES = st.builds(
    a_status, st.one_of(st.just(NO_OPERATION), OPERATIONS), st.sampled_from(("", *SEEDS)), st.sampled_from(("x", "y"))
)
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.tuples(st.just("bind"), st.tuples(st.sampled_from(SEEDS), st.booleans())),
    st.tuples(st.just("say"), st.tuples(st.sampled_from(SEEDS), STATUSES)),
    st.tuples(st.just("patch"), st.sampled_from(("production", "development"))),
    st.tuples(st.just("again"), st.none()),
)
HANDOVER: Sequence[Action] = (
    ("say", ("a", {"seedName": "a"})),
    ("bind", ("b", False)),
    ("say", ("a", {"seedName": "b", "lastOperation": {"type": "Migrate", "state": "Succeeded"}})),
)


class World:
    """One shoot, three seeds, and an apiserver's hands."""

    def __init__(self) -> None:
        clock = FakeClock()
        self.subjects = Subjects()
        self.store = MemoryStore(clock)
        self.bus = MemoryBus(clock)
        self.manifests = ManifestCache(self.store)
        self.writer = Writer(self.store, clock)
        self.seed_binder = SeedBinder(self.store, clock)
        self.reported: list[Message] = []
        self.forced = False

    def reads(self) -> ReadCache:
        return ReadCache(self.store, self.manifests)

    async def start(self) -> None:
        await self.bus.ensure_streams()
        for document in (a_project(), a_cloudprofile()):
            await self.writer.apply(document, self.reads(), user="ann")
        for seed in SEEDS:
            await self.writer.apply(a_seed(seed, spec={"backup": {}}), self.reads(), user="ann")
        await self.writer.apply(a_shoot(spec={"seedName": "a"}), self.reads(), user="ann")
        state = {"apiVersion": a_shoot()["apiVersion"], "kind": "ShootState", "metadata": a_shoot()["metadata"]}
        await self.writer.apply({**state, "spec": {}}, self.reads(), user="ann")
        self.queue = await self.bus.work_queue(self.subjects.stream("REPORTS"), "test", reports_filter(self.subjects))
        self.reports = ReportHandler(
            bus=self.bus,
            store=self.store,
            subjects=self.subjects,
            queue=self.queue,
            writer=self.writer,
            manifests=self.manifests,
            dead_letter=DeadLetter(
                Connections(self.store, self.bus, self.subjects),
                reporter="apiserver",
                object_of=reported_object(self.subjects),
            ),
            concurrency=4,
        )

    async def now(self) -> StoredObject:
        stored = await self.store.get(APOLLO)
        assert stored is not None
        return stored

    async def take(self, action: Action) -> None:
        """Carry out one action; what is refused changes nothing."""
        kind, what = action
        self.forced = False
        if kind == "bind":
            seed, force = what
            requested = BindRequest(APOLLO.namespace, APOLLO.name, seed, force=force)
            with suppress(GardenbusError):
                await self.seed_binder.bind(requested, self.reads(), user="ann")
                self.forced = force
        elif kind == "patch":
            with suppress(GardenbusError, UnmetDependency):
                await self.writer.patch(APOLLO, {"spec": {"purpose": what}}, self.reads(), user="ann")
        elif kind == "say":
            seed, status = what
            uid = (await self.now()).uid
            subject = self.subjects.report(seed, APOLLO)
            self.reported.append(Message(subject, encode({"status": status}), {Header.UID: uid}))
            await self.hear(self.reported[-1])
        elif self.reported:
            await self.hear(self.reported[-1])

    async def hear(self, message: Message) -> None:
        await self.bus.publish(message)
        await self.reports.handle(await self.queue.fetch(10, 1))


def is_moving(shoot: Document) -> bool:
    operation = section(shoot, "status", "lastOperation")
    kind, state = operation.get("type"), operation.get("state")
    waits_for_its_destination = state == "Error" and not operation.get("progress")
    return (kind == "Migrate" and not waits_for_its_destination) or (kind == "Restore" and state != "Succeeded")


async def check(world: World, action: Action, before: StoredObject) -> None:
    kind, what = action
    after = await world.now()
    old, new = before.document(), after.document()
    (wanted, actual), (spec, status) = ((one.parts.seed_name, one.parts.status_seed_name) for one in (before, after))
    assert after.generation >= before.generation
    assert {seed for seed in SEEDS if APOLLO in await world.store.shoots_on(seed)} == {spec, status} - {""}
    if kind != "bind":
        assert spec == wanted
    elif not world.forced:
        assert status == actual
        assert spec == wanted or not is_moving(old)
        assert {**new["spec"], "seedName": ""} == {**old["spec"], "seedName": ""}
    elif spec != wanted or status != actual:
        assert (spec, status, section(new, "status", "lastOperation").get("state")) == (what[0], what[0], "Aborted")
        assert after.generation == before.generation + 1
    if kind == "patch" and new["spec"] != old["spec"]:
        assert not is_moving(old)
        assert actual in ("", wanted)
    if kind in ("say", "again") and after.version != before.version:
        seed = world.reported[-1].subject.split(".")[2]
        assert seed == (actual or wanted)
        if status != actual:
            operation = section(new, "status", "lastOperation")
            assert status == wanted
            assert not actual or (operation["type"], operation["state"]) == ("Migrate", "Succeeded")


@settings(max_examples=150, deadline=None)
@given(st.booleans(), st.lists(ACTIONS, max_size=25))
def test_a_shoot_is_on_one_seed_whatever_is_said(handed_over: bool, actions: list[Action]) -> None:
    async def live() -> None:
        world = World()
        await world.start()
        for action in (*(HANDOVER if handed_over else ()), *actions):
            before = await world.now()
            await world.take(action)
            await check(world, action, before)

    asyncio.run(live())
