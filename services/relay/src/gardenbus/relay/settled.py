"""Request by which somebody waits until all that was stored before it has been announced.

Any replica responds: entries of the outbox are removed once they are published. Those who wait at the same time share
one look at Redis.
"""

from collections.abc import Awaitable, Callable

from gardenbus.common.api.responses import failure, success
from gardenbus.common.controller.shared_query import SharedQuery
from gardenbus.common.errors import GardenbusError, NotFound, Unavailable
from gardenbus.common.ports.bus import Request, StreamPosition
from gardenbus.common.ports.clock import Clock

WAIT_SECONDS = 3.0
"""Longest wait: a relay that lags further is reported as unavailable."""

PAUSE_SECONDS = 0.005
"""Pause between two looks at an outbox that has older entries."""

OutboxTimes = Callable[[], Awaitable[tuple[int, int | None]]]


class SettledRequests:
    """Handles them; any number at a time."""

    def __init__(self, times: OutboxTimes, position: Callable[[], Awaitable[StreamPosition]], clock: Clock) -> None:
        self._times = times
        self._position = position
        self._clock = clock
        self._settled = SharedQuery(self._query)

    async def handle(self, _request: Request) -> bytes:
        """Respond with the place in OBJECTS up to which all is announced: `{"created", "sequence"}`."""
        try:
            place = await self._settled.get()
        except GardenbusError as error:
            return failure(error)
        return success({"created": str(place.created), "sequence": place.sequence})

    async def _query(self) -> StreamPosition:
        began = self._clock.monotonic()
        stored_at, oldest = await self._times()
        while oldest is not None and oldest <= stored_at:
            if self._clock.monotonic() - began > WAIT_SECONDS:
                raise Unavailable(f"changes of more than {WAIT_SECONDS:g} s ago are not announced yet")
            await self._clock.sleep(PAUSE_SECONDS)
            _, oldest = await self._times()
        try:
            return await self._position()
        except NotFound as error:
            raise Unavailable("the stream of announcements is not there: it is made anew") from error
