"""Schedules pending shoots: fetched in batches, decided in memory, bound or marked unschedulable, acknowledged.

    fetch ──► read ──► decide all ──► bind (≤ 100 a call) ──► acknowledge
                ▲          │  ▲            │ changed, full, …-changed: decide again; circular: without that seed
                └──────────┼──┴────────────┘
                           └─► unschedulable: mark ──► set a timer ──► acknowledge
                                  │ again: a cluster event came since; decide again once the cache has it

A result of "unschedulable" may depend on assignments of the same round. It is written down only in a round in which
every assignment was made.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import msgspec
import structlog

from gardenbus.common.api.garden.scheduling_profiles import PLUGIN_FILTER
from gardenbus.common.api.garden.shoot_groups import NO_GROUP_RULES
from gardenbus.common.controller.cancellation import cancelled
from gardenbus.common.controller.timers import Timer, Timers
from gardenbus.common.errors import GardenbusError, Transient
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Headers, QueueMessage, WorkQueue
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import BindOutcome, Store, UnblockIndexes
from gardenbus.scheduler.decisions import Decider, prepared_shoot
from gardenbus.scheduler.domain.left_out_seeds import CIRCULAR, SILENT, LeftOut, left_out_by
from gardenbus.scheduler.domain.pending_shoots import (
    NO_EXCLUSIONS,
    AssignedShoot,
    DecidableShoot,
    Exclusions,
    FailedShoot,
    ReadShoot,
    ReceivedShoot,
    UnassignedShoot,
    group_rules_of,
    in_order,
    key_of,
    read_shoot,
    received_again,
    unschedulable_shoot_of,
)
from gardenbus.scheduler.domain.recovery_bars import recovering, runs_elsewhere
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduler.outcome_reports import FINISHED, RESULTS, OutcomeReports
from gardenbus.scheduler.tracing import begin_attempt, spans_ended
from gardenbus.scheduler.watch.permits import Permits, PluginPermit, WantedBind
from gardenbus.scheduler.watch.plugins import Plugins
from gardenbus.scheduler.watch.usage_refresh import record_usage
from gardenbus.scheduling.cache import SchedulingCache
from gardenbus.scheduling.equivalence_classes import (
    Constraints,
)
from gardenbus.scheduling.group_index import GroupIndex
from gardenbus.scheduling.plugin_replies import PluginInput, input_to_plugins
from gardenbus.scheduling.results import Unschedulable
from gardenbus.scheduling.seed_candidates import SeedCandidate
from gardenbus.scheduling.snapshot import Landscape, Snapshot

_log = structlog.stdlib.get_logger()

CALL_SIZE = 100
"""Shoots per call of the store: larger calls keep other callers waiting."""

CATCH_UP_SECONDS = 1.0
"""Wait for a change that is on its way to the cache; then decide once more without it."""

MAX_ROUNDS = 30
"""Rounds that a batch may take before the rest waits for a timer: nothing must block a consumer for ever."""

EXTEND_SECONDS = 3.0
"""Interval at which ack deadlines are extended; far below the queue's ack wait of 10 s."""

BackoffSeconds = Callable[[int], float]
"""Seconds to wait after so many failures (1 the first time)."""

_NO_HEADERS: Headers = {}

_OF_RECOVERY = ("recovering", "seed-silent", "runs-elsewhere")
"""Outcomes of a bind where the store, which went back, does not know enough: an answer of a seed unblocks them."""


class ShootSchedulingReconciler:
    """Schedules batches of shoots for one scheduler name; of batches side by side the store accepts what still fits."""

    def __init__(  # noqa: PLR0913  the parts that a reconciler is put together from
        self,
        *,
        store: Store,
        queue: WorkQueue,
        cache: SchedulingCache,
        timers: Timers,
        backoff: BackoffSeconds,
        clock: Clock,
        metrics: SchedulerMetrics,
        scheduler_name: str,
        takes_turns: bool = False,
        plugins: Plugins | None = None,
    ) -> None:
        self._store = store
        self._queue = queue
        self._cache = cache
        self._timers = timers
        self._backoff = backoff
        self._clock = clock
        self._metrics = metrics
        self._scheduler_name = scheduler_name
        self._takes_turns = takes_turns
        self._plugins = plugins
        self._permits = plugins.permits if plugins is not None and plugins.permits.are_needed else None
        self._waiting_for_plugins: set[asyncio.Task[None]] = set()
        self._decider = Decider(scheduler_name=scheduler_name, clock=clock, metrics=metrics, plugins=plugins)
        self._reports = OutcomeReports(scheduler_name=scheduler_name, clock=clock, metrics=metrics)
        self._turn = asyncio.Lock()
        self._landscape_changed = asyncio.Event()
        cache.subscribe(self._landscape_changed.set)

    @property
    def scheduler_name(self) -> str:
        """The name that its shoots have in spec.schedulerName."""
        return self._scheduler_name

    async def handle_batch(self, messages: Sequence[QueueMessage]) -> None:
        """Bring every shoot of a batch to an end: bound, marked unschedulable, or obsolete.

        Raises Transient when a server is away: nothing is lost, the messages are in flight and may be handled again.
        """
        began = self._clock.monotonic()
        self._metrics.wait_seconds.observe(max((queued.queued_ms for queued in messages), default=0.0) / 1000)
        age = self._metrics.in_flight.labels(self._scheduler_name)
        age.set_function(lambda: self._clock.monotonic() - began)
        in_flight = [_received_shoot(queued, began) for queued in messages]
        with spans_ended(in_flight):
            async with self._turn:
                if self._plugins is not None:
                    in_flight[:] = await self._ready(self._plugins, in_flight)  # the spans of others go on, too
                await self._rounds(in_flight, began)
        age.set_function(lambda: 0.0)
        self._metrics.batch_seconds.observe(self._clock.monotonic() - began)
        self._metrics.batch_shoots.observe(len(messages))

    async def _ready(self, plugins: Plugins, in_flight: Sequence[ReceivedShoot]) -> Sequence[ReadShoot]:
        """The shoots that wait for no plug-in; each other class goes on in a task of its own, and holds up nobody."""
        ready: list[ReadShoot] = []
        waiting: dict[Constraints, tuple[Sequence[asyncio.Task[None]], list[DecidableShoot]]] = {}
        for each, requests in self._with_requests(plugins, await self._read(in_flight)):
            if requests and isinstance(each, DecidableShoot):
                waiting.setdefault(each.request.constraints, (requests, []))[1].append(each)
            else:
                ready.append(each)
        for requests, of_class in waiting.values():
            self._spawn(self._decide_later(of_class, requests, plugins.deadline_seconds), of_class)
        return ready

    def _with_requests(
        self, plugins: Plugins, undecided: Sequence[ReadShoot]
    ) -> Iterator[tuple[ReadShoot, Sequence[asyncio.Task[None]]]]:
        """Yield each shoot with the requests to plug-ins that its class waits for."""
        landscape = self._cache.snapshot(self._scheduler_name).landscape
        requests: dict[Constraints, Sequence[asyncio.Task[None]]] = {}
        for each in undecided:
            try:
                pending = prepared_shoot(each, landscape)
                constraints = pending.request.constraints
                if constraints not in requests:
                    requests[constraints] = plugins.prepare(constraints, landscape)
            except Exception:  # noqa: BLE001  its decision raises the same, and says so in its status
                yield each, ()
            else:
                yield pending, requests[constraints]

    def _spawn(self, work: Coroutine[Any, Any, None], waiting: Sequence[DecidableShoot]) -> None:
        """Go on with shoots that wait for plug-ins in a task of their own. What fails there is delivered again."""
        task = asyncio.create_task(self._carried_out(work, waiting))
        self._waiting_for_plugins.add(task)
        task.add_done_callback(self._waiting_for_plugins.discard)

    async def close(self) -> None:
        """End what waits for plug-ins: its messages are delivered again."""
        await cancelled(self._waiting_for_plugins)

    async def _decide_later(
        self, waiting: Sequence[DecidableShoot], requests: Sequence[asyncio.Task[None]], deadline_seconds: float
    ) -> None:
        """Decide on the shoots of a class when plug-ins have replied, or their time is over."""
        await asyncio.wait(requests, timeout=deadline_seconds)
        async with self._turn:
            await self._rounds(waiting, self._clock.monotonic())

    async def _carried_out(self, work: Coroutine[Any, Any, None], waiting: Sequence[DecidableShoot]) -> None:
        extending = asyncio.create_task(_extend_deadlines(waiting))
        try:
            with spans_ended(waiting):
                await work
        except GardenbusError as error:
            _log.warning(
                "batch.interrupted", consumer=self._scheduler_name, reason=error.message, messages=len(waiting)
            )
        except Exception:  # noqa: BLE001  the messages come back by themselves
            _log.exception("batch.failed", consumer=self._scheduler_name, messages=len(waiting))
        finally:
            extending.cancel()

    async def bind_early(self, hinted: Sequence[QueueMessage]) -> None:
        """Bind shoots whose messages are not here yet, once.

        Only where the cache has all cluster events that the store had before: a Seed that was applied ahead of a shoot
        takes part in the decision. What is not bound, for whatever reason, is left to its message. Raises Transient.
        """
        if self._permits is not None:  # a bind that waits for a plug-in is not early
            self._metrics.hinted_shoots.labels("queued").inc(len(hinted))
            return
        in_flight = [_received_shoot(queued, self._clock.monotonic()) for queued in hinted]
        with spans_ended(in_flight, failed=""):
            async with self._turn:
                usage, found = await asyncio.gather(
                    self._store.usage(self._cache.usage_version),
                    self._store.get_many_partial([pending.key for pending in in_flight]),
                )
                await record_usage(self._store, self._cache, usage)
                if self._cache.seen.objects < usage.unblock_indexes.objects:
                    self._metrics.hinted_shoots.labels("behind").inc(len(hinted))
                    return
                read = map(read_shoot, in_flight, found)
                undecided = [each for each in read if each is not None and group_rules_of(each) is NO_GROUP_RULES]
                if self._plugins is not None:
                    undecided = self._replied(self._plugins, undecided)
                assigned = self._decider.decide_all(
                    undecided, self._cache.working_snapshot(self._scheduler_name)
                ).assigned
                with spans_ended(assigned, failed=""):
                    self._metrics.count_hinted(len(hinted), await self._bind_once(assigned) if assigned else 0)

    def _replied(self, plugins: Plugins, undecided: Sequence[ReadShoot]) -> Sequence[DecidableShoot]:
        """The shoots of classes that plug-ins have replied about; the others are left to their messages."""
        found = self._with_requests(plugins, undecided)
        return [each for each, requests in found if isinstance(each, DecidableShoot) and not requests]

    async def _bind_once(self, assigned: Sequence[AssignedShoot]) -> int:
        """Bind what the store accepts; returns how many that is."""
        reply = await self._store.bind([each.binding for each in assigned], self._cache.usage_version)
        await record_usage(self._store, self._cache, reply.usage)
        for each, outcome in zip(assigned, reply.outcomes, strict=True):
            self._reports.bound(each, outcome)
        self._reports.count(assigned, reply.outcomes)
        self._report_to_plugins(assigned, reply.outcomes)
        return reply.outcomes.count("bound")

    async def _rounds(self, left: Sequence[ReceivedShoot], began: float) -> None:
        extended_at = began
        for _round in range(MAX_ROUNDS):
            left = await self._round(left)
            if not left:
                break
            if self._clock.monotonic() - extended_at > EXTEND_SECONDS:
                extended_at = self._clock.monotonic()
                await asyncio.gather(*(pending.queued.in_progress() for pending in left))
        await self._retry_later(left, failures=1)

    async def _round(self, in_flight: Sequence[ReceivedShoot]) -> list[ReceivedShoot]:
        """Decide on all; returns those that must be decided again."""
        undecided = in_order(await self._read(in_flight), takes_turns=self._takes_turns)
        groups = await self._read_groups(undecided)
        seen = self._cache.seen
        snapshot = self._cache.working_snapshot(self._scheduler_name)
        decided = self._decider.decide_all(undecided, msgspec.structs.replace(snapshot, groups=groups))
        assigned = decided.assigned
        permits = self._permits if assigned else None
        if permits is not None:  # these go on by themselves, and nothing is held for them
            self._request_permits(permits, assigned, snapshot)
        with spans_ended(assigned if permits is None else ()):
            await self._finish(decided.skipped, "obsolete")
            await self._record_failed(decided.failed, seen)
            all_made, lost = await self._bind(assigned) if permits is None else (False, [])
        if not all_made:
            return [*lost, *(each.pending for each in decided.unassigned)]
        return await self._mark_unschedulable(decided.unassigned, seen)

    def _request_permits(self, permits: Permits, assigned: Sequence[AssignedShoot], snapshot: Snapshot) -> None:
        """Have plug-ins permit binds, those of each class in a task of their own: a class waits for its own alone."""
        by_class: dict[PluginInput, list[AssignedShoot]] = {}
        for each in assigned:
            by_class.setdefault(input_to_plugins(each.pending.request.constraints), []).append(each)
        for of_class in by_class.values():
            permitted = self._bind_permitted(permits, of_class, snapshot.landscape)
            self._spawn(permitted, [each.pending for each in of_class])

    async def _bind_permitted(self, permits: Permits, assigned: Sequence[AssignedShoot], landscape: Landscape) -> None:
        """Bind the shoots of a class that plug-ins permit; the others wait for their time, or for a backoff."""
        seeds = landscape.seeds_by_name
        with spans_ended(assigned):
            found = await permits.request([_wanted(each, seeds[each.assignment.seed]) for each in assigned])
            await self._bind_allowed(assigned, found, len(seeds))

    async def _bind_allowed(
        self, assigned: Sequence[AssignedShoot], found: Sequence[PluginPermit], candidates: int
    ) -> None:
        async with self._turn:
            allowed = [each for each, permit in zip(assigned, found, strict=True) if not permit.reason]
            kept = [(each, permit) for each, permit in zip(assigned, found, strict=True) if permit.reason]
            lost: Sequence[ReceivedShoot] = ()
            if allowed:
                _all_made, lost = await self._bind(allowed)
            await self._keep_unpermitted(kept, candidates)
            await self._rounds(lost, self._clock.monotonic())

    async def _keep_unpermitted(self, kept: Sequence[tuple[AssignedShoot, PluginPermit]], candidates: int) -> None:
        """Say in the status of shoots which plug-in does not permit their bind, and decide on them again later."""
        for start in range(0, len(kept), CALL_SIZE):
            chunk = [
                (UnassignedShoot(each.pending, Unschedulable(PLUGIN_FILTER, permit.reason), candidates), permit)
                for each, permit in kept[start : start + CALL_SIZE]
            ]
            seen = self._cache.seen
            records = [unschedulable_shoot_of(each, self._scheduler_name, seen) for each, _ in chunk]
            reply = await self._store.mark_unschedulable(records, None)
            timers: list[Timer] = []
            for (each, permit), result in zip(chunk, reply.outcomes, strict=True):
                self._reports.unschedulable(each, result.outcome, result.attempts)
                if result.outcome in RESULTS:
                    timers.append(self._timer(each.pending, result.attempts, permit.after_seconds))
            await self._timers.enqueue_many_after(timers)
            await self._queue.ack_many([each.pending.queued for each, _ in chunk])

    async def _read(self, in_flight: Sequence[ReceivedShoot]) -> list[ReadShoot]:
        """Read the shoots that have not been read; obsolete ones are acknowledged."""
        unread = [each for each in in_flight if not isinstance(each, ReadShoot)]
        stored = await self._store.get_many_partial([each.key for each in unread])
        found = dict(zip(unread, map(read_shoot, unread, stored), strict=True))
        await self._finish([each for each, read in found.items() if read is None], "obsolete")
        read = (each if isinstance(each, ReadShoot) else found[each] for each in in_flight)
        return [each for each in read if each is not None]

    async def _read_groups(self, undecided: Sequence[ReadShoot]) -> GroupIndex:
        """Read the groups that shoots are members of, or have rules about."""
        wanted: dict[str, set[str]] = {}
        for pending in undecided:
            if (rules := group_rules_of(pending)) is not NO_GROUP_RULES:
                wanted.setdefault(pending.key.namespace, set()).update(rules.read)
        if not wanted:
            return GroupIndex()
        found = await asyncio.gather(*(self._store.group_counts(each, sorted(names)) for each, names in wanted.items()))
        return GroupIndex(
            {
                (namespace, group): each
                for namespace, counts in zip(wanted, found, strict=True)
                for group, each in counts.items()
            }
        )

    async def _bind(self, assigned: Sequence[AssignedShoot]) -> tuple[bool, list[ReceivedShoot]]:
        """Bind; returns whether every assignment was made, and the shoots that must be decided on again.

        Waits first for the changes that superseded the latter.
        """
        chunks = [assigned[start : start + CALL_SIZE] for start in range(0, len(assigned), CALL_SIZE)]
        sinces, seen = self._usage_since(len(chunks)), self._cache.seen
        replies = await asyncio.gather(
            *(
                self._store.bind([each.binding for each in chunk], since)
                for chunk, since in zip(chunks, sinces, strict=True)
            )
        )
        all_made = True
        kept_back: list[tuple[DecidableShoot, BindOutcome]] = []
        lost: list[ReceivedShoot] = []
        done: list[ReceivedShoot] = []
        superseded: set[tuple[str, int | None]] = set()
        for chunk, reply in zip(chunks, replies, strict=True):
            await record_usage(self._store, self._cache, reply.usage)
            self._reports.count(chunk, reply.outcomes)
            self._report_to_plugins(chunk, reply.outcomes)
            for each, outcome in zip(chunk, reply.outcomes, strict=True):
                self._reports.bound(each, outcome)
                all_made = all_made and outcome == "bound"
                pending, assignment = each.pending, each.assignment
                if outcome in FINISHED:
                    done.append(pending)
                elif outcome == "changed":
                    lost.append(received_again(pending))
                elif outcome == "circular":
                    lost.append(_without(pending, {assignment.seed: CIRCULAR}))
                elif outcome in _OF_RECOVERY:
                    kept_back.append((pending, outcome))
                else:
                    lost.append(pending)
                    if outcome not in ("full", "group-changed"):
                        superseded.add((assignment.seed, assignment.scheduling_generation))
        lost += await self._kept_back(kept_back, seen)
        self._metrics.count_binds(outcome for reply in replies for outcome in reply.outcomes)
        await self._queue.ack_many([pending.queued for pending in done])
        await asyncio.gather(
            *(self._wait_for_seed(seed, scheduling_generation) for seed, scheduling_generation in superseded)
        )
        return all_made, lost

    async def _kept_back(
        self, kept_back: Sequence[tuple[DecidableShoot, BindOutcome]], seen: UnblockIndexes
    ) -> list[DecidableShoot]:
        """Shoots with what the store's recovery keeps them from, on the cluster events `seen` before it said so."""
        recovery = await self._store.recovery() if kept_back else None
        shoots: list[DecidableShoot] = []
        for pending, outcome in kept_back:
            if outcome == "runs-elsewhere":
                shoots.append(_without(pending, {}, runs_elsewhere(), seen))
            elif recovery is not None:
                bar = recovering(recovery) if outcome == "recovering" else None
                shoots.append(_without(pending, left_out_by(SILENT, recovery.silent), bar, seen))
            else:  # it has just ended
                shoots.append(pending)
        return shoots

    async def _wait_for_seed(self, name: str, scheduling_generation: int | None) -> None:
        """Wait until a seed has another scheduling generation, or the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_SECONDS):
                while self._cache.generation_of(name) == scheduling_generation:
                    self._landscape_changed.clear()
                    await self._landscape_changed.wait()

    async def _mark_unschedulable(
        self, unassigned: Sequence[UnassignedShoot], seen: UnblockIndexes
    ) -> list[ReceivedShoot]:
        """Mark shoots unschedulable; returns those that a cluster event may have unblocked, once the cache has it."""
        chunks = [unassigned[start : start + CALL_SIZE] for start in range(0, len(unassigned), CALL_SIZE)]
        sinces = self._usage_since(len(chunks))
        replies = await asyncio.gather(
            *(
                self._store.mark_unschedulable(
                    [unschedulable_shoot_of(each, self._scheduler_name, seen) for each in chunk], since
                )
                for chunk, since in zip(chunks, sinces, strict=True)
            )
        )
        again: list[ReceivedShoot] = []
        done: list[ReceivedShoot] = []
        waiting: list[tuple[ReceivedShoot, int]] = []
        unblock_index = 0
        for chunk, reply in zip(chunks, replies, strict=True):
            await record_usage(self._store, self._cache, reply.usage)
            unblock_index = max(unblock_index, reply.usage.unblock_indexes.objects)
            for each, result in zip(chunk, reply.outcomes, strict=True):
                pending = each.pending
                self._reports.unschedulable(each, result.outcome, result.attempts)
                if result.outcome == "again":
                    again.append(msgspec.structs.replace(pending, exclusions=pending.exclusions.after_event))
                elif result.outcome == "parked":
                    waiting.append((pending, result.attempts))
                else:
                    done.append(pending)
        # First the timer, then the acknowledgement: a crash in between means one attempt too many, never one too few.
        await self._timers.enqueue_many_after([self._timer(pending, attempts) for pending, attempts in waiting])
        await self._queue.ack_many(
            [*(pending.queued for pending, _attempts in waiting), *(each.queued for each in done)]
        )
        if again:
            await self._cache.wait_for_objects(unblock_index, CATCH_UP_SECONDS)
        return again

    async def _record_failed(self, failed: Sequence[FailedShoot], seen: UnblockIndexes) -> None:
        """Say in the status of shoots why no decision on them came about, and retry later."""
        described = [each.unassigned for each in failed if each.unassigned is not None]
        for start in range(0, len(described), CALL_SIZE):
            chunk = [
                unschedulable_shoot_of(each, self._scheduler_name, seen)
                for each in described[start : start + CALL_SIZE]
            ]
            await self._store.mark_unschedulable(chunk, None)
        await self._retry_later([each.pending for each in failed], failures=None)

    def _usage_since(self, calls: int) -> list[int | None]:
        """The `since` argument of each call; only the last one requests usage."""
        return [*[None] * (calls - 1), self._cache.usage_version][-calls:] if calls else []

    async def _retry_later(self, left: Sequence[ReceivedShoot], *, failures: int | None) -> None:
        """Queue shoots again with backoff: that of `failures`, or of one more than each has had."""
        if not left:
            return
        timers = [self._timer(each, each.failures + 1 if failures is None else failures) for each in left]
        await self._timers.enqueue_many_after(timers)
        await self._finish(left, "error" if failures is None else "conflict")

    def _timer(self, pending: ReceivedShoot, failures: int, after_seconds: float | None = None) -> Timer:
        """Return the timer with which a shoot comes back after some seconds, or by backoff."""
        headers = {tracing.TRACEPARENT: pending.span.traceparent} if pending.span.traceparent else _NO_HEADERS
        seconds = self._backoff(failures) if after_seconds is None else after_seconds
        return Timer(pending.queued.message.subject, seconds, failures, headers)

    async def _finish(self, finished: Sequence[ReceivedShoot], outcome: str) -> None:
        if finished:
            self._metrics.attempts.labels(outcome).inc(len(finished))
            await self._queue.ack_many([pending.queued for pending in finished])
            for pending in finished:
                if pending.span is not tracing.NOT_TRACED:
                    pending.span.end(outcome=outcome)

    def _report_to_plugins(self, assigned: Sequence[AssignedShoot], outcomes: Sequence[BindOutcome]) -> None:
        """Report to plug-ins what was bound, where a profile has any for it."""
        if self._plugins is None or not self._plugins.permits.are_reported:
            return
        seeds = self._cache.snapshot(self._scheduler_name).landscape.seeds_by_name
        bound = [each for each, outcome in zip(assigned, outcomes, strict=True) if outcome == "bound"]
        reported = ((each, seeds.get(each.assignment.seed)) for each in bound)
        self._plugins.permits.report([_wanted(each, seed) for each, seed in reported if seed is not None])


def _wanted(assigned: AssignedShoot, seed: SeedCandidate) -> WantedBind:
    """Return the bind of a shoot as plug-ins are requested about it."""
    pending = assigned.pending
    of_class = input_to_plugins(pending.request.constraints)
    return WantedBind(pending.key.namespace, pending.key.name, assigned.binding.uid, of_class, seed)


def _received_shoot(queued: QueueMessage, received_at: float) -> ReceivedShoot:
    key = key_of(queued)
    return ReceivedShoot(queued, key, received_at, begin_attempt(queued, key), NO_EXCLUSIONS)


def _without(
    pending: DecidableShoot, seeds: LeftOut, bar: Unschedulable | None = None, seen: UnblockIndexes | None = None
) -> DecidableShoot:
    """The shoot to be decided on without some more seeds."""
    before = pending.exclusions
    excluded = Exclusions({**before.left_out, **seeds}, bar, seen or before.seen)
    return msgspec.structs.replace(pending, exclusions=excluded)


async def _extend_deadlines(waiting: Sequence[DecidableShoot]) -> None:
    """Extend the ack deadlines of shoots for which no batch does so any more; those that have ended take no notice."""
    while True:
        await asyncio.sleep(EXTEND_SECONDS)
        with contextlib.suppress(Transient):  # the server is away: it delivers them again
            for pending in waiting:
                await pending.queued.in_progress()
