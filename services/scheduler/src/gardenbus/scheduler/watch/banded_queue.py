"""Work queue of shoots in three bands: one behind the other in a batch, each with a share that the others leave it.

    +1 ──┐
         ├─► fetch: what has come of each, high first     a band that waits for its first message goes on
    ⋅  ──┤                                                waiting from fetch to fetch, which costs nothing
    -1 ──┘

A band whose messages arrive while a batch is handled keeps their deadlines until the next fetch.
"""

import asyncio
from collections.abc import Mapping, Sequence

from gardenbus.common.api.garden.scheduling_order import BANDS, HIGH, LOW, NORMAL, Shares, shares
from gardenbus.common.ports.bus import QueueMessage, WorkQueue

EXTEND_SECONDS = 3.0
"""Interval at which ack deadlines of messages are extended that no fetch has handed over yet."""

IDLE_SECONDS = 30.0
"""Longest wait of a band beside the middle one for its first message."""

ARRIVAL_SECONDS = 0.02
"""Wait for the other bands that had messages left at their last fetch, once one has come."""


class BandedQueue:
    """The bands of one scheduler as one queue. `bands` has a queue for each of BANDS."""

    def __init__(self, bands: Mapping[str, WorkQueue]) -> None:
        self._bands = {band: _Band(bands[band]) for band in BANDS}

    @property
    def depth(self) -> int:
        """Messages that waited in all bands."""
        return sum(each.queue.depth for each in self._bands.values())

    async def fetch(self, limit: int, wait_seconds: float) -> Sequence[QueueMessage]:
        """See the port. A first burst of a band that was empty may come on top of the limit."""
        limits = self._limits(limit)
        for band, most in zip(BANDS, limits, strict=True):
            self._bands[band].begin(most, wait_seconds if band == NORMAL else IDLE_SECONDS)
        fetching = {each.fetching for each in self._bands.values() if each.fetching is not None}
        _, waiting = await asyncio.wait(fetching, timeout=wait_seconds, return_when=asyncio.FIRST_COMPLETED)
        filled = {each.fetching for each in self._bands.values() if each.fetching in waiting and each.queue.depth}
        if due := [each for each in waiting if each in filled]:
            await asyncio.wait(due, timeout=ARRIVAL_SECONDS)
        for each in self._bands.values():
            each.raise_failure()  # before anything is taken, which would be lost with it
        return [message for each in self._bands.values() for message in each.take()]

    async def ack_many(self, works: Sequence[QueueMessage]) -> None:
        """Acknowledge a batch, of whatever bands."""
        await self._bands[NORMAL].queue.ack_many(works)

    async def close(self) -> None:
        """Fetch no more, and release what has come since the last fetch."""
        for each in self._bands.values():
            await each.close()

    def _limits(self, limit: int) -> Shares:
        """Messages to fetch of each band: its share by what waited last, and where nothing did what is kept for it."""
        depths = {band: self._bands[band].queue.depth for band in BANDS}
        least = shares(limit, high=limit, normal=limit, low=limit)
        given = shares(limit, high=depths[HIGH], normal=depths[NORMAL] or limit, low=depths[LOW])
        return Shares(given.high or least.high, given.normal or least.normal, given.low or least.low)


class _Band:
    """A band's queue, and its fetch that goes on."""

    def __init__(self, queue: WorkQueue) -> None:
        self.queue = queue
        self.fetching: asyncio.Task[Sequence[QueueMessage]] | None = None
        self._keeping: asyncio.Task[None] | None = None

    def begin(self, limit: int, wait_seconds: float) -> None:
        """Fetch, unless a fetch goes on."""
        if self.fetching is None:
            self.fetching = asyncio.ensure_future(self.queue.fetch(limit, wait_seconds))
            self.fetching.add_done_callback(self._keep)

    def raise_failure(self) -> None:
        """Raise what the fetch did, once."""
        fetched = self.fetching
        if fetched is not None and fetched.done() and (error := fetched.exception()) is not None:
            self._end()
            raise error

    def take(self) -> Sequence[QueueMessage]:
        """The messages that have come."""
        fetched = self.fetching
        if fetched is None or not fetched.done():
            return ()
        self._end()
        return fetched.result()

    async def close(self) -> None:
        """End the fetch; nothing of it is lost."""
        fetched = self.fetching
        if fetched is None:
            return
        self._end()
        if not fetched.cancel() and not fetched.cancelled() and fetched.exception() is None:
            for message in fetched.result():
                await message.release()

    def _end(self) -> None:
        self.fetching = None
        if self._keeping is not None:
            self._keeping.cancel()
            self._keeping = None

    def _keep(self, fetched: asyncio.Task[Sequence[QueueMessage]]) -> None:
        """Keep the deadlines of what has come until it is taken."""
        if fetched is self.fetching and not fetched.cancelled() and fetched.exception() is None and fetched.result():
            self._keeping = asyncio.ensure_future(_extend(fetched.result()))


async def _extend(messages: Sequence[QueueMessage]) -> None:
    while True:
        await asyncio.sleep(EXTEND_SECONDS)
        for message in messages:
            await message.in_progress()
