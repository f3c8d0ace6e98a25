"""The landscape's history as it is plotted: points by time, reduced to what is shown, and charts of a part of it. Pure.

A point of a thousand seeds is reduced to sums of each region; of a single seed only changes are kept. So a chart costs
by the points and its own lines, whatever the landscape holds.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Literal, NamedTuple

import msgspec

from gardenbus.common.api.history import (
    KEEP_ALIVE,
    LEVELS,
    MIGRATIONS,
    REJECTED,
    HistoryChange,
    HistoryPoint,
    SetSize,
    growth,
    placement_quantile,
)

MOST_CAUSES = 4
"""Causes of waiting with a line of their own: those of which most waited."""

MOST_CHANGES = 200
"""Changes in one view: the newest."""

KEPT_CHANGES = 20_000

THINNED_IN = 50
"""Points in which the seeds' tracks are thinned: each a share of them, so that none takes the loop for long."""

NO_LIMIT = -1
_SLACK = timedelta(minutes=1)

ScopeKind = Literal["landscape", "region", "seed", "managedseedset"]
SCOPE_KINDS: Mapping[str, ScopeKind] = {
    "landscape": "landscape",
    "region": "region",
    "seed": "seed",
    "managedseedset": "managedseedset",
}


class HistoryScope(NamedTuple):
    """A part of the landscape: a region is named `<provider>/<region>`, a set `<namespace>/<name>`."""

    kind: ScopeKind
    name: str = ""


class PlaceUse(NamedTuple):
    """Sums of the seeds of a region. `capacity` is that of seeds with a limit, `used_of_capacity` their shoots."""

    used: int
    used_of_capacity: int
    capacity: int
    seeds: int
    ready: int


class ChartLine(msgspec.Struct, frozen=True):
    """One line: a value an instant, None where nothing is known."""

    name: str
    values: Sequence[float | None]


class HistoryChart(msgspec.Struct, frozen=True):
    """Lines with one unit."""

    name: str
    title: str
    unit: str
    lines: Sequence[ChartLine]


class HistoryView(msgspec.Struct, frozen=True):
    """Charts over instants (ms since the epoch), and what happened between the first and the last of them."""

    at: Sequence[int]
    charts: Sequence[HistoryChart]
    changes: Sequence[HistoryChange]
    begins: int | None
    """Instant of the first point that there is."""


class _Reduced(NamedTuple):
    """A point without its seeds."""

    at: int
    level: int
    moving: int
    waiting: Mapping[str, int]
    most_waiting: int
    places: Mapping[str, PlaceUse]
    sets: Mapping[str, SetSize]
    totals: Mapping[str, int]


class _SeedTrack:
    """Use and capacity of one seed from instants on; NO_LIMIT as a capacity, and as a use where it was removed."""

    __slots__ = ("at", "capacity", "place", "used")

    def __init__(self) -> None:
        self.at, self.used, self.capacity = array("q"), array("i"), array("i")
        self.place = ""

    def record(self, at: int, used: int, capacity: int) -> None:
        if self.at and (self.used[-1], self.capacity[-1]) == (used, capacity):
            return
        self.at.append(at)
        self.used.append(used)
        self.capacity.append(capacity)

    def thinned(self, kept: Sequence[int]) -> "_SeedTrack":
        """The same at instants that are kept: of each, the last value up to it."""
        track = _SeedTrack()
        track.place = self.place
        place = bisect_left(kept, self.at[0]) if self.at else 0
        after = 0
        while place < len(kept) and after < len(self.at):
            after = bisect_right(self.at, kept[place], after)
            track.record(kept[place], self.used[after - 1], self.capacity[after - 1])
            place = bisect_left(kept, self.at[after], place) if after < len(self.at) else len(kept)
        return track

    def value(self, at: int) -> tuple[int, int]:
        index = bisect_right(self.at, at) - 1
        return (self.used[index], self.capacity[index]) if index >= 0 else (NO_LIMIT, NO_LIMIT)


class HistoryRecord:
    """Points and changes in order of time."""

    def __init__(self) -> None:
        self.clear()

    @property
    def last_at(self) -> datetime | None:
        """Instant of the last point."""
        return datetime.fromtimestamp(self._points[-1].at / 1000, UTC) if self._points else None

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self._points)

    @property
    def unthinned(self) -> int:
        """Number of seeds whose tracks have values at points that are gone."""
        return len(self._unthinned)

    def clear(self) -> None:
        """Forget everything: the stream is read anew."""
        self._points: list[_Reduced] = []
        self._changes: list[HistoryChange] = []
        self._seeds: dict[str, _SeedTrack] = {}
        self._thinned_at = 0
        self._unthinned: dict[str, None] = {}

    def add_point(self, point: HistoryPoint) -> None:
        """Add a point; one that is not newer than the last is ignored, as it came twice."""
        at = _milliseconds(point.instant)
        if self._points and at <= self._points[-1].at:
            return
        places: dict[str, list[int]] = {}
        for name, seed in point.seeds.items():
            track = self._seeds.get(name)
            if track is None:
                track = self._seeds[name] = _SeedTrack()
            track.place = f"{seed.provider}/{seed.region}"
            track.record(at, seed.used, NO_LIMIT if seed.capacity is None else seed.capacity)
            sums = places.setdefault(track.place, [0, 0, 0, 0, 0])
            sums[0] += seed.used
            if seed.capacity is not None:
                sums[1] += seed.used
                sums[2] += seed.capacity
            sums[3] += 1
            sums[4] += seed.state in ("ready", "cordoned")
        for name in self._seeds.keys() - point.seeds.keys():
            self._seeds[name].record(at, NO_LIMIT, NO_LIMIT)
        uses = {name: PlaceUse(*sums) for name, sums in places.items()}
        most = max((point.waiting_total, *point.most_waiting[: point.level]))
        self._points.append(
            _Reduced(at, point.level, point.moving, point.waiting, most, uses, point.sets, point.totals)
        )
        if at - self._thinned_at >= _length(LEVELS[0].kept):
            self._thin(at)
        self._thin_tracks()

    def add_change(self, change: HistoryChange) -> None:
        """Add a change; one that came twice is ignored."""
        if change not in self._changes[-MOST_CHANGES - 1 :]:
            self._changes.append(change)
            del self._changes[:-KEPT_CHANGES]

    def _thin(self, now: int) -> None:
        """Drop points whose life is over, as the stream does."""
        self._thinned_at = now
        kept = [each for each in self._points if now - each.at < _length(LEVELS[each.level].kept)]
        if len(kept) == len(self._points):
            return
        self._points = kept
        self._unthinned |= dict.fromkeys(self._seeds)
        oldest = datetime.fromtimestamp(now / 1000, UTC) - LEVELS[-1].kept
        self._changes = [each for each in self._changes if datetime.fromisoformat(each.at) >= oldest]

    def _thin_tracks(self) -> None:
        """Thin a share of the tracks. A view looks at instants of points alone: a thinned track shows the same."""
        if not self._unthinned:
            return
        instants = [each.at for each in self._points]
        for name in list(islice(self._unthinned, 1 + len(self._seeds) // THINNED_IN)):
            del self._unthinned[name]
            track = self._seeds[name].thinned(instants)
            if any(used >= 0 for used in track.used):
                self._seeds[name] = track
            else:
                del self._seeds[name]

    def view(self, scope: HistoryScope, since: datetime, until: datetime, *, instants: int) -> HistoryView:
        """Charts of a part of the landscape at so many instants, the last of which is `until`."""
        first, last = _milliseconds(since), _milliseconds(until)
        bounds = [first + (last - first) * number // instants for number in range(instants + 1)]
        return HistoryView(
            at=bounds[1:],
            charts=[chart for chart in _charts(self._spans(bounds), scope, self._seeds.get(scope.name)) if chart.lines],
            changes=self._changes_in(scope, bounds[0], bounds[-1]),
            begins=self._points[0].at if self._points else None,
        )

    def _spans(self, bounds: Sequence[int]) -> "list[_Interval]":
        """Intervals between bounds, each with what it begins and ends with."""
        times = [each.at for each in self._points]
        found: list[_Interval] = []
        for start, end in pairwise(bounds):
            low, high = bisect_right(times, start), bisect_right(times, end)
            last = self._points[high - 1] if high else None
            if last is not None and end - last.at > _allowed_gap(bounds[-1] - end):
                last = None
            before = self._points[low - 1] if low else None
            found.append(_Interval(end, before, last, self._points[low:high]))
        return found

    def _changes_in(self, scope: HistoryScope, first: int, last: int) -> Sequence[HistoryChange]:
        found: list[HistoryChange] = []
        for change in reversed(self._changes):
            at = _milliseconds(datetime.fromisoformat(change.at))
            if first <= at <= last and self._is_about(change, scope):
                found.append(change)
                if len(found) >= MOST_CHANGES:
                    break
        return found[::-1]

    def _is_about(self, change: HistoryChange, scope: HistoryScope) -> bool:
        match scope.kind:
            case "landscape":
                return True
            case "region":
                track = self._seeds.get(change.name) if change.kind == "seed" else None
                return track is not None and track.place == scope.name
            case _:
                return (change.kind, change.name) == scope


class _Interval(NamedTuple):
    """An interval: its end, the points before it, at its end (None in a gap), and within it."""

    end: int
    before: _Reduced | None
    last: _Reduced | None
    within: Sequence[_Reduced]


def _allowed_gap(age: int) -> int:
    """Longest time without a point at which nothing has changed: so long ago, fewer points are kept."""
    level = LEVELS[-1].interval if age > _length(LEVELS[1].kept) - _length(LEVELS[-1].interval) else KEEP_ALIVE
    return _length(level + _SLACK)


def _charts(spans: Sequence[_Interval], scope: HistoryScope, track: _SeedTrack | None) -> Iterator[HistoryChart]:
    match scope.kind:
        case "landscape":
            yield _waiting(spans)
            yield _placement(spans)
            yield _capacity([_sum(span.last) for span in spans])
            yield _set_sizes([_all_sets(span.last) for span in spans])
            yield _counts(spans)
        case "region":
            uses = [None if span.last is None else span.last.places.get(scope.name) for span in spans]
            yield _capacity(uses)
            lines = [
                ChartLine("there", [None if use is None else use.seeds for use in uses]),
                ChartLine("ready", [None if use is None else use.ready for use in uses]),
            ]
            yield HistoryChart("seeds", "Seeds", "seeds", _with_values(lines))
        case "seed":
            values = [None if span.last is None or track is None else track.value(span.last.at) for span in spans]
            lines = [
                ChartLine("used", [None if each is None or each[0] < 0 else each[0] for each in values]),
                ChartLine("capacity", [None if each is None or each[1] < 0 else each[1] for each in values]),
            ]
            yield HistoryChart("capacity", "Shoots", "shoots", _with_values(lines))
        case "managedseedset":
            yield _set_sizes([None if span.last is None else span.last.sets.get(scope.name) for span in spans])


def _waiting(spans: Sequence[_Interval]) -> HistoryChart:
    """The most that waited in each interval, and causes at its end."""
    totals: Counter[str] = Counter()
    for span in spans:
        if span.last is not None:
            totals.update(span.last.waiting)
    most = [
        None if span.last is None else max((span.last.most_waiting, *(each.most_waiting for each in span.within)))
        for span in spans
    ]
    lines = [ChartLine("all", most)]
    for cause, _ in totals.most_common(MOST_CAUSES):
        lines.append(
            ChartLine(cause, [None if span.last is None else span.last.waiting.get(cause, 0) for span in spans])
        )
    return HistoryChart("waiting", "Shoots without a seed, by cause", "shoots", _with_values(lines))


def _placement(spans: Sequence[_Interval]) -> HistoryChart:
    grown = [_growth(span) for span in spans]
    lines = [
        ChartLine(name, [None if each is None else placement_quantile(each, share) for each in grown])
        for name, share in (("p50", 0.5), ("p99", 0.99))
    ]
    return HistoryChart("placement", "Time to placement", "s", _with_values(lines))


def _counts(spans: Sequence[_Interval]) -> HistoryChart:
    grown = [_growth(span) for span in spans]
    lines = [
        ChartLine(words, [None if each is None else each.get(counter, 0) for each in grown])
        for words, counter in (("migrations requested", MIGRATIONS), ("requests rejected", REJECTED))
    ]
    lines.append(ChartLine("migrating", [None if span.last is None else span.last.moving for span in spans]))
    return HistoryChart("counts", "Migrations, and rejected requests", "", _with_values(lines))


def _growth(span: _Interval) -> Mapping[str, int] | None:
    """Growth of counters in an interval; nothing where it has no point, None in a gap."""
    if span.last is None:
        return None
    if span.before is None or not span.within:
        return {}
    return growth(span.last.totals, span.before.totals)


def _capacity(uses: Sequence[PlaceUse | None]) -> HistoryChart:
    lines = [
        ChartLine("used", [None if use is None else use.used for use in uses]),
        ChartLine("used of capacity", [None if use is None else use.used_of_capacity for use in uses]),
        ChartLine("capacity", [None if use is None or not use.capacity else use.capacity for use in uses]),
    ]
    if lines[0].values == lines[1].values:
        del lines[1]
    return HistoryChart("capacity", "Shoots and places", "shoots", _with_values(lines))


def _sum(point: _Reduced | None) -> PlaceUse | None:
    if point is None:
        return None
    return PlaceUse(*(sum(each) for each in zip(*point.places.values(), strict=True))) if point.places else None


def _set_sizes(sizes: Sequence[SetSize | None]) -> HistoryChart:
    lines = [
        ChartLine("wanted", [None if size is None else size.wanted for size in sizes]),
        ChartLine("there", [None if size is None else size.replicas for size in sizes]),
        ChartLine("ready", [None if size is None else size.ready for size in sizes]),
    ]
    return HistoryChart("sets", "Seeds of sets", "seeds", _with_values(lines))


def _all_sets(point: _Reduced | None) -> SetSize | None:
    if point is None or not point.sets:
        return None
    sizes = point.sets.values()
    return SetSize(
        sum(each.wanted for each in sizes), sum(each.replicas for each in sizes), sum(each.ready for each in sizes)
    )


def _with_values(lines: Sequence[ChartLine]) -> Sequence[ChartLine]:
    return [line for line in lines if any(value is not None for value in line.values)]


def _milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


def _length(interval: timedelta) -> int:
    return int(interval.total_seconds() * 1000)
