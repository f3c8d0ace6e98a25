"""What a gardenlet says on the bus, each with its fencing number.

Statuses are gathered: what is reported of an object before the last report of it was sent goes with the next one, so
a burst of progress is few messages, and an outage of the bus loses nothing. They are sent in the order of their making.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import structlog

from gardenbus.common.errors import Unavailable
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, Message
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.conditions import merge_conditions
from gardenbus.common.resources.document import Document, encode
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects
from gardenbus.gardenlet.backend.port import Fence
from gardenbus.gardenlet.reconcilers.counters import REPORTS, REPORTS_DELAYED

_log = structlog.stdlib.get_logger()

_BATCH = 50
_PAUSE_SECONDS = 1.0
_LISTS_BY_TYPE = ("conditions", "constraints")


class _About(NamedTuple):
    key: ObjectKey
    uid: str


class _Pending(NamedTuple):
    patch: Document
    due: float
    trace: str = ""


class Reporter:
    """See the module. Without a fence (`fence` None) nothing is sent, and nothing may be reported."""

    def __init__(self, *, bus: Bus, subjects: Subjects, seed_name: str, clock: Clock) -> None:
        self._bus = bus
        self._subjects = subjects
        self._seed_name = seed_name
        self._clock = clock
        self._pending: dict[_About, _Pending] = {}
        self._news = asyncio.Event()
        self.fence: Fence | None = None
        self.sent = 0

    def stand_by(self) -> None:
        """Say nothing any more: another one speaks for the seed."""
        self.fence = None
        self._pending.clear()

    def status(self, key: ObjectKey, uid: str, patch: Document, *, within_seconds: float = 0.0) -> None:
        """Report a status patch, at the latest after `within_seconds`; it belongs to the trace of who reports it."""
        if self.fence is None:
            return
        due = self._clock.monotonic() + within_seconds
        trace = tracing.current()
        old = self._pending.get(_About(key, uid))
        if old is not None:
            patch, due, trace = merged(old.patch, patch), min(old.due, due), trace or old.trace
        self._pending[_About(key, uid)] = _Pending(patch, due, trace)
        self._news.set()

    async def apply(self, key: ObjectKey, manifest: Document) -> None:
        """Report a manifest that is this gardenlet's own. Raises Unavailable."""
        await self._publish(key, encode(manifest), {Header.VERB: "apply"})

    async def delete(self, key: ObjectKey) -> None:
        """Have a Seed deleted whose ManagedSeed is being deleted. Raises Unavailable."""
        await self._publish(key, b"{}", {Header.VERB: "delete"})

    async def ask(self, key: ObjectKey, uid: str) -> None:
        """Ask to be told of an object again, or that it is gone. Raises Unavailable."""
        await self._publish(key, b"{}", {Header.QUESTION: "exists", Header.UID: uid})

    async def gone(self, key: ObjectKey, *, tombstone: int) -> None:
        """Say that nothing of a shoot is left, as the tombstone of that sequence demanded. Raises Unavailable."""
        await self._publish(key, b"{}", {Header.QUESTION: "gone", Header.SEQUENCE: str(tombstone)})

    async def event(self, key: ObjectKey, uid: str, *, kind: str, reason: str, message: str) -> None:
        """Report an Event about an object. Raises Unavailable."""
        body = encode({"type": kind, "reason": reason, "message": message})
        await self._publish(key, body, {Header.VERB: "event", Header.UID: uid, tracing.TRACEPARENT: tracing.current()})

    async def run(self) -> None:
        """Send what is due, for ever."""
        while True:
            wait = await self.flush()
            self._news.clear()
            if any(pending.due <= self._clock.monotonic() for pending in self._pending.values()):
                continue
            try:
                async with asyncio.timeout(wait):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def flush(self, *, everything: bool = False) -> float | None:
        """Send what is due (or everything); answer the seconds until more is, None when nothing is left."""
        now = self._clock.monotonic()
        due = [about for about, pending in self._pending.items() if everything or pending.due <= now]
        for start in range(0, len(due), _BATCH):
            await self._send(due[start : start + _BATCH])
        if not self._pending:
            return None
        return max(0.0, min(pending.due for pending in self._pending.values()) - self._clock.monotonic())

    async def _send(self, abouts: Sequence[_About]) -> None:
        batch = {about: self._pending.pop(about) for about in abouts if about in self._pending}
        results = await asyncio.gather(
            *(
                self._publish(
                    about.key,
                    encode({"status": pending.patch}),
                    {Header.UID: about.uid, tracing.TRACEPARENT: pending.trace},
                )
                for about, pending in batch.items()
            ),
            return_exceptions=True,
        )
        failed = False
        for (about, pending), result in zip(batch.items(), results, strict=True):
            if isinstance(result, Unavailable):
                failed = True
                self._put_back(about, pending)
            elif isinstance(result, BaseException):
                raise result
        if failed:
            REPORTS_DELAYED.inc()
            _log.warning("report.delayed", seed=self._seed_name, waiting=len(self._pending))
            await self._clock.sleep(_PAUSE_SECONDS)

    def _put_back(self, about: _About, pending: _Pending) -> None:
        if self.fence is None:
            return
        newer = self._pending.get(about)
        patch = merged(pending.patch, newer.patch) if newer else pending.patch
        trace = newer.trace if newer and newer.trace else pending.trace
        self._pending[about] = _Pending(patch, pending.due, trace)

    async def _publish(self, key: ObjectKey, body: bytes, headers: dict[str, str]) -> None:
        if self.fence is None:
            return
        headers = {name: value for name, value in headers.items() if value} | {Header.FENCE: self.fence.text}
        await self._bus.publish(Message(self._subjects.report(self._seed_name, key), body, headers))
        self.sent += 1
        REPORTS.inc()


def merged(old: Document, new: Document) -> Document:
    """Two status patches as one: newer fields win, conditions and constraints by their type."""
    result = old | new
    for field in _LISTS_BY_TYPE:
        if old.get(field) and new.get(field) is not None:
            result[field] = merge_conditions(old[field], *new[field])
    return result
