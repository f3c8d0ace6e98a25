"""Requests for the steps of a seed's shoots, to the extension that serves them on the bus."""

from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Bus


class ExtensionRequests:
    """Sends requests as a seed's gardenlet. Implements `backend.port.Extension`."""

    def __init__(self, bus: Bus, subjects: Subjects, seed: str) -> None:
        self._bus = bus
        self._subjects = subjects
        self._seed = seed

    async def request(self, step: str, body: bytes, *, timeout_seconds: float) -> bytes:
        """The response. Raises Unavailable, which names the subject, without one in time."""
        return await self._bus.request(
            self._subjects.extension(self._seed, step), body, timeout_seconds=timeout_seconds
        )
