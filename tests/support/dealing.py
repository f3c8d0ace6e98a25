"""The order of a run with several workers: each has its share of what takes long, and short tests at its end.

xdist hands every worker equally many tests, in a row as they were collected; who has none left takes over the last of
whom most are left to. In the order of collection one worker has all landscapes, others nothing but functions, and a
long test may be the last of all. Here modules are dealt out by what a test of their tier takes, the costliest first,
each to the worker that has least. Every other worker begins with those that wait rather than those that start
processes, so that not all start landscapes at once. Short tests fill up, and come last.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import TypeVar

T = TypeVar("T")

LONGEST = frozenset(
    {
        "test_documented_sessions.py",
        "test_documented_restore.py",
        "test_cluster.py",
        "test_tenants.py",
        "test_kills.py",
        "test_closed_loop.py",
    }
)
"""Modules of single tests that take most of a minute: the run would wait for them if they came last."""

SECONDS_OF_THE_LONGEST = 60.0
SECONDS_A_TEST = {
    "chaos": 60,
    "kube": 30,
    "e2e": 16,
    "bench": 12,
    "fuzz": 6,
    "simulation": 6,
    "property": 2.5,
    "contract": 1,
}
"""What a test takes on two busy cores, by its tier; those that are not here take next to nothing."""

TOGETHER = (PurePath("contract/operating"),)
"""Folders whose tests share a landscape of the session: each worker that has some of them starts one."""


def seconds_of(path: PurePath) -> float:
    """What a test of a module takes, about; 0 where it is short. The path begins with the tier."""
    return SECONDS_OF_THE_LONGEST if path.name in LONGEST else SECONDS_A_TEST.get(path.parts[0], 0)


def dealt(tests: Sequence[T], *, path_of: Callable[[T], PurePath], workers: int) -> list[T]:
    """The tests in the order in which `workers` shall get them: the first part of the same size is the first one's.

    Tests of a module stay together and in their order, where no worker is left without its share.
    """
    modules: dict[PurePath, list[T]] = defaultdict(list)
    short: list[T] = []
    for test in tests:
        path = path_of(test)
        if not seconds_of(path):
            short.append(test)
        elif path.parent in TOGETHER:
            modules[path.parent / "together"].append(test)
        else:
            modules[path].append(test)
    return _laid_out(_shares(modules, workers), short, len(tests))


def _shares(modules: dict[PurePath, list[T]], workers: int) -> list[list[T]]:
    """The long tests of each worker."""
    shares: list[list[PurePath]] = [[] for _ in range(workers)]
    seconds = [0.0] * workers
    for path in sorted(modules, key=lambda path: -seconds_of(path) * len(modules[path])):
        least = seconds.index(min(seconds))
        shares[least].append(path)
        seconds[least] += seconds_of(path) * len(modules[path])
    for number, share in enumerate(shares):
        share.sort(key=seconds_of, reverse=number % 2 == 0)
        share.sort(key=lambda path: path.name not in LONGEST)
    return [[test for path in share for test in modules[path]] for share in shares]


def _laid_out(shares: Sequence[list[T]], short: Sequence[T], count: int) -> list[T]:
    """Each worker's long tests, filled up with short ones to parts of the sizes that xdist hands out."""
    order: list[T] = []
    used = 0
    for number, share in enumerate(shares):
        size = (count - len(order)) // (len(shares) - number)
        lacking = max(0, size - len(share))
        order += [*share, *short[used : used + lacking]]
        used += lacking
    return [*order, *short[used:]]
