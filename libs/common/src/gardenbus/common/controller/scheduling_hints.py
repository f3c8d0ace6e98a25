"""Hints of new shoots, between the apiserver that created them and the schedulers: `common.api.scheduling_hints`.

create ──► store ──┬─► outbox ──► relay ──► QUEUES ──► scheduler       what must happen
                   └─► hint ─────────────────────────► scheduler       the same earlier, if it arrives

Nothing depends on a hint. While many wait, further ones are dropped; one that cannot be used now is not kept.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import structlog

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.api.scheduling_hints import SHOOTS_MAX, HintedShoot, decode_hint, encode_hint
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Bus, QueueMessage, StreamMessage
from gardenbus.common.ports.clock import Clock

_log = structlog.stdlib.get_logger()

BindEarly = Callable[[Sequence[QueueMessage]], Awaitable[None]]
"""Binds what it can of the shoots whose messages these would be. May raise."""


class _SchedulerOfShoot(msgspec.Struct, rename="camel"):
    scheduler_name: str | None = None


_decode = json_decoder(_SchedulerOfShoot)


class HintSender:
    """Names new shoots to their schedulers, those of one moment in one message."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects
        self._shoots: dict[str, list[HintedShoot]] = {}

    def created(self, stored: StoredObject) -> None:
        """Have a hint sent if an object that was just created is a shoot that needs a seed."""
        if stored.key.kind != "shoot" or stored.parts.seed_name:
            return
        scheduler_name = _decode(b"{%b}" % stored.parts.spec).scheduler_name or DEFAULT_SCHEDULER
        if not self._shoots:
            asyncio.get_running_loop().call_soon(self._send)
        shoots = self._shoots.setdefault(scheduler_name, [])
        if len(shoots) < SHOOTS_MAX:  # a scheduler that gets more has enough to do: the rest comes by its queue
            shoots.append(HintedShoot(stored.key.namespace, stored.key.name, tracing.current()))

    def _send(self) -> None:
        shoots, self._shoots = self._shoots, {}
        for scheduler_name, created in shoots.items():
            self._bus.notify(self._subjects.scheduling_hint(scheduler_name), encode_hint(created))


class NotYetQueued:
    """The message that a hint is ahead of: never delivered, so there is nothing to acknowledge."""

    deliveries = 0
    queued_ms = 0.0
    is_held_over = False

    def __init__(self, message: StreamMessage) -> None:
        self.message = message

    async def ack(self) -> None:
        """Do nothing."""

    async def release(self) -> None:
        """Do nothing."""

    async def in_progress(self) -> None:
        """Do nothing."""


class HintReceiver:
    """Collects the hints to one scheduler name and has their shoots bound."""

    def __init__(self, bind_early: BindEarly, subjects: Subjects, clock: Clock, scheduler_name: str) -> None:
        self._bind_early = bind_early
        self._subjects = subjects
        self._clock = clock
        self._scheduler_name = scheduler_name
        self._hinted: dict[tuple[str, str], HintedShoot] = {}
        self._came = asyncio.Event()

    async def subscribe(self, bus: Bus) -> None:
        """Take a share of the hints from now on. Raises Unavailable."""
        subject = self._subjects.scheduling_hint(self._scheduler_name)
        await bus.subscribe(subject, f"scheduling-{self._scheduler_name}", self.take)

    def take(self, body: bytes) -> None:
        """Keep the shoots of a hint, if there is room."""
        for hinted in decode_hint(body):
            if len(self._hinted) < SHOOTS_MAX:
                self._hinted[hinted.namespace, hinted.name] = hinted
                self._came.set()

    async def run(self) -> None:
        """Have them bound, for ever."""
        while True:
            await self._came.wait()
            await self.bind()

    async def bind(self) -> None:
        """Have those bound that have come."""
        self._came.clear()
        hinted, self._hinted = self._hinted, {}
        try:
            await self._bind_early([self._ahead(each) for each in hinted.values()])
        except GardenbusError as error:
            _log.info("hint.dropped", shoots=len(hinted), reason=error.message)
        except Exception:  # noqa: BLE001  the loop that must go on
            _log.exception("hint.failed", shoots=len(hinted))

    def _ahead(self, hinted: HintedShoot) -> QueueMessage:
        subject = self._subjects.scheduling(self._scheduler_name, ObjectKey("shoot", hinted.namespace, hinted.name))
        headers = {tracing.TRACEPARENT: hinted.trace} if hinted.trace else {}
        return NotYetQueued(StreamMessage(subject, b"", headers, 0, self._clock.now()))
