"""Decides on points of the landscape's history: which level is due, what has changed, and what happened in between.

What happened follows from two points alone: whichever replica writes the next point finds the same.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

import msgspec

from gardenbus.common.api.history import (
    LEVELS,
    HistoryChange,
    HistoryPoint,
    SeedState,
    SeedUse,
    SetSize,
    added,
    level_of,
)
from gardenbus.common.ports.clock import timestamp
from gardenbus.lifecycle.domain.seed_totals import CountedSeed

MOST_CHANGES = 200
"""Changes in one batch with a point; the rest is counted."""

MOST_PROCESSES = 100
"""Processes in a point: those of the landscape, and some that ended lately."""

_STATES: Mapping[SeedState, str] = {
    "ready": "ready",
    "cordoned": "cordoned",
    "not-ready": "not ready",
    "unknown": "its gardenlet is silent",
    "deleting": "is being deleted",
}

ValueT = TypeVar("ValueT")


class Observed(NamedTuple):
    """The landscape as a replica observes it; `counts` are the counters of each process that it has heard of."""

    seeds: Mapping[str, SeedUse]
    sets: Mapping[str, SetSize]
    profiles: Mapping[str, int]
    shoots: int
    pending: int
    moving: int
    waiting: Mapping[str, int]
    counts: Mapping[str, Mapping[str, int]]


class NextPoint(NamedTuple):
    """A point to be written, and what happened since the one before it."""

    point: HistoryPoint
    changes: Sequence[HistoryChange]


def seed_use(seed: CountedSeed, used: int) -> SeedUse:
    """A seed in a point."""
    return SeedUse(used, seed.allocatable, seed.state, seed.place.provider, seed.place.region)


def due_level(now: datetime, last: HistoryPoint | None) -> int | None:
    """The level of a point that is due; None: there is one of this minute."""
    return level_of(now, last.instant if last is not None else None)


def next_point(last: HistoryPoint | None, observed: Observed, now: datetime) -> NextPoint | None:
    """The point of this minute; None where there is one, or nothing has changed and no longer interval begins."""
    level = due_level(now, last)
    if level is None:
        return None
    before = last or HistoryPoint(at="")
    point = HistoryPoint(
        at=timestamp(now),
        level=level,
        shoots=observed.shoots,
        pending=observed.pending,
        moving=observed.moving,
        waiting=observed.waiting,
        most_waiting=_most_waiting(before, sum(observed.waiting.values())),
        seeds=observed.seeds,
        sets=observed.sets,
        profiles=observed.profiles,
        totals=_totals(before, observed.counts),
        processes=_processes(before.processes, observed.counts),
    )
    if level == 0 and _content(point) == _content(before):
        return None
    return NextPoint(point, _limited(changes_between(last, point)) if last is not None else ())


def _content(point: HistoryPoint) -> HistoryPoint:
    return msgspec.structs.replace(point, at="", level=0, most_waiting=(), processes={})


def _most_waiting(before: HistoryPoint, waiting: int) -> Sequence[int]:
    """The highest numbers of waiting shoots since the last point of each level above the first, this one included."""
    earlier = (*before.most_waiting, 0, 0)
    return [max(waiting, 0 if before.level >= level else earlier[level - 1]) for level in range(1, len(LEVELS))]


def _totals(before: HistoryPoint, counts: Mapping[str, Mapping[str, int]]) -> Mapping[str, int]:
    """The counters of all processes together; of one whose counters are older here than in the last point, nothing."""
    return added(
        before.totals,
        (
            {counter: max(0, count - before.processes.get(name, {}).get(counter, 0)) for counter, count in each.items()}
            for name, each in counts.items()
        ),
    )


def _processes(
    before: Mapping[str, Mapping[str, int]], counts: Mapping[str, Mapping[str, int]]
) -> Mapping[str, Mapping[str, int]]:
    """Counters by process, those that this replica has not heard of first: they go when there are too many."""
    merged = {name: each for name, each in before.items() if name not in counts}
    for name, each in counts.items():
        earlier = before.get(name, {})
        merged[name] = {counter: max(count, earlier.get(counter, 0)) for counter, count in each.items()}
    return dict(list(merged.items())[-MOST_PROCESSES:])


def changes_between(last: HistoryPoint, point: HistoryPoint) -> Sequence[HistoryChange]:
    """Changes of seeds, sets and profiles between two points, in order of kind and name."""
    found = [("seed", name, text) for name, text in _changed(last.seeds, point.seeds, _seed_change)]
    found += [("managedseedset", name, text) for name, text in _changed(last.sets, point.sets, _set_change)]
    found += [("cloudprofile", name, text) for name, text in _changed(last.profiles, point.profiles, _profile_change)]
    return [HistoryChange(point.at, kind, name, text) for kind, name, text in found]


def _changed(
    before: Mapping[str, ValueT], after: Mapping[str, ValueT], describe: Callable[[ValueT, ValueT], str]
) -> Iterator[tuple[str, str]]:
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield name, "added"
        elif name not in after:
            yield name, "removed"
        elif text := describe(before[name], after[name]):
            yield name, text


def _seed_change(old: SeedUse, new: SeedUse) -> str:
    if old.state != new.state:
        return _STATES[new.state]
    if old.capacity != new.capacity:
        return f"takes {_taken(new.capacity)} instead of {_taken(old.capacity)}"
    return ""


def _taken(capacity: int | None) -> str:
    return "any number of shoots" if capacity is None else f"{capacity} shoots"


def _set_change(old: SetSize, new: SetSize) -> str:
    return f"{new.wanted} seeds wanted instead of {old.wanted}" if old.wanted != new.wanted else ""


def _profile_change(old: int, new: int) -> str:
    return "changed" if old != new else ""


def _limited(changes: Sequence[HistoryChange]) -> Sequence[HistoryChange]:
    if len(changes) <= MOST_CHANGES:
        return changes
    rest = f"{len(changes) - MOST_CHANGES} more changes"
    return [*changes[:MOST_CHANGES], HistoryChange(changes[0].at, "landscape", "", rest)]
