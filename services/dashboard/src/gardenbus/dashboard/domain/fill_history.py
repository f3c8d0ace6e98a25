"""History of the number of shoots on a seed. Pure.

It is not stored: it begins when the dashboard does. The more changes there were, the coarser the older ones become:
when it is full, every second sample of the older half goes.
"""

from array import array
from typing import NamedTuple

LARGEST = 120
"""Samples of one seed."""


class FillSample(NamedTuple):
    """Number of shoots on a seed from a time on (ms since the epoch)."""

    at: int
    used: int


class FillHistory:
    """Samples in order of time."""

    __slots__ = ("_at", "_used")

    def __init__(self) -> None:
        self._at = array("q")
        self._used = array("L")

    def record(self, at: int, used: int) -> None:
        """Add a sample; the same number as before changes nothing."""
        if self._used and self._used[-1] == used:
            return
        if self._at and self._at[-1] == at:
            self._used[-1] = used
            return
        if len(self._at) >= LARGEST:
            half = LARGEST // 2
            for samples in (self._at, self._used):
                samples[1:half] = samples[1:half:2]
        self._at.append(at)
        self._used.append(used)

    @property
    def samples(self) -> list[FillSample]:
        """The samples, the oldest first."""
        return [FillSample(at, used) for at, used in zip(self._at, self._used, strict=True)]
