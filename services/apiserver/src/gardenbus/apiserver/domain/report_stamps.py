"""Last-writer-wins stamps of a reported status: the newest report wins, field by field, in any order of merging.

With several apiservers two reports on one object can be merged in either order, and a redelivered one a second time. So
each object has, for every status field that was ever reported, the sequence (in REPORTS) of the report that set it. A
report changes only what no newer one has set. The unit is a leaf: maps are merged key by key, conditions and
constraints by type (one whose status is null is removed), and everything else (numbers, texts, lists, null, which
removes) is set whole.

The stamps are a tree beside the status. A node that was only ever set whole is a number; any other is `[merged,
set_whole, {key: node}]`: the newest report that had a map there, and the newest that set it whole (what is below and
older was removed with it). The tree belongs to one incarnation of the stream; a younger stream starts a new one.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

LISTS_BY_TYPE = ("conditions", "constraints")
"""Fields of status that are lists with one entry a `type`."""

NEVER = -1
"""The sequence of what was not set by any report."""


class StampedStatus(NamedTuple):
    """A status after a report, its stamps, and whether the report changed either."""

    status: dict[str, Any]
    stamps: bytes
    is_changed: bool


class StampNode(msgspec.Struct):
    """One place of the tree: see the module."""

    merged: int = NEVER
    set_whole: int = NEVER
    below: dict[str, "StampNode"] = msgspec.field(default_factory=lambda: cast("dict[str, StampNode]", {}))

    def to_builtins(self) -> Any:
        """As JSON values."""
        if self.merged == NEVER:
            return self.set_whole
        return [self.merged, self.set_whole, {name: node.to_builtins() for name, node in self.below.items()}]

    @classmethod
    def from_builtins(cls, builtins_value: Any) -> "StampNode":
        """Read what `to_plain` wrote."""
        if isinstance(builtins_value, int):
            return cls(set_whole=builtins_value)
        merged, set_whole, below = builtins_value
        return cls(merged, set_whole, {name: cls.from_builtins(node) for name, node in below.items()})


ABSENT: Any = msgspec.UNSET


def merge_report(
    status: Mapping[str, Any], stamps: bytes, *, report: Mapping[str, Any], incarnation: int, sequence: int
) -> StampedStatus:
    """Merge a reported status into `status` where no newer report has been merged.

    `incarnation` and `sequence` are the report's position in its stream. No argument is changed.
    """
    root = StampNode()
    if stamps:
        created, builtins_value = msgspec.json.decode(stamps)
        if created > incarnation:
            return StampedStatus(dict(status), stamps, is_changed=False)
        if created == incarnation:
            root = StampNode.from_builtins(builtins_value)
    viewed = {name: _by_type(value) if name in LISTS_BY_TYPE else value for name, value in status.items()}
    reported = {name: _by_type(value) if name in LISTS_BY_TYPE else value for name, value in report.items()}
    merged = _merge(root, viewed, reported, sequence)
    result = {name: _as_list(value) if name in LISTS_BY_TYPE else value for name, value in merged.items()}
    new_stamps = msgspec.json.encode([incarnation, root.to_builtins()])
    return StampedStatus(result, new_stamps, is_changed=result != dict(status) or new_stamps != stamps)


def is_set_by(stamps: bytes, field: str, *, incarnation: int, sequence: int) -> bool:
    """True when this very report has set a field of the status."""
    if not stamps:
        return False
    created, builtins_value = msgspec.json.decode(stamps)
    node = StampNode.from_builtins(builtins_value).below.get(field)
    return created == incarnation and node is not None and node.set_whole == sequence


def _merge(node: StampNode, value: Any, reported: Any, sequence: int) -> Any:
    if isinstance(reported, Mapping) and not isinstance(reported, _Entry):
        return _merge_map(node, value, cast("Mapping[str, Any]", reported), sequence)
    return _set_whole(node, value, reported, sequence)


def _merge_map(node: StampNode, value: Any, reported: Mapping[str, Any], sequence: int) -> Any:
    if sequence < node.set_whole:
        return value
    node.merged = max(node.merged, sequence)
    merged: dict[str, Any] = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}
    for name, part in reported.items():
        below = node.below.setdefault(name, StampNode())
        new = _merge(below, merged.get(name, ABSENT), part, sequence)
        if new is ABSENT:
            merged.pop(name, None)
        else:
            merged[name] = new
    return merged


def _set_whole(node: StampNode, value: Any, reported: Any, sequence: int) -> Any:
    if sequence < node.set_whole:
        return value
    node.set_whole = sequence
    if sequence >= node.merged:
        node.merged, node.below = NEVER, {}
        return ABSENT if reported is None else reported
    return _without_older(node, value, sequence)


def _without_older(node: StampNode, value: Any, sequence: int) -> Any:
    """The rest of a map when a report older than its newest has removed or replaced it."""
    kept: dict[str, Any] = {}
    values: Mapping[str, Any] = cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
    for name, below in list(node.below.items()):
        if max(below.merged, below.set_whole) < sequence:
            del node.below[name]
            continue
        new = values.get(name, ABSENT)
        if below.merged >= 0:
            below.set_whole = max(below.set_whole, sequence)
            new = _without_older(below, new, sequence)
        if new is not ABSENT:
            kept[name] = new
    return kept


class _Entry(dict[str, Any]):
    """A condition, which is not merged key by key."""


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
