"""Exponential backoff with a cap and equal jitter, as plain arithmetic.

The wait doubles with every failure until the cap. Half of it is fixed, half is spread at random, so that work that
failed together does not come back together, and yet none comes back at once.
"""

from collections.abc import Iterator
from itertools import count

import msgspec

_MAX_DOUBLINGS = 1000
"""2.0 ** 1023 is the largest power that a float holds; anything near it is beyond every cap."""


class Backoff(msgspec.Struct, frozen=True):
    """Base and cap in seconds; raises ValueError unless 0 < base <= cap."""

    base_seconds: float = 1.0
    cap_seconds: float = 300.0

    def __post_init__(self) -> None:
        """Reject what would make a hot loop."""
        if not 0 < self.base_seconds <= self.cap_seconds:
            raise ValueError(f"backoff needs 0 < base ({self.base_seconds}) <= cap ({self.cap_seconds})")

    def longest_seconds(self, attempt: int) -> float:
        """The upper bound of the wait after `attempt` failures (1 the first time; less counts as 1)."""
        doublings = min(max(attempt, 1) - 1, _MAX_DOUBLINGS)
        return min(self.cap_seconds, self.base_seconds * 2.0**doublings)

    def delay_seconds(self, attempt: int, fraction: float) -> float:
        """Seconds to wait after `attempt` failures; `fraction`, in [0, 1), is the caller's random number."""
        half = self.longest_seconds(attempt) / 2
        return half + half * fraction

    def pauses(self) -> Iterator[float]:
        """The waits after one failure, two, and so on, without chance: for one loop that retries alone."""
        return map(self.longest_seconds, count(1))
