import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from gardenbus.common.api.document import Document
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.store import BindResults, SeedBinding
from gardenbus.common.ports.tracing import TRACEPARENT
from gardenbus.relay.ports.outbox import ObjectEntry, QueueEntry
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.memory.store import MemoryStore
from tests.support.scheduling import SCHEDULER, SchedulerUnderTest, shoot_in, stocked
from tests.support.spans import FROM_A_CLIENT, TRACE_ID, Recorder, recorded

BASE = (a_cloudprofile(), a_project())
TRACED = {TRACEPARENT: FROM_A_CLIENT}


class Explodes:
    name = "explodes"

    def shoot_input(self, shoot: Document) -> Any:
        return shoot["metadata"]["name"]

    def filter(self, shoot_input: Any, seed: Document) -> str | None:
        raise ZeroDivisionError


def traces_of(store: MemoryStore, name: str) -> Sequence[str]:
    """What goes along with the news of a shoot."""
    entries = store.state.outbox
    return [each.trace for each in entries if isinstance(each, ObjectEntry) and each.key.name == name]


def tree(recorder: Recorder) -> list[tuple[str, str]]:
    return [(span.name, recorder.parent_of(span)) for span in recorder.spans]


async def test_waiting_deciding_and_binding_are_spans_and_the_news_of_the_bind_goes_on_below_it() -> None:
    store = await stocked(*BASE, a_seed(), a_shoot())
    scheduler = SchedulerUnderTest(store)
    with recorded() as recorder, capture_logs() as logs:
        await scheduler.handle_batch("apollo", headers=TRACED)
    assert tree(recorder) == [
        ("queue.wait", FROM_A_CLIENT),
        ("scheduler.schedule", "queue.wait"),
        ("scheduler.decide", "scheduler.schedule"),
        ("scheduler.bind", "scheduler.schedule"),
    ]
    assert recorder.open() == []
    assert recorder.named("scheduler.schedule").attributes["outcome"] == "bound"
    assert traces_of(store, "apollo")[-1] == recorder.named("scheduler.bind").traceparent
    (line,) = [line for line in logs if line["event"] == "shoot.scheduled"]
    assert line["trace_id"] == TRACE_ID


async def test_where_nothing_is_recorded_the_trace_is_told_and_passed_on_as_it_came() -> None:
    store = await stocked(*BASE, a_seed(), a_shoot())
    with capture_logs() as logs:
        await SchedulerUnderTest(store).handle_batch("apollo", headers=TRACED)
    assert traces_of(store, "apollo")[-1] == FROM_A_CLIENT
    (line,) = [line for line in logs if line["event"] == "shoot.scheduled"]
    assert line["trace_id"] == TRACE_ID


@pytest.mark.parametrize("given", ["", "nonsense", FROM_A_CLIENT.upper(), f"00-{'0' * 32}-{'1' * 16}-01"])
async def test_work_without_a_trace_that_is_one_is_not_traced(given: str) -> None:
    store = await stocked(*BASE, a_seed(), a_shoot())
    with recorded() as recorder:
        await SchedulerUnderTest(store).handle_batch("apollo", headers={TRACEPARENT: given} if given else None)
    assert recorder.spans == []
    assert (await shoot_in(store, "apollo")).parts.seed_name == "aws-eu1"


async def test_a_refused_shoot_ends_its_span_and_its_timer_carries_the_trace() -> None:
    store = await stocked(*BASE, a_seed(shoots="0"), a_shoot())
    scheduler = SchedulerUnderTest(store)
    with recorded() as recorder:
        await scheduler.handle_batch("apollo", headers=TRACED)
    assert recorder.open() == []
    scheduling = recorder.named("scheduler.schedule")
    assert (scheduling.attributes["outcome"], scheduling.attributes["rule"]) == ("parked", "capacity")
    (timer,) = scheduler.ledger.timers
    assert timer.headers[TRACEPARENT] == scheduling.traceparent
    await store.create(a_seed("more"))
    await scheduler.activate()
    work = [each for each in store.state.outbox if isinstance(each, QueueEntry)]
    assert (work[-1].tail, work[-1].trace) == (f"scheduling.{SCHEDULER}.garden-dev.apollo", scheduling.traceparent)


async def test_what_is_none_of_its_business_ends_its_span() -> None:
    store = await stocked(*BASE, a_seed(), a_shoot(spec={"schedulerName": "mine"}))
    with recorded() as recorder:
        await SchedulerUnderTest(store).handle_batch("apollo", "nobody", headers=TRACED)
    assert recorder.open() == []
    outcomes = [span.attributes["outcome"] for span in recorder.spans if span.name == "scheduler.schedule"]
    assert outcomes == ["obsolete", "obsolete"]


async def test_a_decision_that_ends_in_an_exception_ends_its_spans() -> None:
    store = await stocked(*BASE, a_seed(), a_shoot())
    scheduler = SchedulerUnderTest(store, filters=[Explodes()])
    with recorded() as recorder:
        await scheduler.handle_batch("apollo", headers=TRACED)
    assert recorder.open() == []
    assert "ZeroDivisionError" in recorder.named("scheduler.decide").failed
    (timer,) = scheduler.ledger.timers
    assert timer.headers[TRACEPARENT] == recorder.named("scheduler.schedule").traceparent


async def test_a_store_that_is_away_leaves_no_span_open() -> None:
    store = await stocked(*BASE, a_seed(), a_shoot())

    async def bind(_bindings: Sequence[SeedBinding], _since: int | None = 0) -> BindResults:
        raise Unavailable("away")

    store.bind = bind  # pyright: ignore[reportAttributeAccessIssue]
    with recorded() as recorder, pytest.raises(Unavailable):
        await SchedulerUnderTest(store).handle_batch("apollo", headers=TRACED)
    assert recorder.open() == []
    assert recorder.named("scheduler.schedule").failed


async def test_a_batch_that_is_cancelled_while_a_hint_is_followed_leaves_no_span_open() -> None:
    store = await stocked(*BASE, a_seed(), a_shoot("one"), a_shoot("two"))
    scheduler = SchedulerUnderTest(store)
    await scheduler.informer.refresh()
    binds, may_bind, bind = asyncio.Event(), asyncio.Event(), store.bind

    async def bind_later(bindings: Sequence[SeedBinding], since: int | None = 0) -> BindResults:
        binds.set()
        await may_bind.wait()
        return await bind(bindings, since)

    store.bind = bind_later  # pyright: ignore[reportAttributeAccessIssue]
    with recorded() as recorder:
        early = asyncio.create_task(scheduler.bind_early("one"))
        await binds.wait()
        waiting = asyncio.create_task(scheduler.handle_batch_blindly("two", headers=TRACED))
        await asyncio.sleep(0)
        waiting.cancel()
        may_bind.set()
        await asyncio.wait([early, waiting])
    assert early.result() == 1
    assert waiting.cancelled()
    assert tree(recorder) == [("queue.wait", FROM_A_CLIENT), ("scheduler.schedule", "queue.wait")]
    assert recorder.open() == []


async def test_one_that_is_decided_again_stays_within_its_span() -> None:
    store = await stocked(*BASE, a_seed("a", shoots="1"), a_seed("b"), a_shoot("one"), a_shoot("two"))
    first, second = SchedulerUnderTest(store), SchedulerUnderTest(store)
    await second.informer.refresh()
    await first.handle_batch("one")
    with recorded() as recorder:
        await second.handle_batch_blindly("two", headers=TRACED)
    assert recorder.open() == []
    named = recorder.names()
    assert named.count("scheduler.schedule") == 1
    assert named.count("scheduler.decide") == named.count("scheduler.bind")
