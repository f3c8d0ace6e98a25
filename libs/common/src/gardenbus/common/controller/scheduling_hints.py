"""Hints of new shoots, between the apiserver that created them and the schedulers: `common.api.scheduling_hints`.

create ──► store ──┬─► outbox ──► relay ──► QUEUES ──► scheduler       what must happen
                   └─► hint ─────────────────────────► scheduler       the same earlier, if it arrives

With the page that the relay holds, an order that comes alone takes 14 % less processor time (decision 31); the switch
is `hints` in GARDENBUS_DISABLED_SHORTCUTS.

Nothing depends on a hint. While many wait, further ones are dropped, but for those of a project with fewer of them,
which take the place of the last one of the project that has most: it does not wait behind another's thousands in the
queue. One that cannot be used now is not kept.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import structlog

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.scheduling_requirements import GATED
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


class FairHints:
    """At most `SHOOTS_MAX` hinted shoots, of which no project keeps others out."""

    def __init__(self) -> None:
        self._shoots: dict[tuple[str, str], HintedShoot] = {}
        self._of: Counter[str] = Counter()

    def __len__(self) -> int:
        """Shoots that are kept."""
        return len(self._shoots)

    def add(self, hinted: HintedShoot) -> None:
        """Keep a shoot if there is room, or a project that has more to give way."""
        key = (hinted.namespace, hinted.name)
        if key not in self._shoots:
            if len(self._shoots) >= SHOOTS_MAX and not self._made_room(hinted.namespace):
                return
            self._of[hinted.namespace] += 1
        self._shoots[key] = hinted

    def take(self) -> list[HintedShoot]:
        """Hand over what is kept, and begin anew."""
        shoots, self._shoots, self._of = list(self._shoots.values()), {}, Counter()
        return shoots

    def _made_room(self, namespace: str) -> bool:
        if self._of[namespace] + 1 >= self._of.total():  # the only one there is
            return False
        most, count = max(self._of.items(), key=lambda each: (each[1], each[0]))
        if count <= self._of[namespace] + 1:
            return False
        del self._shoots[next(key for key in reversed(self._shoots) if key[0] == most)]
        self._of[most] -= 1
        return True


class HintSender:
    """Names new shoots to their schedulers, those of one moment in one message."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects
        self._shoots: dict[str, FairHints] = {}

    def created(self, stored: StoredObject) -> None:
        """Have a hint sent if an object that was just created is a shoot that needs a seed."""
        if stored.key.kind != "shoot" or stored.parts.seed_name or GATED in stored.parts.meta:
            return
        scheduler_name = _decode(b"{%b}" % stored.parts.spec).scheduler_name or DEFAULT_SCHEDULER
        if not self._shoots:
            asyncio.get_running_loop().call_soon(self._send)
        shoots = self._shoots.setdefault(scheduler_name, FairHints())
        shoots.add(HintedShoot(stored.key.namespace, stored.key.name, tracing.current()))

    def _send(self) -> None:
        shoots, self._shoots = self._shoots, {}
        for scheduler_name, created in shoots.items():
            self._bus.notify(self._subjects.scheduling_hint(scheduler_name), encode_hint(created.take()))


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
        self._hinted = FairHints()
        self._came = asyncio.Event()

    async def subscribe(self, bus: Bus) -> None:
        """Take a share of the hints from now on. Raises Unavailable."""
        subject = self._subjects.scheduling_hint(self._scheduler_name)
        await bus.subscribe(subject, f"scheduling-{self._scheduler_name}", self.take)

    def take(self, body: bytes) -> None:
        """Keep the shoots of a hint, if there is room."""
        for hinted in decode_hint(body):
            self._hinted.add(hinted)
            self._came.set()

    async def run(self) -> None:
        """Have them bound, for ever."""
        while True:
            await self._came.wait()
            await self.bind()

    async def bind(self) -> None:
        """Have those bound that have come."""
        self._came.clear()
        hinted = self._hinted.take()
        try:
            await self._bind_early([self._ahead(each) for each in hinted])
        except GardenbusError as error:
            _log.info("hint.dropped", shoots=len(hinted), reason=error.message)
        except Exception:  # noqa: BLE001  the loop that must go on
            _log.exception("hint.failed", shoots=len(hinted))

    def _ahead(self, hinted: HintedShoot) -> QueueMessage:
        subject = self._subjects.scheduling(self._scheduler_name, ObjectKey("shoot", hinted.namespace, hinted.name))
        headers = {tracing.TRACEPARENT: hinted.trace} if hinted.trace else {}
        return NotYetQueued(StreamMessage(subject, b"", headers, 0, self._clock.now()))
