"""Requests in flight: what each user has here, from the arrival of its requests to their responses.

A body is read as a whole and in one turn of the loop. Whoever sends faster than bodies are read would fill NATS' buffer
for this connection, and the server ends a connection whose buffer is full: for everybody. So a request beyond a budget
gets its error at once, and is held no longer.
"""

import contextlib
from collections import Counter
from collections.abc import Generator, Mapping

from gardenbus.common.api.budgets import Budget, OverBudget, over_budget, shown_limit

BYTES = "bytesInFlight"
REQUESTS = "requestsInFlight"

ALL_BYTES = 96 * 1024 * 1024
"""Bytes of all users together; beyond it each has an equal share."""

ALL_REQUESTS = 2000
"""Requests of all users together, likewise."""

_SUGGESTION = "wait for responses, and send this again a second later"


class InFlight:
    """Counts requests in flight by user."""

    def __init__(self, *, all_bytes: int = ALL_BYTES, all_requests: int = ALL_REQUESTS) -> None:
        self._most = {BYTES: all_bytes, REQUESTS: all_requests}
        self._held: dict[str, Counter[str]] = {BYTES: Counter(), REQUESTS: Counter()}
        self._total: Counter[str] = Counter()

    @contextlib.contextmanager
    def counted(self, user: str, size: int, budget: Budget, *, requests: int = 1) -> Generator[None]:
        """Count a request while it is in flight. Raises OverBudget where it is one too many; one always goes.

        With `requests` 0 its bytes alone count.
        """
        self._check(user, BYTES, size, budget.bytes_in_flight)
        self._check(user, REQUESTS, requests, budget.requests_in_flight)
        self._add(user, BYTES, size)
        self._add(user, REQUESTS, requests)
        try:
            yield
        finally:
            self._add(user, BYTES, -size)
            self._add(user, REQUESTS, -requests)

    def held_by(self, user: str) -> tuple[int, int]:
        """Requests and bytes that a user has in flight."""
        return self._held[REQUESTS][user], self._held[BYTES][user]

    def held(self, limit: str) -> Mapping[str, int]:
        """Amounts of `BYTES` or `REQUESTS` in flight, by user."""
        return self._held[limit]

    def users(self) -> frozenset[str]:
        """Users who have something in flight."""
        return frozenset(self._held[BYTES]) | frozenset(self._held[REQUESTS])

    def _check(self, user: str, limit: str, added: int, most: int) -> None:
        held = self._held[limit]
        own = held[user]
        if not own or not added:
            return
        if own + added > most:
            raise over_budget(user, limit, most, _SUGGESTION)
        if self._total[limit] + added > self._most[limit] and own + added > self._most[limit] // len(held):
            shown = shown_limit(limit, self._most[limit])
            raise OverBudget(
                f"{limit}: all users together have {shown} here, and {user!r} more than its share: {_SUGGESTION}", limit
            )

    def _add(self, user: str, limit: str, added: int) -> None:
        held = self._held[limit]
        held[user] += added
        self._total[limit] += added
        if not held[user]:
            del held[user]
