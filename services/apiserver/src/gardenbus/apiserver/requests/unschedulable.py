"""Unschedulable shoots: reasons and next attempts, and an immediate retry of one.

The result of `waiting[.<schedulerName>]` is `{"items": [{"namespace", "name", "schedulerName", "message", "since",
"attempts", "nextAttempt", "queued"}], "total", "undecided"}`, the longest unschedulable first; `total` counts all of
them, `undecided` the pending shoots that no scheduler has decided on. `queued`: the scheduler's queue has it already.
With `grouped` it has, instead of items, `"reasons": [{"message", "schedulerName", "shoots": [[namespace, name, since],
…]}]`: ten times as many shoots, without their timers, for whoever has to know all of them soon.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from gardenbus.apiserver.call import Call
from gardenbus.apiserver.domain.query_bodies import check_limit
from gardenbus.common.api.document import section
from gardenbus.common.api.garden.scheduling_order import band_of
from gardenbus.common.api.garden.scheduling_requirements import resolved_of
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.api.request_bodies import WaitingShootsRequest
from gardenbus.common.controller.timers import Timers
from gardenbus.common.errors import BadRequest, Forbidden, NotFound
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.store import Store, UnschedulableStatus

LIMIT = 1_000
"""Most shoots in one response."""

SCAN_LIMIT = 4 * LIMIT
"""Shoots that are sorted by how long they have been unschedulable; of more, those with the oldest cluster event."""

GROUPED_LIMIT = 10 * LIMIT
"""Most shoots in one response that is grouped by reasons."""

TIMER_QUERIES = 32
"""Concurrent queries of timers."""


class UnschedulableShoots:
    """Handles `waiting` and `retry`."""

    def __init__(self, store: Store, bus: Bus, subjects: Subjects) -> None:
        self._store = store
        self._bus = bus
        self._subjects = subjects
        self._timers = Timers(bus, subjects)

    async def on_waiting(self, call: Call) -> Any:
        """Unschedulable shoots of a scheduler, or of all with "". Raises BadRequest, Unavailable."""
        query, scheduler_name = call.read(WaitingShootsRequest), call.tail
        check_limit(query.limit)
        scanned = GROUPED_LIMIT if query.grouped else SCAN_LIMIT
        found = await self._store.unschedulable_shoots(scheduler_name or None, limit=scanned)
        selected = [
            shoot
            for shoot in sorted(found, key=lambda shoot: shoot.since)
            if query.namespace in ("", shoot.key.namespace) and query.name in ("", shoot.key.name)
        ]
        result: dict[str, Any] = await self._counts(scheduler_name, len(found))
        if query.grouped:
            result["reasons"] = _by_reason(selected)
        else:
            slots, listed = asyncio.Semaphore(TIMER_QUERIES), selected[: min(query.limit, LIMIT)]
            result["items"] = await asyncio.gather(*(self._described(shoot, slots) for shoot in listed))
        if query.classes:
            result["classes"] = await self._classes(scheduler_name or DEFAULT_SCHEDULER)
        return result

    async def on_retry(self, call: Call) -> Any:
        """Have the scheduler retry the shoot `shoot.<namespace>.<name>` now; returns its next attempt so far.

        Raises NotFound, Forbidden when it has a seed or is being deleted, BadRequest, Unavailable.
        """
        kind, _, rest = call.tail.partition(".")
        namespace, _, name = rest.partition(".")
        if kind not in ("shoot", "shoots") or not name:
            raise BadRequest(f"retry.{call.tail}: a shoot is named as shoot.<namespace>.<name>")
        key = ObjectKey("shoot", namespace, name)
        stored = await self._store.get(key)
        if stored is None:
            raise NotFound(f"{key} not found")
        if stored.is_deleting:
            raise Forbidden(f"{key} is being deleted: it gets no seed any more")
        if stored.parts.seed_name:
            raise Forbidden(f"{key} has a seed, {stored.parts.seed_name}: there is nothing to schedule")
        scheduler_name = str(section(stored.document(), "spec").get("schedulerName") or DEFAULT_SCHEDULER)
        band = band_of(resolved_of(stored.document()).priority)
        subject = self._subjects.scheduling(scheduler_name, key, band)
        before = await self._timers.due(subject)
        await self._bus.publish(self._timers.enqueue_message(subject))
        return {"shoot": f"{namespace}/{name}", "schedulerName": scheduler_name, "nextAttemptWas": before}

    async def _described(self, shoot: UnschedulableStatus, slots: asyncio.Semaphore) -> dict[str, Any]:
        subject = self._subjects.scheduling(shoot.scheduler_name, shoot.key, shoot.band)
        async with slots:
            next_attempt = await self._timers.next_attempt(subject)
        return {
            "namespace": shoot.key.namespace,
            "name": shoot.key.name,
            "schedulerName": shoot.scheduler_name,
            "message": shoot.message,
            "since": shoot.since,
            "attempts": shoot.attempts,
            "nextAttempt": next_attempt.due_at,
            "queued": next_attempt.is_queued,
        }

    async def _counts(self, scheduler_name: str, listed: int) -> dict[str, int]:
        if scheduler_name:
            classes = await self._store.unschedulable_classes(scheduler_name, with_descriptors=False)
            waiting = sum(each.count for each in classes)
            pending = await self._store.pending(scheduler_name)
        else:
            census = await self._store.census()
            waiting, pending = census["shoots.waiting"], census["shoots.pending"]
        total = max(waiting, listed)
        return {"total": total, "undecided": max(0, pending - total)}

    async def _classes(self, scheduler_name: str) -> Sequence[dict[str, Any]]:
        return [
            {
                "class": each.equivalence_class,
                "asksFor": msgspec.Raw(each.descriptor),
                "waiting": each.count,
                "unseen": each.unseen,
            }
            for each in await self._store.unschedulable_classes(scheduler_name)
        ]


def _by_reason(shoots: Sequence[UnschedulableStatus]) -> list[dict[str, Any]]:
    reasons: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for shoot in shoots:
        named = (shoot.key.namespace, shoot.key.name, shoot.since)
        reasons.setdefault((shoot.message, shoot.scheduler_name), []).append(named)
    return [
        {"message": message, "schedulerName": scheduler, "shoots": named}
        for (message, scheduler), named in reasons.items()
    ]
