"""Results of writes, and retries on conflict."""

import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple

from gardenbus.apiserver.domain.authorization.actions import MissingVerb
from gardenbus.apiserver.registry.read_cache import ReadCache
from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Conflict, Forbidden, GardenbusError, InvalidResource, NotFound
from gardenbus.common.ports.clock import Clock

IMMEDIATE_ATTEMPTS = 5
ATTEMPTS = 25
LONGEST_PAUSE_SECONDS = 0.25
"""Longest pause between attempts after the first few: another write takes about a millisecond."""

WriteOutcome = Literal["created", "configured", "unchanged", "deleted", "deleting", "superseded"]


class WriteResult(NamedTuple):
    """Result of a write; `stored` is the object afterwards (None when it is gone).

    `notices` are those of the warnings that are about the manifest itself: unknown fields, and what nothing acts on.
    """

    key: ObjectKey
    outcome: WriteOutcome
    stored: StoredObject | None
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class UnmetDependency(Exception):
    """Rejection that other objects cause: it may be different once earlier requests are finished."""

    def __init__(self, error: GardenbusError) -> None:
        super().__init__(error.message)
        self.error = error


REJECTIONS = (Forbidden, InvalidResource, NotFound)


class _Dependent:
    """Context that raises some errors as UnmetDependency. Cheaper than a generator, as every write enters it twice."""

    __slots__ = ("_errors",)

    def __init__(self, errors: tuple[type[GardenbusError], ...]) -> None:
        self._errors = errors

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, self._errors) and not isinstance(error, MissingVerb):
            raise UnmetDependency(error) from error


def dependent(errors: tuple[type[GardenbusError], ...] = REJECTIONS) -> _Dependent:
    """Rejections inside depend on other objects: they are raised as UnmetDependency."""
    return _Dependent(errors)


def cause_of(error: UnmetDependency | GardenbusError) -> GardenbusError:
    """The error itself, also where other objects are the reason of it."""
    return error.error if isinstance(error, UnmetDependency) else error


class StaleVersion(Conflict):
    """The request was made for another version of the object; its sender has to read it again."""


class Missing(NotFound):
    """The object of the request is missing; a plain NotFound from the store means that it has just vanished."""


WriteAttempt = Callable[[], Awaitable[WriteResult]]


async def retry_on_conflict(
    attempt: WriteAttempt, on: Sequence[ObjectKey], reads: ReadCache, clock: Clock
) -> WriteResult:
    """Retry until there is no conflict: at once the first times, then with short pauses.

    Before a retry the objects that it depends on are invalidated, to be read again; the first of them is the one that
    is written. Raises Conflict after ATTEMPTS, and at once errors that a retry cannot change.
    """
    for count in range(1, ATTEMPTS + 1):
        try:
            return await attempt()
        except (StaleVersion, Missing):
            raise
        except (Conflict, NotFound) as error:
            if count == ATTEMPTS:
                raise Conflict(f"{on[0]} keeps changing; try again") from error
            for key in on:
                reads.invalidate(key)
        if count >= IMMEDIATE_ATTEMPTS:
            await clock.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))
    raise AssertionError("the last attempt returns or raises")
