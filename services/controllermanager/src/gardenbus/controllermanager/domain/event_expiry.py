"""Age of what is in a stream, by the positions that it has had: sequences say nothing of time.

A position that was seen at an instant bounds the age of all that stands before it.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Checkpoint(NamedTuple):
    """The last sequence of a stream at an instant (in seconds that never go back)."""

    at_seconds: float
    sequence: int


class ExpiredEvents(NamedTuple):
    """The last sequence that is too old (0: none), and the checkpoints that are still of use."""

    upto_sequence: int
    checkpoints: Sequence[Checkpoint]


def expired(checkpoints: Sequence[Checkpoint], now_seconds: float, ttl_seconds: float) -> ExpiredEvents:
    """The end of what has been in a stream for longer than `ttl_seconds`; checkpoints in the order of time."""
    old = [each for each in checkpoints if each.at_seconds + ttl_seconds <= now_seconds]
    return ExpiredEvents(old[-1].sequence if old else 0, checkpoints[len(old) :])
