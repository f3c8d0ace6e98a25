"""What becomes of work, for each end that a look can take; on the bus in memory, at a standing clock."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from structlog.contextvars import get_contextvars
from structlog.testing import capture_logs

from gardenbus.common.api.keys import Header, Subjects
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.controller.controller import (
    Controller,
    ControllerSettings,
    Done,
    ReconcileRequest,
    ReconcileResult,
    Requeue,
    RequeueAfter,
)
from gardenbus.common.controller.timers import Timers
from gardenbus.common.errors import Conflict, InvalidResource, Unavailable
from gardenbus.common.ports.bus import Message, QueueMessage
from tests.support.eventually import HANG_SECONDS
from tests.support.manual_clock import ManualClock
from tests.support.memory.bus import MemoryBus

SUBJECTS = Subjects()
QUEUES = SUBJECTS.stream("QUEUES")


@dataclass
class Bench:
    """A controller with a scripted reconciler: each look does the next thing of its script (the last one for ever)."""

    clock: ManualClock = field(default_factory=ManualClock)
    script: list[ReconcileResult | Exception | Callable[[], Awaitable[ReconcileResult]]] = field(
        default_factory=lambda: [Done()]
    )
    requests: list[ReconcileRequest] = field(default_factory=list[ReconcileRequest])
    rejected: list[QueueMessage] = field(default_factory=list[QueueMessage])
    settings: ControllerSettings = field(default_factory=ControllerSettings)

    def __post_init__(self) -> None:
        self.bus = MemoryBus(self.clock)
        self.timers = Timers(self.bus, SUBJECTS)
        self.controller: Controller | None = None
        self.running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        queue = await self.bus.work_queue(QUEUES, "look", SUBJECTS.queue_of("look"))
        self.controller = Controller(
            "look",
            queue,
            self._reconcile,
            timers=self.timers,
            clock=self.clock,
            reject=self._reject,
            backoff=Backoff(base_seconds=10, cap_seconds=100),
            settings=self.settings,
            fraction=lambda: 0.5,
        )
        self.running = asyncio.create_task(self.controller.run())

    async def enqueue(self, *names: str) -> None:
        for name in names:
            await self.bus.publish(self.timers.enqueue_message(SUBJECTS.queue("look", "ns", name)))

    async def converge(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)

    async def pass_time(self, seconds: float) -> None:
        for _ in range(round(seconds * 10)):
            self.clock.advance(0.1)
            await self.converge()

    async def live(self) -> dict[str, int]:
        return dict(await self.bus.subjects(QUEUES, ">"))

    async def _reconcile(self, request: ReconcileRequest) -> ReconcileResult:
        self.requests.append(request)
        step = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(step, Exception):
            raise step
        return await step() if callable(step) else step

    async def _reject(self, message: QueueMessage) -> None:
        self.rejected.append(message)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    bench = Bench()
    yield bench
    if bench.controller is not None and bench.running is not None:
        await asyncio.wait_for(bench.controller.stop(), HANG_SECONDS)
        await bench.running


async def test_done_work_is_gone(bench: Bench):
    await bench.start()
    await bench.enqueue("apollo.v2")
    await bench.converge()

    (request,) = bench.requests
    assert (request.namespace, request.name, request.attempt, request.deliveries) == ("ns", "apollo.v2", 0, 1)
    assert await bench.live() == {}


async def test_work_that_asks_for_a_later_look_waits_as_a_timer_and_is_no_failure(bench: Bench):
    bench.script = [RequeueAfter(30), Done()]
    await bench.start()
    await bench.enqueue("a")
    await bench.converge()
    assert await bench.live() == {"garden.later.look.ns.a": 1}

    await bench.pass_time(29)
    assert len(bench.requests) == 1
    await bench.pass_time(2)
    assert [request.attempt for request in bench.requests] == [0, 0]
    assert await bench.live() == {}


@pytest.mark.parametrize("error", [Unavailable("the store is away"), RuntimeError("a bug")])
async def test_work_that_fails_comes_back_with_growing_waits_and_is_counted(bench: Bench, error: Exception):
    bench.script = [error, error, Done()]
    await bench.start()
    await bench.enqueue("a")
    await bench.converge()

    await bench.pass_time(7.3)
    assert len(bench.requests) == 1
    await bench.pass_time(0.4)  # 7.5: half of 10, and half of the other half
    assert len(bench.requests) == 2
    await bench.pass_time(14.8)
    assert len(bench.requests) == 2
    await bench.pass_time(0.4)
    assert [request.attempt for request in bench.requests] == [0, 1, 2]
    assert len({request.reconcile_id for request in bench.requests}) == 1
    assert await bench.live() == {}


async def test_a_later_look_forgets_the_failures_before_it(bench: Bench):
    bench.script = [RuntimeError("a bug"), RequeueAfter(5), RuntimeError("another"), Done()]
    await bench.start()
    await bench.enqueue("a")

    await bench.pass_time(40)

    assert [request.attempt for request in bench.requests] == [0, 1, 0, 1]


async def test_a_conflict_is_looked_at_again_at_once(bench: Bench):
    bench.script = [Conflict("changed"), Requeue("changed"), Done()]
    await bench.start()
    await bench.enqueue("a")
    await bench.converge()

    assert [request.attempt for request in bench.requests] == [0, 0, 0]
    assert await bench.live() == {}


async def test_conflicts_without_end_wait_their_turn(bench: Bench):
    bench.script = [Conflict("always")]
    await bench.start()
    await bench.enqueue("a")
    await bench.converge()

    assert len(bench.requests) == 10
    assert await bench.live() == {"garden.later.look.ns.a": 1}


async def test_what_can_never_succeed_is_dropped_until_the_object_changes(bench: Bench):
    bench.script = [InvalidResource("spec is wrong")]
    await bench.start()
    await bench.enqueue("a")
    await bench.converge()
    await bench.pass_time(300)

    assert len(bench.requests) == 1
    assert await bench.live() == {}


async def test_work_delivered_too_often_is_rejected_without_a_look(bench: Bench):
    queue = await bench.bus.work_queue(QUEUES, "look", SUBJECTS.queue_of("look"))
    await bench.enqueue("a")
    for _ in range(5):
        (work,) = await queue.fetch(1, 0)
        await work.release()

    await bench.start()
    await bench.converge()

    assert not bench.requests
    assert [(each.message.subject, each.deliveries) for each in bench.rejected] == [("garden.queue.look.ns.a", 6)]
    assert await bench.live() == {}


async def test_slow_work_stays_in_hand_and_holds_up_no_other(bench: Bench):
    release = asyncio.Event()

    async def slow() -> ReconcileResult:
        await release.wait()
        return Done()

    bench.script = [slow, Done()]
    await bench.start()
    await bench.enqueue("slow", "fast")
    await bench.pass_time(60)

    assert [request.name for request in bench.requests] == ["slow", "fast"]
    assert list(await bench.live()) == ["garden.queue.look.ns.slow"]
    release.set()
    await bench.converge()
    assert await bench.live() == {}


async def test_one_object_is_never_looked_at_twice_at_once(bench: Bench):
    release = asyncio.Event()
    at_once: list[int] = []
    running: set[object] = set()

    async def slow() -> ReconcileResult:
        running.add(token := object())
        at_once.append(len(running))
        await release.wait()
        running.discard(token)
        return Done()

    bench.script = [slow]
    await bench.start()
    for _ in range(3):
        await bench.enqueue("a")
        await bench.converge()
    release.set()
    await bench.converge()

    assert at_once == [1, 1, 1]
    assert await bench.live() == {}


async def test_no_more_work_is_taken_than_there_are_places(bench: Bench):
    bench.settings = ControllerSettings(workers=2)
    release = asyncio.Event()

    async def slow() -> ReconcileResult:
        await release.wait()
        return Done()

    bench.script = [slow]
    await bench.start()
    await bench.enqueue("a", "b", "c", "d")
    await bench.converge()
    assert len(bench.requests) == 2
    release.set()
    await bench.converge()
    assert len(bench.requests) == 4


async def test_parking_goes_on_through_an_outage_of_the_bus(bench: Bench):
    async def cut() -> ReconcileResult:
        bench.bus.cut()
        return RequeueAfter(5)

    bench.script = [cut, Done()]
    await bench.start()
    await bench.enqueue("a")
    await bench.pass_time(3)
    await bench.bus.mend()
    await bench.pass_time(1)
    assert "garden.later.look.ns.a" in await bench.live()

    await bench.pass_time(20)

    assert len(bench.requests) >= 2
    assert await bench.live() == {}


async def test_stopping_waits_for_work_in_hand(bench: Bench):
    release = asyncio.Event()

    async def slow() -> ReconcileResult:
        await release.wait()
        return Done()

    bench.script = [slow]
    await bench.start()
    await bench.enqueue("a")
    await bench.converge()
    assert bench.controller is not None
    stopping = asyncio.create_task(bench.controller.stop())
    await bench.converge()
    await bench.enqueue("b")
    await bench.converge()
    assert not stopping.done()
    release.set()
    await asyncio.wait_for(stopping, HANG_SECONDS)

    assert [request.name for request in bench.requests] == ["a"]
    assert list(await bench.live()) == ["garden.queue.look.ns.b"]


async def test_stopping_releases_what_does_not_end(bench: Bench):
    bench.settings = ControllerSettings(drain_seconds=0.05)

    async def endless() -> ReconcileResult:
        await asyncio.Event().wait()
        return Done()

    bench.script = [endless]
    await bench.start()
    await bench.enqueue("a")
    await bench.converge()
    assert bench.controller is not None
    await asyncio.wait_for(bench.controller.stop(), HANG_SECONDS)

    queue = await bench.bus.work_queue(QUEUES, "look", SUBJECTS.queue_of("look"))
    (work,) = await queue.fetch(1, 0)
    assert work.deliveries == 2


async def test_each_look_ends_in_one_line_of_the_log(bench: Bench):
    bench.script = [InvalidResource("spec is wrong")]
    await bench.start()
    with capture_logs() as logs:
        await bench.bus.publish(
            Message(SUBJECTS.queue("look", "ns", "a"), headers={Header.RECONCILE_ID: "abc", Header.ATTEMPT: "4"})
        )
        await bench.converge()

    (line,) = [entry for entry in logs if entry["event"] == "reconcile.finished"]
    assert line["controller"] == "look"
    assert line["object"] == "ns.a"
    assert line["reconcile_id"] == "abc"
    assert line["outcome"] == "dropped"
    assert line["reason"] == "spec is wrong"
    assert line["attempt"] == 4
    assert {"queued_ms", "duration_ms"} <= line.keys()


async def test_an_attempt_that_is_no_number_counts_as_none(bench: Bench):
    await bench.start()
    await bench.bus.publish(Message(SUBJECTS.queue("look", "ns", "a"), headers={Header.ATTEMPT: "many"}))
    await bench.converge()

    assert [request.attempt for request in bench.requests] == [0]


async def test_all_lines_of_one_reconcile_carry_its_id(bench: Bench):
    async def logged() -> ReconcileResult:
        bound.append(get_contextvars()["reconcile_id"])
        return Done()

    bound: list[str] = []
    bench.script = [logged]
    await bench.start()
    await bench.enqueue("a", "b")
    await bench.converge()

    assert bound == [request.reconcile_id for request in bench.requests]
    assert len(set(bound)) == 2
    assert "reconcile_id" not in get_contextvars()
