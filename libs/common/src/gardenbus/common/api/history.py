"""Points of the landscape's history: what lifecycle writes into the stream HISTORY, and pages and `top` read. PURE.

A point is the state at an instant, with counters that only grow: what happened between any two points is their
difference, also where points between them are gone. The older, the fewer points are kept: each lives as long as the
longest interval that it is the first of.

| the first of | lives |
|---|---|
| a minute | 6 hours |
| ten minutes | 3 days |
| an hour | 30 days |
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

import msgspec

from gardenbus.common.api.decoding import json_decoder


class HistoryLevel(NamedTuple):
    """An interval, and how long the first point of each is kept."""

    interval: timedelta
    kept: timedelta


LEVELS = (
    HistoryLevel(timedelta(minutes=1), timedelta(hours=6)),
    HistoryLevel(timedelta(minutes=10), timedelta(days=3)),
    HistoryLevel(timedelta(hours=1), timedelta(days=30)),
)

KEEP_ALIVE = LEVELS[1].interval
"""Interval in which there is a point though nothing has changed; a longer one is a gap: nobody has written."""

PLACED = "placed."
"""Prefix of the counters of shoots by the time that their placement took: `placed.<seconds>`, or `placed.more`."""

PLACEMENT_SECONDS = (1, 2, 3, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400)
"""Upper bounds of times to placement. Creation times have no fractions of a second."""

MORE = "more"
REJECTED = "rejected"
MIGRATIONS = "migrations"

NOT_READ = "not grouped"
"""Cause of waiting shoots beyond those whose reasons are read."""

SeedState = Literal["ready", "cordoned", "not-ready", "unknown", "deleting"]


class SeedUse(msgspec.Struct, frozen=True, array_like=True):
    """Shoots that count on a seed, how many it takes (None: any number), its state, provider and region."""

    used: int
    capacity: int | None
    state: SeedState
    provider: str
    region: str


class SetSize(msgspec.Struct, frozen=True, array_like=True):
    """Seeds of a ManagedSeedSet: wanted, there, and ready."""

    wanted: int
    replicas: int
    ready: int


class HistoryPoint(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The landscape at an instant (RFC 3339).

    `waiting`: shoots without a seed by cause; `most_waiting`: the highest number of them since the last point of ten
    minutes and of an hour. `seeds`, `sets` (`<namespace>/<name>`) and `profiles` (generations) by name. `totals` are
    counters that only grow, and `processes` those of single processes, by which the next point continues them.
    """

    at: str
    level: int = 0
    shoots: int = 0
    pending: int = 0
    moving: int = 0
    waiting: Mapping[str, int] = {}
    most_waiting: Sequence[int] = ()
    seeds: Mapping[str, SeedUse] = {}
    sets: Mapping[str, SetSize] = {}
    profiles: Mapping[str, int] = {}
    totals: Mapping[str, int] = {}
    processes: Mapping[str, Mapping[str, int]] = {}

    @property
    def instant(self) -> datetime:
        """`at`, as an instant."""
        return datetime.fromisoformat(self.at)

    @property
    def waiting_total(self) -> int:
        """Shoots that wait, for whatever cause."""
        return sum(self.waiting.values())


class HistoryChange(msgspec.Struct, frozen=True):
    """A change of an object between a point and the one before it; `kind` in lower case, `at` is the point's."""

    at: str
    kind: str
    name: str
    text: str


class ProcessCounts(msgspec.Struct, frozen=True):
    """Counters of one process of a service since its start. They are sent when they have changed, and may be lost."""

    process: str
    counts: Mapping[str, int]


_encode = msgspec.json.Encoder().encode
_decode_point = json_decoder(HistoryPoint)
_decode_change = json_decoder(HistoryChange)
_decode_counts = json_decoder(ProcessCounts)


def encode(value: HistoryPoint | HistoryChange | ProcessCounts) -> bytes:
    """The body of a message."""
    return _encode(value)


def decode_point(body: bytes) -> HistoryPoint | None:
    """The point of a body; None for one that is none, or of another version."""
    try:
        point = _decode_point(body)
        has_zone = point.instant.tzinfo is not None
    except (msgspec.MsgspecError, ValueError):
        return None
    return point if has_zone else None


def decode_change(body: bytes) -> HistoryChange | None:
    """The change of a body; None for one that is none."""
    try:
        change = _decode_change(body)
        has_zone = datetime.fromisoformat(change.at).tzinfo is not None
    except (msgspec.MsgspecError, ValueError):
        return None
    return change if has_zone else None


def decode_counts(body: bytes) -> ProcessCounts | None:
    """The counters of a body; None for one that has none."""
    try:
        return _decode_counts(body)
    except msgspec.MsgspecError:
        return None


def level_of(at: datetime, before: datetime | None) -> int | None:
    """The level of a point at an instant, after the last one; None: there is one of this minute, or a later one."""
    if before is None:
        return len(LEVELS) - 1
    found = [number for number, level in enumerate(LEVELS) if _slot(at, level.interval) > _slot(before, level.interval)]
    return found[-1] if found else None


def _slot(at: datetime, interval: timedelta) -> int:
    return int(at.astimezone(UTC).timestamp() // interval.total_seconds())


def placement_counter(seconds: float) -> str:
    """The counter of a shoot that was placed so long after its creation."""
    bound = next((each for each in PLACEMENT_SECONDS if seconds <= each), MORE)
    return f"{PLACED}{bound}"


def placement_quantile(counts: Mapping[str, int], share: float) -> float | None:
    """Seconds within which a share of the counted shoots was placed; None without any.

    That is the upper bound of a counter, and the highest of them for those that took longer.
    """
    numbers = [counts.get(f"{PLACED}{bound}", 0) for bound in (*PLACEMENT_SECONDS, MORE)]
    wanted, found = share * sum(numbers), 0
    if not sum(numbers):
        return None
    for bound, number in zip((*PLACEMENT_SECONDS, PLACEMENT_SECONDS[-1]), numbers, strict=True):
        found += number
        if number and found >= wanted:
            return float(bound)
    return float(PLACEMENT_SECONDS[-1])


def growth(totals: Mapping[str, int], before: Mapping[str, int]) -> Mapping[str, int]:
    """Growth of counters, of those that have grown; one that is lower than before has begun anew."""
    found: dict[str, int] = {}
    for name, count in totals.items():
        earlier = before.get(name, 0)
        if grown := count - earlier if count >= earlier else count:
            found[name] = grown
    return found


def added(totals: Mapping[str, int], grown: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    """Counters with what others have grown by."""
    found = dict(totals)
    for each in grown:
        for name, count in each.items():
            found[name] = found.get(name, 0) + count
    return found
