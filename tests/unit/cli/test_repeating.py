"""Requests without a response are sent again, where that does no harm."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import pytest

from gardenbus.cli.client import repeating
from gardenbus.cli.client.api import ApiClient
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import NoResponse, Unavailable
from gardenbus.common.ports.bus import Bus
from tests.support.builders import a_shoot, merged

LOST = NoResponse("the connection to NATS was lost")


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeating, "SILENCE_SECONDS", 0.01)
    monkeypatch.setattr(repeating, "RECONNECT_SECONDS", 0.001)


class LossyBus:
    """A bus whose requests get what is listed, in order: a response, an error, or (None) nothing within their time."""

    def __init__(self, *outcomes: bytes | Exception | None) -> None:
        self.outcomes = [*outcomes]
        self.running = 0

    async def request(self, _: str, __: bytes, *, headers: Mapping[str, str], timeout_seconds: float) -> bytes:
        del headers
        self.running += 1
        try:
            match self.outcomes.pop(0):
                case Exception() as error:
                    raise error
                case None:
                    await asyncio.sleep(timeout_seconds)
                    raise NoResponse("no response")
                case response:
                    return response
        finally:
            self.running -= 1

    @property
    def api(self) -> ApiClient:
        return ApiClient(cast("Bus", self), Subjects())


@pytest.mark.parametrize("first", [(None,), (LOST,), (None, None), (LOST, LOST), (None, LOST)])
async def test_a_manifest_is_applied_though_responses_were_lost(first: tuple[Any, ...]) -> None:
    bus = LossyBus(*first, b'{"ok": true, "outcome": "unchanged"}')
    (response,) = await bus.api.apply([a_shoot("one")])
    assert response.outcome == "unchanged"
    assert not bus.outcomes
    assert bus.running == 0


async def test_a_response_to_the_first_request_counts_though_it_comes_after_the_second_was_sent() -> None:
    sent = 0

    async def send(_: float) -> bytes:
        nonlocal sent
        sent += 1
        if sent > 1:
            second.set()
            await asyncio.sleep(math.inf)
        await second.wait()
        return b"the first"

    second = asyncio.Event()
    assert await repeating.first_response(send, 60.0) == b"the first"
    assert sent == 2


async def test_it_ends_with_the_error_of_the_last_when_none_gets_a_response() -> None:
    bus = LossyBus(LOST, LOST, NoResponse("no response within 60 s"))
    with pytest.raises(NoResponse, match="no response within 60 s"):
        await bus.api.request("get.shoot.garden-dev.one")
    bus = LossyBus(None, None, None)
    with pytest.raises(NoResponse, match="no response"):
        await bus.api.request("get.shoot.garden-dev.one", timeout_seconds=0.05)


async def test_a_server_that_is_away_is_told_at_once() -> None:
    bus = LossyBus(Unavailable("NATS is unreachable"), b"")
    with pytest.raises(Unavailable, match="NATS is unreachable"):
        await bus.api.request("list.shoot")
    assert len(bus.outcomes) == 1


async def test_what_must_not_be_carried_out_twice_is_sent_once() -> None:
    versioned = merged(a_shoot("one"), {"metadata": {"resourceVersion": "7"}})
    sends: tuple[Callable[[ApiClient], Awaitable[Any]], ...] = (
        lambda api: api.apply([versioned]),
        lambda api: api.delete([a_shoot("one")]),
        lambda api: api.request("apply", b"{}", condition="shoot.garden-dev.one=0"),
    )
    for send in sends:
        bus = LossyBus(LOST, b"")
        with pytest.raises(NoResponse):
            await send(bus.api)
        assert len(bus.outcomes) == 1
