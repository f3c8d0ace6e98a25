"""When heartbeats are due: each cluster at its own point of the period, so that thousands do not beat at once. Pure."""

from zlib import crc32

_LEAST = 0.01
"""Of a period: a timer that goes off so much too early has reached its point."""


def seconds_to_next(cluster: str, now: float, period_seconds: float) -> float:
    """How long until the next heartbeat of a cluster, at most a period; `now` in seconds since the epoch.

    The point follows from the name: processes that know nothing of each other spread, and so do those that start anew.
    """
    point = crc32(cluster.encode()) / 2**32 * period_seconds
    left = (point - now) % period_seconds
    return left if left > _LEAST * period_seconds else period_seconds
