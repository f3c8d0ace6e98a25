"""What the people who have logged in may read, as the apiserver decides: asked for every few seconds."""

from typing import NamedTuple

import msgspec

from gardenbus.common.api.identity.principals import OPERATOR
from gardenbus.common.api.identity.readable import EVERYTHING, Readable
from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.api_client import GardenApiClient

FRESH_SECONDS = 5.0
"""Time for which an answer counts: what is taken away is seen no longer than that."""

STALE_SECONDS = 60.0
"""Time for which it counts while the apiserver does not answer."""

MOST_USERS = 1_000


class _Answer(NamedTuple):
    readable: Readable
    at: float


class Rights:
    """Rights of users. Nobody, where nobody logs in, and the landscape's operator read everything."""

    def __init__(self, api: GardenApiClient, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._answers: dict[str, _Answer] = {}

    async def of(self, user: str) -> Readable:
        """What a user may read. Raises Unavailable."""
        if user in ("", OPERATOR):
            return EVERYTHING
        answer, now = self._answers.get(user), self._clock.monotonic()
        if answer is not None and now - answer.at < FRESH_SECONDS:
            return answer.readable
        try:
            readable = msgspec.convert(await self._api.acting_as(user).request("readable"), Readable)
        except msgspec.ValidationError as error:
            raise Unavailable(f"the apiserver does not say what {user} may read; is it older? {error}") from error
        except Unavailable:
            if answer is not None and now - answer.at < STALE_SECONDS:
                return answer.readable
            raise
        self._answers.pop(user, None)
        self._answers[user] = _Answer(readable, now)
        while len(self._answers) > MOST_USERS:
            del self._answers[next(iter(self._answers))]
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
