"""Heartbeat times: each cluster has its own point in the period, so that thousands do not report at once."""

from zlib import crc32

_LEAST = 0.01
"""Share of a period by which a timer may fire early and still count as on time."""


def seconds_to_next(cluster: str, now: float, period_seconds: float) -> float:
    """Seconds until the next heartbeat of a cluster, at most a period; `now` in seconds since the epoch.

    The point is a hash of the name: unrelated and restarted processes spread without coordination.
    """
    point = crc32(cluster.encode()) / 2**32 * period_seconds
    left = (point - now) % period_seconds
    return left if left > _LEAST * period_seconds else period_seconds
