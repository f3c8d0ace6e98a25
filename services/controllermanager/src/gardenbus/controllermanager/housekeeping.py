"""Removes Events that are not about Shoots earlier than the stream does by itself.

Off unless the configuration has a section `event`, as in Gardener (`pkg/controllermanager/controller/event`). No
query returns what is older than an hour, so each replica notes how far it had come: after its start an Event
lives for its time once more, at most. Any number of replicas may remove the same.
"""

from collections.abc import Iterable

import structlog

from gardenbus.common.api.keys import Subjects
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.controller.wait import forever
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.clock import Clock
from gardenbus.common.ports.store import Store
from gardenbus.controllermanager import metrics
from gardenbus.controllermanager.domain.event_expiry import Checkpoint, expired

STREAM = "EVENTS"
EXEMPT = "shoot"
CHECKS = 12
"""Checks in the life of an Event: it ends so exactly."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class EventExpiry:
    """Removes old Events until it is cancelled."""

    def __init__(self, store: Store, bus: Bus, subjects: Subjects, clock: Clock, *, ttl_seconds: float) -> None:
        self._store = store
        self._bus = bus
        self._subjects = subjects
        self._clock = clock
        self._ttl_seconds = ttl_seconds
        self._created = 0
        self._checkpoints: tuple[Checkpoint, ...] = ()

    async def run(self) -> None:
        """Check for ever."""
        await forever(
            self.check,
            period_seconds=self._ttl_seconds / CHECKS,
            sleep=self._clock.sleep,
            interrupted=lambda error: log.warning("events.kept", reason=error.message),
        )

    async def check(self) -> None:
        """Remove what is too old by now, and note how far the stream has come. Raises Transient."""
        stream = self._subjects.stream(STREAM)
        position = await self._bus.position(stream)
        if position.created != self._created:  # another stream: its sequences are others
            self._created, self._checkpoints = position.created, ()
        now = self._clock.monotonic()
        old = expired((*self._checkpoints, Checkpoint(now, position.sequence)), now, self._ttl_seconds)
        if old.upto_sequence:
            for kind in await self._kinds():
                await self._bus.purge(stream, self._subjects.events_of(kind), upto_sequence=old.upto_sequence)
            metrics.EVENTS_EXPIRED_UPTO.set(old.upto_sequence)
        self._checkpoints = tuple(old.checkpoints)

    async def _kinds(self) -> Iterable[str]:
        """All kinds that Events may be about, but for one."""
        census = await self._store.census()
        stored = {name.removeprefix("objects.") for name in census if name.startswith("objects.")}
        return sorted((stored | set(KINDS)) - {EXEMPT})
