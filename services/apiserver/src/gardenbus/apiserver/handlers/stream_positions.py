"""Positions of streams, for agents outside the services, which may not read JetStream's API."""

from typing import Any

from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.bus import Bus

_STATED = ("LEASES", "BINDINGS", "OBJECTS", "REPORTS")


async def stream_position(bus: Bus, subjects: Subjects, stream: str) -> Any:
    """`{"created", "sequence", "now"}`: incarnation (digits: ns since the epoch), last sequence, the server's clock.

    Raises NotFound for another stream than those that agents depend on.
    """
    if stream not in map(subjects.stream, _STATED):
        raise NotFound(f"position.{stream}: there are {', '.join(map(subjects.stream, _STATED))}")
    position = await bus.position(stream)
    now = (await bus.server_now(stream)).isoformat()
    return {"created": str(position.created), "sequence": position.sequence, "now": now}
