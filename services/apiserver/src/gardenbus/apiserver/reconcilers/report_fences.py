"""The newest report wins, field by field, in whatever order reports are taken. Pure.

With several apiservers two reports on one object can be taken in either order, and a redelivered one a second time.
So beside each object stands, for every status field that was ever reported, the sequence (in REPORTS) of the report
that set it. A report changes only what no newer one has set. The unit is a leaf: maps are merged key by key,
conditions and constraints by type (one whose status is null goes), and everything else (numbers, texts, lists, null,
which removes) is set whole.

The fences are a tree beside the status. A place that was only ever set whole holds a number; any other place holds
`[merged, set_whole, {key: place}]`: the newest report that had a map there, and the newest that set it whole (what is
below and older went with it). The tree belongs to one incarnation of the stream; a younger stream starts a new one.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

LISTS_BY_TYPE = ("conditions", "constraints")
"""Fields of status that are lists with one entry a `type`."""

NEVER = -1
"""The sequence of what was not set by any report."""


class FencedStatus(NamedTuple):
    """A status after a report, its fences, and whether the report changed or moved anything."""

    status: dict[str, Any]
    fences: bytes
    taken: bool


class Place(msgspec.Struct):
    """One place of the tree: see the module."""

    merged: int = NEVER
    set_whole: int = NEVER
    below: dict[str, "Place"] = msgspec.field(default_factory=lambda: cast("dict[str, Place]", {}))

    def to_plain(self) -> Any:
        """As JSON values."""
        if self.merged == NEVER:
            return self.set_whole
        return [self.merged, self.set_whole, {name: place.to_plain() for name, place in self.below.items()}]

    @classmethod
    def from_plain(cls, plain: Any) -> "Place":
        """Read what `to_plain` wrote."""
        if isinstance(plain, int):
            return cls(set_whole=plain)
        merged, set_whole, below = plain
        return cls(merged, set_whole, {name: cls.from_plain(place) for name, place in below.items()})


ABSENT: Any = msgspec.UNSET


def take_report(
    status: Mapping[str, Any], fences: bytes, *, report: Mapping[str, Any], incarnation: int, sequence: int
) -> FencedStatus:
    """Merge a reported status into `status` where no newer report has been before.

    `incarnation` and `sequence` say where the report stands in its stream. Neither argument is changed.
    """
    root = Place()
    if fences:
        created, plain = msgspec.json.decode(fences)
        if created > incarnation:
            return FencedStatus(dict(status), fences, taken=False)
        if created == incarnation:
            root = Place.from_plain(plain)
    viewed = {name: _by_type(value) if name in LISTS_BY_TYPE else value for name, value in status.items()}
    reported = {name: _by_type(value) if name in LISTS_BY_TYPE else value for name, value in report.items()}
    merged = _merge(root, viewed, reported, sequence)
    result = {name: _as_list(value) if name in LISTS_BY_TYPE else value for name, value in merged.items()}
    new_fences = msgspec.json.encode([incarnation, root.to_plain()])
    return FencedStatus(result, new_fences, taken=result != dict(status) or new_fences != fences)


def has_set(fences: bytes, field: str, *, incarnation: int, sequence: int) -> bool:
    """Whether it is this very report that set a field of the status as it stands."""
    if not fences:
        return False
    created, plain = msgspec.json.decode(fences)
    place = Place.from_plain(plain).below.get(field)
    return created == incarnation and place is not None and place.set_whole == sequence


def _merge(place: Place, value: Any, reported: Any, sequence: int) -> Any:
    if isinstance(reported, Mapping) and not isinstance(reported, _Entry):
        return _merge_map(place, value, cast("Mapping[str, Any]", reported), sequence)
    return _set_whole(place, value, reported, sequence)


def _merge_map(place: Place, value: Any, reported: Mapping[str, Any], sequence: int) -> Any:
    if sequence < place.set_whole:
        return value
    place.merged = max(place.merged, sequence)
    merged: dict[str, Any] = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}
    for name, part in reported.items():
        below = place.below.setdefault(name, Place())
        new = _merge(below, merged.get(name, ABSENT), part, sequence)
        if new is ABSENT:
            merged.pop(name, None)
        else:
            merged[name] = new
    return merged


def _set_whole(place: Place, value: Any, reported: Any, sequence: int) -> Any:
    if sequence < place.set_whole:
        return value
    place.set_whole = sequence
    if sequence >= place.merged:
        place.merged, place.below = NEVER, {}
        return ABSENT if reported is None else reported
    return _without_older(place, value, sequence)


def _without_older(place: Place, value: Any, sequence: int) -> Any:
    """What stays of a map when a report older than its newest turns out to have removed or replaced it."""
    kept: dict[str, Any] = {}
    values: Mapping[str, Any] = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
    for name, below in list(place.below.items()):
        if max(below.merged, below.set_whole) < sequence:
            del place.below[name]
            continue
        new = values.get(name, ABSENT)
        if below.merged >= 0:
            below.set_whole = max(below.set_whole, sequence)
            new = _without_older(below, new, sequence)
        if new is not ABSENT:
            kept[name] = new
    return kept


class _Entry(dict[str, Any]):
    """A condition, marked so that it is not merged key by key."""


def _by_type(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    entries = [cast("dict[str, Any]", entry) for entry in cast("list[Any]", value) if isinstance(entry, dict)]
    return {
        str(entry.get("type")): None if "status" in entry and entry["status"] is None else _Entry(entry)
        for entry in entries
    }


def _as_list(value: Any) -> Any:
    return [dict(entry) for entry in cast("Mapping[str, Any]", value).values()] if isinstance(value, Mapping) else value
