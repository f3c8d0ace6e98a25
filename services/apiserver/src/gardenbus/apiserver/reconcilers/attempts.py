"""How a write can end, and how it is attempted until it is no conflict."""

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple

from gardenbus.apiserver.reconcilers.reads import Reads
from gardenbus.common.errors import Conflict, GardenbusError, NotFound
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import ObjectKey

ATTEMPTS_AT_ONCE = 5
ATTEMPTS = 25
LONGEST_PAUSE_SECONDS = 0.25
"""Between attempts after the first few: another write takes about a millisecond."""

Outcome = Literal["created", "configured", "unchanged", "deleted", "deleting", "superseded"]


class Written(NamedTuple):
    """How a write ended; `stored` is the object as it stands (None when it is gone)."""

    key: ObjectKey
    outcome: Outcome
    stored: StoredObject | None
    warnings: tuple[str, ...] = ()


class Contingent(Exception):
    """A refusal that other objects are the reason of: it may be different once earlier requests are through."""

    def __init__(self, error: GardenbusError) -> None:
        super().__init__(error.message)
        self.error = error


class StaleVersion(Conflict):
    """The request was made for another version than the object has: for its sender to look again."""


class Missing(NotFound):
    """What the request is about is not there; a plain NotFound from the store means that it just vanished."""


Attempt = Callable[[], Awaitable[Written]]


async def insist(attempt: Attempt, on: Sequence[ObjectKey], reads: Reads, clock: Clock) -> Written:
    """Attempt until it is no conflict: at once the first times, then with short pauses.

    Before another attempt the objects that it depends on are forgotten, to be read anew; the first of them is the one
    that is written. Raises Conflict after ATTEMPTS, and at once what looking again does not change.
    """
    for count in range(1, ATTEMPTS + 1):
        try:
            return await attempt()
        except (StaleVersion, Missing):
            raise
        except (Conflict, NotFound) as error:
            if count == ATTEMPTS:
                raise Conflict(f"{on[0]} is changed by others all the time; ask again") from error
            for known in on:
                reads.forget(known)
        if count >= ATTEMPTS_AT_ONCE:
            await clock.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))
    raise AssertionError("the last attempt returns or raises")
