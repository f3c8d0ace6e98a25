"""From samples and calls to functions with their share of a process' CPU for one unit of work. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from gardenbus.bench.guard.readings import Functions

MOST_OF_MEDIAN = 4.0


class TimeSpan(NamedTuple):
    """A span of time (monotonic) in which something was measured."""

    began_at: float
    ended_at: float


class RedisCall(NamedTuple):
    """A command that Redis carried out: its name, for one of our functions the function's, and its microseconds."""

    name: str
    microseconds: float


def sampled(names: Sequence[str], samples: Iterable[tuple[float, int]], windows: Sequence[TimeSpan]) -> Counter[str]:
    """Samples of each function within the windows."""
    return Counter(
        names[number] for at, number in samples if any(each.began_at <= at <= each.ended_at for each in windows)
    )


def by_samples(counted: Mapping[str, int], ratio: float) -> Functions:
    """Each function's part of what a process took for one unit of work, by its share of the samples."""
    all_samples = sum(counted.values())
    return {name: ratio * count / all_samples for name, count in counted.items()}


def by_calls(calls: Iterable[RedisCall], ratio: float) -> Functions:
    """Each function's part of what Redis took for one unit of work, by its share of the time of all calls.

    A call that took more than `MOST_OF_MEDIAN` times its function's median was interrupted, and counts for so much.
    """
    durations: dict[str, list[float]] = {}
    for call in calls:
        durations.setdefault(call.name, []).append(call.microseconds)
    taken = {
        name: sum(min(each, MOST_OF_MEDIAN * median(found)) for each in found) for name, found in durations.items()
    }
    in_all = sum(taken.values())
    return {name: ratio * spent / in_all for name, spent in taken.items()} if in_all else {}
