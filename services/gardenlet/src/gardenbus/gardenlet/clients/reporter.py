"""Reporter of one seed, with its fencing token in every report.

Status patches of an object are coalesced while one is pending, so a burst of progress is few messages, and an outage
of the bus loses nothing. Objects are reported in the order of their first pending patch. Events go before patches; an
outage of the bus may lose them.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import structlog

from gardenbus.agent.reporter import Reporter
from gardenbus.common.api.conditions import merge_conditions
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.recovery import InventoryItem
from gardenbus.gardenlet.backend.port import FencingToken
from gardenbus.gardenlet.metrics import REPORTS, REPORTS_DELAYED

_log = structlog.stdlib.get_logger()

_BATCH = 50
_MOST_EVENTS = 1000
"""Events that wait to be sent; the oldest go when there are more."""

_PAUSE_SECONDS = 1.0
_LISTS_BY_TYPE = ("conditions", "constraints")


class _About(NamedTuple):
    key: ObjectKey
    uid: str


class _Pending(NamedTuple):
    patch: Document
    due: float
    trace: str = ""


class _Event(NamedTuple):
    about: _About
    body: Document
    trace: str


class SeedReporter(Reporter):
    """See the module. Without a fencing token nothing is accepted or sent."""

    def __init__(self, *, bus: Bus, subjects: Subjects, seed_name: str, clock: Clock) -> None:
        super().__init__(bus=bus, subjects=subjects, token=seed_name, sent=REPORTS)
        self._seed_name = seed_name
        self._clock = clock
        self._pending: dict[_About, _Pending] = {}
        self._events: deque[_Event] = deque(maxlen=_MOST_EVENTS)
        self._enqueued = asyncio.Event()
        self.fencing_token: FencingToken | None = None

    def stand_by(self) -> None:
        """Drop pending reports and the fencing token: another holder reports from now on."""
        self.fencing_token = None
        self._pending.clear()
        self._events.clear()

    def enqueue_status(self, key: ObjectKey, uid: str, patch: Document, *, within_seconds: float = 0.0) -> None:
        """Report a status patch within `within_seconds`, as part of the current trace."""
        if self.fencing_token is None:
            return
        due = self._clock.monotonic() + within_seconds
        trace = tracing.current()
        old = self._pending.get(_About(key, uid))
        if old is not None:
            patch, due, trace = merged(old.patch, patch), min(old.due, due), trace or old.trace
        self._pending[_About(key, uid)] = _Pending(patch, due, trace)
        self._enqueued.set()

    async def confirm_gone(self, key: ObjectKey, *, tombstone: int) -> None:
        """Confirm that a shoot's tombstone of that sequence was handled. Raises Unavailable."""
        await self.publish(key, {}, {Header.QUERY: "gone", Header.SEQUENCE: str(tombstone)})

    async def inventory(self, recovery_id: str, items: Sequence[InventoryItem]) -> None:
        """Report all that runs on the seed, for a recovery of the store. Raises Unavailable."""
        listed = [
            {"kind": key.kind, "namespace": key.namespace, "name": key.name, "uid": uid} for key, uid in sorted(items)
        ]
        headers = {Header.QUERY: "inventory", Header.RECOVERY: recovery_id}
        await self.publish(ObjectKey("seed", "", self._seed_name), {"items": listed}, headers)

    def enqueue_event(self, key: ObjectKey, uid: str, *, kind: str, reason: str, message: str) -> None:
        """Have an Event about an object recorded."""
        if self.fencing_token is not None:
            body = {"type": kind, "reason": reason, "message": message}
            self._events.append(_Event(_About(key, uid), body, tracing.current()))
            self._enqueued.set()

    async def run(self) -> None:
        """Send due reports until cancelled."""
        while True:
            wait = await self.flush()
            self._enqueued.clear()
            if self._events or any(pending.due <= self._clock.monotonic() for pending in self._pending.values()):
                continue
            try:
                async with asyncio.timeout(wait):
                    await self._enqueued.wait()
            except TimeoutError:
                continue

    async def flush(self, *, everything: bool = False) -> float | None:
        """Send Events and due reports (or all); returns the seconds until the next report is due, None without one."""
        await self._send_events()
        now = self._clock.monotonic()
        due = [about for about, pending in self._pending.items() if everything or pending.due <= now]
        for start in range(0, len(due), _BATCH):
            await self._send(due[start : start + _BATCH])
        if not self._pending:
            return None
        return max(0.0, min(pending.due for pending in self._pending.values()) - self._clock.monotonic())

    async def _send_events(self) -> None:
        while self._events:
            batch = [self._events.popleft() for _ in range(min(_BATCH, len(self._events)))]
            await asyncio.gather(*map(self._send_event, batch))

    async def _send_event(self, event: _Event) -> None:
        headers = {Header.VERB: "event", Header.UID: event.about.uid, tracing.TRACEPARENT: event.trace}
        try:
            await self.publish(event.about.key, event.body, headers)
        except Unavailable as error:
            _log.info("event.lost", object=str(event.about.key), reason=error.message)
            self._events.clear()  # these would take as long

    async def _send(self, abouts: Sequence[_About]) -> None:
        batch = {about: self._pending.pop(about) for about in abouts if about in self._pending}
        results = await asyncio.gather(
            *(
                self.status(about.key, about.uid, pending.patch, trace=pending.trace)
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
        if self.fencing_token is None:
            return
        newer = self._pending.get(about)
        patch = merged(pending.patch, newer.patch) if newer else pending.patch
        trace = newer.trace if newer and newer.trace else pending.trace
        self._pending[about] = _Pending(patch, pending.due, trace)

    async def publish(self, key: ObjectKey, body: Document, headers: Mapping[str, str]) -> None:
        """Publish a report with the fencing token; without one it is dropped."""
        if self.fencing_token is not None:
            await super().publish(key, body, {**headers, Header.FENCING_TOKEN: self.fencing_token.text})


def merged(old: Document, new: Document) -> Document:
    """Merge two status patches: newer fields win, conditions and constraints are merged by type."""
    result = old | new
    for field in _LISTS_BY_TYPE:
        if old.get(field) and new.get(field) is not None:
            result[field] = merge_conditions(old[field], *new[field])
    return result
