"""Pending shoots: taken from the queue in batches, decided in memory, bound or parked, acknowledged.

    work ──► read ──► decide all ──► bind (≤ 100 a call) ──► acknowledged
               ▲          │  ▲            │ changed, full, seed-changed: look again; circular: without that seed
               └──────────┼──┴────────────┘
                          └─► refused: park ──► timer stored ──► acknowledged
                                 │ again: something was gained since; look again when it has been seen

A refusal may stand on placements of the same round. It is parked only in a round in which every placement was made.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

import structlog

from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Work, WorkQueue
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import BindOutcome, Gains, Store
from gardenbus.scheduler.reconcilers import spans
from gardenbus.scheduler.reconcilers.counters import Counters
from gardenbus.scheduler.reconcilers.hosting import naming
from gardenbus.scheduler.reconcilers.pending import (
    PendingShoot,
    Placed,
    Refused,
    binding_of,
    is_placed_or_leaving,
    parking_of,
    taken,
)
from gardenbus.scheduler.reconcilers.telling import Teller
from gardenbus.scheduler.reconcilers.timers import Timers
from gardenbus.scheduling.current import CurrentLandscape
from gardenbus.scheduling.landscape import Snapshot
from gardenbus.scheduling.outcome import Placement, Refusal
from gardenbus.scheduling.placement import decide
from gardenbus.scheduling.request import (
    SchedulingRequest,
    pending_shoot,
    request_of,
    skipped_because,
)

_log = structlog.stdlib.get_logger()

CALL_SIZE = 100
"""Items a call of bind or park: larger calls keep others waiting for the store."""

CATCH_UP_SECONDS = 1.0
"""How long to wait for news that is known to be on its way before deciding once more without it."""

MOST_ROUNDS = 30
"""Rounds a batch may take before what is left waits for a timer: nothing must keep a worker for ever."""

HOLD_SECONDS = 3.0
"""How often work in hand is told to be so; far below the queue's acknowledgement time of 10 s."""


_RESULTS = {"parked": "unschedulable", "again": "again"}
"""What the answers to a refusal are counted as; by the others the shoot is nobody's business any more."""

_SETTLED = ("bound", "gone", "scheduled", "deleting")
"""Answers to a bind after which there is nothing left to decide."""


class _Decided(NamedTuple):
    """What a round has decided: of each shoot, or that it is not this scheduler's, or ended in an exception."""

    placed: Sequence[Placed]
    refused: Sequence[Refused]
    skipped: Sequence[PendingShoot]
    failed: Sequence[PendingShoot]


class ShootReconciler:
    """Settles batches of work for one scheduler name. Batches may run side by side; the store decides between them."""

    def __init__(  # noqa: PLR0913  the parts that a reconciler is put together from
        self,
        *,
        store: Store,
        queue: WorkQueue,
        current: CurrentLandscape,
        timers: Timers,
        clock: Clock,
        counters: Counters,
        scheduler_name: str,
    ) -> None:
        self._store = store
        self._queue = queue
        self._current = current
        self._timers = timers
        self._clock = clock
        self._counters = counters
        self._scheduler_name = scheduler_name
        self._teller = Teller()

    async def settle(self, works: Sequence[Work]) -> None:
        """Bring every shoot of a batch to an end: bound, parked, or none of this scheduler's business.

        Raises Transient when a server is away: nothing is lost, the work is still in hand and may be settled again.
        """
        began = self._clock.monotonic()
        self._counters.wait_seconds.observe(max((work.queued_ms for work in works), default=0.0) / 1000)
        self._counters.in_hand.set_function(lambda: self._clock.monotonic() - began)
        in_hand = [taken(work, began) for work in works]
        try:
            await self._rounds(in_hand, began)
        finally:  # whatever it was that ended it: a span that is not ended is not told
            for pending in in_hand:
                if pending.span is not tracing.NOT_TRACED:
                    pending.binding.end(failed="interrupted")
                    pending.span.end(failed="interrupted")
        self._counters.in_hand.set_function(_nothing)
        self._counters.batch_seconds.observe(self._clock.monotonic() - began)
        self._counters.batch_shoots.observe(len(works))

    async def _rounds(self, left: Sequence[PendingShoot], began: float) -> None:
        held_at = began
        for _round in range(MOST_ROUNDS):
            left = await self._round(left)
            if not left:
                break
            if self._clock.monotonic() - held_at > HOLD_SECONDS:
                held_at = self._clock.monotonic()
                await asyncio.gather(*(pending.work.in_progress() for pending in left))
        await self._come_back(left, failures=1)

    async def _round(self, todo: Sequence[PendingShoot]) -> list[PendingShoot]:
        """Decide on all; answer those that must be decided again."""
        todo = await self._read(todo)
        seen = self._current.seen
        decided = self._decide_all(todo, self._current.draft())
        await self._finish(decided.skipped, "obsolete")
        await self._come_back(decided.failed, failures=None)
        all_made, lost = await self._bind(decided.placed)
        if not all_made:
            return [*lost, *(each.pending for each in decided.refused)]
        return await self._park(decided.refused, seen)

    def _decide_all(self, todo: Sequence[PendingShoot], snapshot: Snapshot) -> _Decided:
        """Decide on one after the other, each placement counting for the next."""
        placed: list[Placed] = []
        refused: list[Refused] = []
        refusals: dict[SchedulingRequest, Refusal] = {}
        skipped: list[PendingShoot] = []
        failed: list[PendingShoot] = []
        began = self._clock.monotonic()
        for pending in todo:
            decision = pending.span if pending.span is tracing.NOT_TRACED else spans.deciding(pending.span)
            try:
                decided = self._decided(pending, snapshot, refusals)
                if decision is not tracing.NOT_TRACED:
                    decision.end()
            except Exception as error:  # noqa: BLE001  one shoot's decision must not stop the others'
                decision.end(failed=repr(error))
                _log.error(
                    "decision.failed",
                    shoot=str(pending.key),
                    attempt=pending.failures + 1,
                    exc_info=True,
                    **tracing.fields(pending.span.traceparent),
                )
                self._counters.exceptions.inc()
                failed.append(pending)
                continue
            if isinstance(decided, Placed):
                placed.append(decided)
            elif isinstance(decided, Refused):
                refused.append(decided)
            else:
                skipped.append(pending)
        if todo:
            self._counters.decision_seconds.observe((self._clock.monotonic() - began) / len(todo))
        return _Decided(placed, refused, skipped, failed)

    async def _read(self, todo: Sequence[PendingShoot]) -> list[PendingShoot]:
        """Read the shoots that have not been read; those that are nobody's business any more are acknowledged."""
        unread = [pending for pending in todo if pending.stored is None]
        for pending, stored in zip(
            unread, await self._store.glance_many([pending.key for pending in unread]), strict=True
        ):
            pending.stored = stored
            pending.shoot = pending.request = None
        gone = {pending for pending in unread if pending.stored is None or is_placed_or_leaving(pending.stored)}
        await self._finish(tuple(gone), "obsolete")
        return [pending for pending in todo if pending not in gone]

    def _decided(
        self, pending: PendingShoot, snapshot: Snapshot, refusals: dict[SchedulingRequest, Refusal]
    ) -> Placed | Refused | None:
        """Decide on one shoot, counting its placement; None when it is not this scheduler's business.

        What was refused stays so for the rest of a round, as usage only grows in it: `refusals` remembers.
        """
        assert pending.stored is not None, "what is decided on has been read"
        if pending.request is None:
            filters = self._current.filters
            pending.shoot = pending_shoot(pending.stored)
            pending.request = request_of(pending.shoot, pending.stored.document() if filters else None, filters)
        assert pending.shoot is not None, "the request was made from it"
        if skipped_because(pending.shoot, self._scheduler_name):
            return None
        if pending.hosted:
            rest = Snapshot(snapshot.landscape.without(pending.hosted), dict(snapshot.usage))
            outcome = naming(pending.hosted, decide(pending.request, rest))
        else:
            outcome = refusals.get(pending.request) or decide(pending.request, snapshot)
        if isinstance(outcome, Refusal):
            if not pending.hosted:
                refusals[pending.request] = outcome
            return Refused(pending, outcome, len(snapshot.landscape.seeds))
        binding = binding_of(pending, outcome, snapshot.landscape)
        snapshot.place(outcome.seed)
        return Placed(pending, outcome, binding)

    async def _bind(self, placed: Sequence[Placed]) -> tuple[bool, list[PendingShoot]]:
        """Bind; answer whether every placement was made, and which shoots must be decided on again.

        Returns after the news that they lost against has come.
        """
        chunks = [placed[start : start + CALL_SIZE] for start in range(0, len(placed), CALL_SIZE)]
        sinces = self._asked_last(len(chunks))
        replies = await asyncio.gather(
            *(
                self._store.bind([each.binding for each in chunk], since)
                for chunk, since in zip(chunks, sinces, strict=True)
            )
        )
        all_made = True
        lost: list[PendingShoot] = []
        done: list[PendingShoot] = []
        outrun: set[tuple[str, int | None]] = set()
        for chunk, reply in zip(chunks, replies, strict=True):
            self._current.usage_told(reply.usage)
            for (pending, placement, _), outcome in zip(chunk, reply.outcomes, strict=True):
                self._say_bound(pending, placement, outcome)
                all_made = all_made and outcome == "bound"
                if outcome in _SETTLED:
                    done.append(pending)
                    continue
                lost.append(pending)
                if outcome == "changed":
                    pending.stored = None
                elif outcome == "circular":
                    pending.hosted |= {placement.seed}
                elif outcome != "full":
                    outrun.add((placement.seed, placement.gate))
        self._counters.answered(outcome for reply in replies for outcome in reply.outcomes)
        await self._queue.ack_many([pending.work for pending in done])
        await asyncio.gather(*(self._current.wait_for_seed(seed, gate, CATCH_UP_SECONDS) for seed, gate in outrun))
        return all_made, lost

    async def _park(self, refused: Sequence[Refused], seen: Gains) -> list[PendingShoot]:
        """Park; answer those for which something was gained meanwhile, after it has been seen."""
        chunks = [refused[start : start + CALL_SIZE] for start in range(0, len(refused), CALL_SIZE)]
        sinces = self._asked_last(len(chunks))
        replies = await asyncio.gather(
            *(
                self._store.park([parking_of(each, self._scheduler_name, seen) for each in chunk], since)
                for chunk, since in zip(chunks, sinces, strict=True)
            )
        )
        again: list[PendingShoot] = []
        done: list[PendingShoot] = []
        parked: list[tuple[PendingShoot, int]] = []
        gain = 0
        for chunk, reply in zip(chunks, replies, strict=True):
            self._current.usage_told(reply.usage)
            gain = max(gain, reply.usage.gains.objects)
            for each, answer in zip(chunk, reply.outcomes, strict=True):
                pending = each.pending
                self._say_refused(each, answer.outcome, answer.attempts)
                if answer.outcome == "again":
                    again.append(pending)
                elif answer.outcome == "parked":
                    parked.append((pending, answer.attempts))
                else:
                    done.append(pending)
        # First the timer, then the acknowledgement: a crash in between means one look too many, never one too few.
        await self._timers.set_many(
            (pending.work.message.subject, attempts, pending.span.traceparent) for pending, attempts in parked
        )
        await self._queue.ack_many([*(pending.work for pending, _attempts in parked), *(each.work for each in done)])
        if again:
            await self._current.wait_for_objects(gain, CATCH_UP_SECONDS)
        return again

    def _asked_last(self, calls: int) -> list[int | None]:
        """For each of some calls what usage to ask for: it is told once, by the last one."""
        return [*[None] * (calls - 1), self._current.usage_version][-calls:] if calls else []

    async def _come_back(self, left: Sequence[PendingShoot], *, failures: int | None) -> None:
        """Leave shoots queued with backoff: after `failures`, or one more than each has had."""
        if not left:
            return
        await self._timers.set_many(
            (
                pending.work.message.subject,
                pending.failures + 1 if failures is None else failures,
                pending.span.traceparent,
            )
            for pending in left
        )
        await self._finish(left, "error" if failures is None else "conflict")

    async def _finish(self, finished: Sequence[PendingShoot], outcome: str) -> None:
        if finished:
            self._counters.attempts.labels(outcome).inc(len(finished))
            await self._queue.ack_many([pending.work for pending in finished])
            for pending in finished:
                if pending.span is not tracing.NOT_TRACED:
                    pending.span.end(outcome=outcome)

    def _say_bound(self, pending: PendingShoot, placement: Placement, outcome: BindOutcome) -> None:
        if pending.span is not tracing.NOT_TRACED:
            pending.binding.end(outcome=outcome)
            if outcome in _SETTLED:
                pending.span.end(outcome=outcome, seed=placement.seed)
        assert pending.request is not None, "what is bound has been decided on"
        _log.info(
            "shoot.scheduled" if outcome == "bound" else "shoot.outrun",
            outcome=outcome,
            **self._teller.placement(pending.request, placement),
            **self._work_of(pending),
        )

    def _say_refused(self, refused: Refused, outcome: str, attempts: int) -> None:
        if outcome != "again" and refused.pending.span is not tracing.NOT_TRACED:
            refused.pending.span.end(outcome=outcome, rule=refused.refusal.rule)
        self._counters.attempts.labels(_RESULTS.get(outcome, "obsolete")).inc()
        if outcome == "parked":
            self._counters.refusals.labels(refused.refusal.rule).inc()
        assert refused.pending.request is not None, "what is refused has been decided on"
        _log.info(
            "shoot.refused",
            outcome=outcome,
            attempt=attempts,
            **self._teller.refusal(refused.pending.request, refused.refusal, refused.candidates),
            **self._work_of(refused.pending),
        )

    def _work_of(self, pending: PendingShoot) -> dict[str, Any]:
        return {
            "shoot": str(pending.key),
            "uid": pending.stored.uid if pending.stored else "",
            "deliveries": pending.work.deliveries,
            "queued_ms": round(pending.work.queued_ms),
            "duration_ms": round((self._clock.monotonic() - pending.taken_at) * 1000, 1),
            **tracing.fields(pending.span.traceparent),
        }


def _nothing() -> float:
    return 0.0
