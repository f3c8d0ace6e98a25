"""Strategic merge patches: lists whose entries have a key are merged entry by entry, with Kubernetes' directives.

Typed clients send them for Kubernetes' own kinds, and Gardener's binaries for theirs. The same merge, without
directives, is what an apply makes of an object.
"""

from collections.abc import Sequence
from typing import Any, cast

from gardenbus.common.api.document import Document
from gardenbus.common.api.list_types import LIST_KEYS, SETS
from gardenbus.common.api.members import Members
from gardenbus.common.errors import BadRequest

_PATCH, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETED = "$setElementOrder/", "$deleteFromPrimitiveList/"


def merged_strategically(present: Any, patch: Document) -> Document:
    """The document after a patch; nothing of it is changed in place. Raises BadRequest for an unknown directive."""
    old: Document = dict(cast("Document", present)) if isinstance(present, dict) else {}
    directive = patch.get(_PATCH, "merge")
    if directive not in ("merge", "replace", "delete"):
        raise BadRequest(f"$patch: {directive!r} is none of merge, replace, delete")
    if directive != "merge":
        return {} if directive == "delete" else {name: value for name, value in patch.items() if name != _PATCH}
    if _RETAIN in patch:
        old = {name: value for name, value in old.items() if name in _listed(patch[_RETAIN])}
    for name, value in patch.items():
        if name.startswith("$"):
            if name.startswith(_DELETED):
                field = name.removeprefix(_DELETED)
                deleted = Members(_listed(value))
                old[field] = [each for each in _listed(old.get(field)) if each not in deleted]
        elif value is None:
            old.pop(name, None)
        elif isinstance(value, dict):
            old[name] = merged_strategically(old.get(name), cast("Document", value))
        elif isinstance(value, list):
            order = _listed(patch.get(f"{_ORDER}{name}"))
            old[name] = _merged_list(name, _listed(old.get(name)), cast("list[Any]", value), order)
        else:
            old[name] = value
    return old


def _merged_list(name: str, old: Sequence[Any], new: Sequence[Any], order: Sequence[Any]) -> list[Any]:
    if name in SETS:
        there = Members(old)
        return [*old, *(each for each in new if each not in there)]
    key = LIST_KEYS.get(name)
    entries = [*old, *new]
    if key is None or not all(isinstance(each, dict) and (key in each or _PATCH in each) for each in entries):
        return [*new]
    if any(each.get(_PATCH) == "replace" for each in new):
        return [each for each in new if each.get(_PATCH) != "replace"]
    found: dict[str, Document] = {str(each.get(key)): each for each in old}
    for each in new:
        place = str(each.get(key))
        if each.get(_PATCH) == "delete":
            found.pop(place, None)
        else:
            found[place] = merged_strategically(found.get(place), each)
    mappings = [cast("Document", each) for each in order if isinstance(each, dict)]
    wanted = {str(each.get(key)): number for number, each in enumerate(mappings)}
    places = sorted(found, key=lambda place: wanted.get(place, len(wanted)))
    return [found[place] for place in places]


def _listed(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
