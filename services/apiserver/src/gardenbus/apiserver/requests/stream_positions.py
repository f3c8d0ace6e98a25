"""Positions of streams, for agents outside the services, which may not read JetStream's API."""

from typing import Any

from gardenbus.apiserver.call import Call
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import Bus

_STATED = ("LEASES", "BINDINGS", "OBJECTS", "REPORTS")


class StreamPositions:
    """Handles `position.<stream>`."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects

    async def on_position(self, call: Call) -> Any:
        """`{"created", "sequence", "now"}`: incarnation (digits: ns since the epoch), last sequence, server's clock.

        Raises NotFound for another stream than those that agents depend on.
        """
        stream, stated = call.tail, [*map(self._subjects.stream, _STATED)]
        if stream not in stated:
            raise NotFound(f"position.{stream}: there are {', '.join(stated)}")
        position = await self._bus.position(stream)
        now = (await self._bus.server_now(stream)).isoformat()
        return {"created": str(position.created), "sequence": position.sequence, "now": now}
