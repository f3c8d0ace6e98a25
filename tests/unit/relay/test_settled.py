"""The request that waits until what was stored before it has been announced."""

import asyncio
import json

from gardenbus.common.ports.bus import Request, StreamPosition
from gardenbus.relay.settled import WAIT_SECONDS, SettledRequests
from tests.support.clocks import FakeClock

REQUEST = Request("garden.relay.settled", b"", {})


class Outbox:
    """An outbox whose clock stands at 10 and whose oldest entries are these, one look after the other."""

    def __init__(self, *oldest: int | None) -> None:
        self._oldest = list(oldest)
        self.probes = 0

    async def times(self) -> tuple[int, int | None]:
        self.probes += 1
        return 10, self._oldest.pop(0) if len(self._oldest) > 1 else self._oldest[0]


async def place() -> StreamPosition:
    return StreamPosition(3, 7)


async def test_it_responds_once_what_was_stored_before_is_announced_whatever_came_since():
    outbox = Outbox(9, 10, 11)
    response = json.loads(await SettledRequests(outbox.times, place, FakeClock()).handle(REQUEST))
    assert response["result"] == {"created": "3", "sequence": 7}
    assert outbox.probes == 3


async def test_those_who_wait_at_the_same_time_share_a_look():
    outbox = Outbox(None)
    requests = SettledRequests(outbox.times, place, FakeClock())
    await asyncio.gather(*(requests.handle(REQUEST) for _ in range(20)))
    assert outbox.probes <= 2


async def test_a_relay_that_lags_is_unavailable():
    outbox, clock = Outbox(5), FakeClock()
    handled = asyncio.create_task(SettledRequests(outbox.times, place, clock).handle(REQUEST))
    while not handled.done():
        clock.advance(WAIT_SECONDS / 4)
        await asyncio.sleep(0)
    response = json.loads(await handled)
    assert (response["ok"], response["error"]["code"]) == (False, 503)
