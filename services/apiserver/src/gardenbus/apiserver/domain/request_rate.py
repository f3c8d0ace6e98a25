"""Limit of one user's requests for what is stored under ever other names, and kept for long."""

from gardenbus.common.errors import TooManyRequests

BURST = 20
"""Most requests at once, after a pause."""

EACH_SECONDS = 3.0
"""Time between two of them in the long run."""

_MOST_USERS = 10_000


class RequestRate:
    """A bucket a user, in this replica: generic cell rate, which keeps one moment of each."""

    def __init__(self) -> None:
        self._free_at: dict[str, float] = {}

    def take(self, user: str, now: float) -> None:
        """Count one request, at a monotonic time. Raises TooManyRequests."""
        free_at = max(self._free_at.get(user, now), now)
        if free_at - now > (BURST - 1) * EACH_SECONDS:
            raise TooManyRequests(
                f"{user!r} sends too many requests: {BURST} at once, then one every {EACH_SECONDS:g} s"
            )
        if len(self._free_at) >= _MOST_USERS:
            self._free_at = {name: at for name, at in self._free_at.items() if at > now}
        self._free_at[user] = free_at + EACH_SECONDS
