"""Bands of a queue whose server is away: nothing that has come is lost with what fails."""

from collections.abc import Sequence
from typing import Any

import pytest

from gardenbus.common.api.garden.scheduling_order import HIGH, LOW, NORMAL
from gardenbus.common.errors import Unavailable
from gardenbus.scheduler.watch.banded_queue import BandedQueue
from tests.support.scheduling import FetchedWork


class Scripted:
    """A queue whose fetches end as they are told to, one after the other; then it waits no longer."""

    def __init__(self, *fetches: list[FetchedWork] | Unavailable) -> None:
        self._fetches = list(fetches)
        self.depth = 1

    async def fetch(self, limit: int, wait_seconds: float) -> Sequence[Any]:
        del limit, wait_seconds
        fetched = self._fetches.pop(0) if self._fetches else []
        if isinstance(fetched, Unavailable):
            raise fetched
        return fetched

    async def ack_many(self, works: Sequence[Any]) -> None:
        del works


async def test_messages_of_one_band_outlive_the_failure_of_another() -> None:
    high, normal = FetchedWork("high"), FetchedWork("normal")
    queue = BandedQueue(
        {HIGH: Scripted([high]), NORMAL: Scripted(Unavailable("NATS is away"), [normal]), LOW: Scripted()}
    )
    with pytest.raises(Unavailable):
        await queue.fetch(10, 1.0)
    assert await queue.fetch(10, 1.0) == [high, normal]
    await queue.close()
