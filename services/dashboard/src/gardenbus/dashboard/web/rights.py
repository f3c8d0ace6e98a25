"""Rights of the people who have logged in to read, as the apiserver decides: requested every few seconds."""

from typing import NamedTuple

import msgspec

from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.api.identity.readable import EVERYTHING, Readable
from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.api_client import GardenApiClient

FRESH_SECONDS = 5.0
"""Time for which a response counts: what is taken away is seen no longer than that."""

STALE_SECONDS = 60.0
"""Time for which it counts while the apiserver does not respond."""

MOST_USERS = 1_000


class _Stated(NamedTuple):
    readable: Readable
    at: float


class Rights:
    """Rights of users. Nobody, where nobody logs in, and the landscape's operator read everything."""

    def __init__(self, api: GardenApiClient, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._stated: dict[str, _Stated] = {}

    async def of(self, user: str) -> Readable:
        """Rights of a user. Raises Unavailable."""
        if user in ("", OPERATOR):
            return EVERYTHING
        stated, now = self._stated.get(user), self._clock.monotonic()
        if stated is not None and now - stated.at < FRESH_SECONDS:
            return stated.readable
        try:
            readable = msgspec.convert(await self._api.acting_as(user).request("readable"), Readable)
        except msgspec.ValidationError as error:
            raise Unavailable(f"the apiserver does not report what {user} may read; is it older? {error}") from error
        except Unavailable:
            if stated is not None and now - stated.at < STALE_SECONDS:
                return stated.readable
            raise
        self._stated.pop(user, None)
        self._stated[user] = _Stated(readable, now)
        while len(self._stated) > MOST_USERS:
            del self._stated[next(iter(self._stated))]
        return readable

    async def until_changed(self, user: str, readable: Readable) -> None:
        """Wait until a user may read something else, or nobody can say any more."""
        while True:
            await self._clock.sleep(FRESH_SECONDS)
            try:
                if await self.of(user) != readable:
                    return
            except GardenbusError:
                return
