"""Shoots that wait for a seed: who they are, why, when each is tried again, and trying one of them now.

`waiting[.<schedulerName>]` answers `{"items": [{"namespace", "name", "schedulerName", "message", "since", "attempts",
"nextAttempt", "queued"}], "total", "undecided"}`: those refused, the longest waiting first; `total` counts all of them,
`undecided` those that nobody has refused yet. `queued` tells that a scheduler is asked to look at it already.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from gardenbus.common.errors import BadRequest, Forbidden, NotFound
from gardenbus.common.machinery.timers import Timers
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.store import Store, WaitingShoot
from gardenbus.common.resources.document import section
from gardenbus.common.resources.keys import ObjectKey, Subjects
from gardenbus.common.resources.shoots import DEFAULT_SCHEDULER

LIMIT = 1_000
"""Shoots in one answer, at the most."""

LOOKS = 4 * LIMIT
"""Shoots that are sorted by how long they wait: of more, those refused on the oldest gain."""

QUESTIONS = 32
"""Timers that are asked for at once."""


class WaitingQuery(msgspec.Struct, frozen=True, rename="camel"):
    """The body of `waiting`: all of it narrows the answer; `classes` adds what the shoots of each class ask for."""

    limit: int = LIMIT
    namespace: str = ""
    name: str = ""
    classes: bool = False


class WaitingShoots:
    """Answers `waiting` and `retry`."""

    def __init__(self, store: Store, bus: Bus, subjects: Subjects) -> None:
        self._store = store
        self._bus = bus
        self._subjects = subjects
        self._timers = Timers(bus, subjects)

    async def listed(self, scheduler_name: str, body: bytes) -> Any:
        """Who waits for a scheduler, or for any with "". Raises BadRequest, Unavailable."""
        query = _query(body)
        found = await self._store.waiting_shoots(scheduler_name or None, limit=LOOKS)
        chosen = [
            shoot
            for shoot in sorted(found, key=lambda shoot: shoot.since)
            if query.namespace in ("", shoot.key.namespace) and query.name in ("", shoot.key.name)
        ][: min(query.limit, LIMIT)]
        asked = asyncio.Semaphore(QUESTIONS)
        result: dict[str, Any] = {
            "items": await asyncio.gather(*(self._described(shoot, asked) for shoot in chosen)),
            **await self._counts(scheduler_name, len(found)),
        }
        if query.classes:
            result["classes"] = await self._classes(scheduler_name or DEFAULT_SCHEDULER)
        return result

    async def retry(self, tail: str) -> Any:
        """Ask the scheduler of the shoot `shoot.<namespace>.<name>` to look at it now; answers what waited so far.

        Raises NotFound, Forbidden when it has a seed or is being deleted, BadRequest, Unavailable.
        """
        kind, _, rest = tail.partition(".")
        namespace, _, name = rest.partition(".")
        if kind not in ("shoot", "shoots") or not name:
            raise BadRequest(f"retry.{tail}: a shoot is named as shoot.<namespace>.<name>")
        key = ObjectKey("shoot", namespace, name)
        stored = await self._store.get(key)
        if stored is None:
            raise NotFound(f"{key} is not there")
        if stored.is_deleting:
            raise Forbidden(f"{key} is being deleted: it gets no seed any more")
        if stored.parts.seed_name:
            raise Forbidden(f"{key} has a seed, {stored.parts.seed_name}: there is nothing to schedule")
        scheduler_name = str(section(stored.document(), "spec").get("schedulerName") or DEFAULT_SCHEDULER)
        work = self._subjects.scheduling(scheduler_name, key)
        before = await self._next_attempt(work)
        await self._bus.publish(self._timers.enqueue_message(work))
        return {"shoot": f"{namespace}/{name}", "schedulerName": scheduler_name, "nextAttemptWas": before}

    async def _described(self, shoot: WaitingShoot, asked: asyncio.Semaphore) -> dict[str, Any]:
        work = self._subjects.scheduling(shoot.scheduler_name, shoot.key)
        async with asked:
            next_attempt = await self._next_attempt(work)
            queued = next_attempt is None and await self._bus.last(self._subjects.stream("QUEUES"), work) is not None
        return {
            "namespace": shoot.key.namespace,
            "name": shoot.key.name,
            "schedulerName": shoot.scheduler_name,
            "message": shoot.message,
            "since": shoot.since,
            "attempts": shoot.attempts,
            "nextAttempt": next_attempt,
            "queued": queued,
        }

    async def _next_attempt(self, work: str) -> str | None:
        """When the timer of this work is due (RFC 3339)."""
        timer = await self._bus.last(self._subjects.stream("QUEUES"), self._subjects.later(work))
        at, _, due = (timer.headers.get("Nats-Schedule", "") if timer else "").partition(" ")
        return due if at == "@at" else None

    async def _counts(self, scheduler_name: str, listed: int) -> dict[str, int]:
        if scheduler_name:
            waiting = sum(each.waiting for each in await self._store.waiting(scheduler_name))
            pending = await self._store.pending(scheduler_name)
        else:
            census = await self._store.census()
            waiting, pending = census["shoots.waiting"], census["shoots.pending"]
        total = max(waiting, listed)
        return {"total": total, "undecided": max(0, pending - total)}

    async def _classes(self, scheduler_name: str) -> Sequence[dict[str, Any]]:
        return [
            {
                "class": each.waiting_class,
                "asksFor": msgspec.Raw(each.descriptor),
                "waiting": each.waiting,
                "unseen": each.unseen,
            }
            for each in await self._store.waiting(scheduler_name)
        ]


def _query(body: bytes) -> WaitingQuery:
    if not body.strip():
        return WaitingQuery()
    try:
        query = msgspec.json.decode(body, type=WaitingQuery)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequest(f"the body of waiting is {{limit, namespace, name, classes}}: {error}") from error
    if query.limit < 1:
        raise BadRequest("limit: must be at least 1")
    return query
