"""Positions of streams, and a gardenlet's Seed on one, for agents outside the services: they may not call JetStream."""

from typing import Any

from gardenbus.apiserver.call import Call
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.identity.principals import principal_of
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.common.ports.bus import Bus

_decode = json_decoder(dict[str, Any])

_STATED = ("LEASES", "BINDINGS", "OBJECTS", "REPORTS")


class StreamPositions:
    """Handles `position.<stream>` and `announced`."""

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

    async def on_announced(self, call: Call) -> Any:
        """`{"isAnnounced", "seed"}`: the requesting gardenlet's Seed as BINDINGS has it; null when it was deleted.

        A direct get of the stream costs the server a message of any size for a request of some bytes: none is granted
        outside the services. Raises BadRequest for somebody else.
        """
        requester = principal_of(call.user)
        if requester.role != "gardenlet":
            raise BadRequest("announced: a gardenlet requests it, of its own Seed")
        subject = self._subjects.view(requester.name, ObjectKey("seed", "", requester.name))
        last = await self._bus.last(self._subjects.stream("BINDINGS"), subject)
        if last is None or last.marker is not None or Header.TOO_LARGE in last.headers:
            return {"isAnnounced": False, "seed": None}
        is_deleted = last.headers.get(Header.VERB) == "deleted"
        return {"isAnnounced": True, "seed": None if is_deleted else _decode(last.body)}
