"""Field ownership: which manager has set which fields of an object, as server-side apply keeps it. Pure.

A manager owns the fields of the manifest that it applied last, and those that it set by another write. They are kept as
an annotation with what Kubernetes has in `metadata.managedFields`, on objects alone that somebody has applied
server-side: all others have none, and cost nothing. The status is not owned.

A field is a path of Kubernetes' own elements: `f:<name>` of a mapping, `k:{"name":"a"}` an entry of a list with a key,
`v:"a"` a word of a set. Source: `structured-merge-diff/fieldpath`, `apimachinery/pkg/util/managedfields`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, cast

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import SERVER_METADATA, Document, encode, section
from gardenbus.common.api.list_types import SETS, entry_with, key_of_entries
from gardenbus.common.api.merge_patches import SYSTEM_PAIRS

OWNERS_ANNOTATION = "gardenbus.io/managed-fields"

Path = tuple[str, ...]
"""Elements of a field, outermost first."""

Paths = frozenset[Path]

ABSENT = object()
"""Value of a field that is not there."""

BEFORE_FIRST_APPLY = "before-first-apply"
"""The manager of what an object has when it is applied for the first time. Source: `managedfields/internal`."""

OTHER_WRITES = "gardenbus"
"""The manager of what is written by anybody who names no manager."""

_UNOWNED = ("apiVersion", "kind", "status")
_UNOWNED_METADATA = frozenset({*SERVER_METADATA, "name", "namespace", "generateName"})
_UNOWNED_PAIRS = SYSTEM_PAIRS | {OWNERS_ANNOTATION}
_MEMBER = "."


class Owner(NamedTuple):
    """A manager, and the fields that it owns by applies or by other writes."""

    manager: str
    operation: Literal["Apply", "Update"]
    api_version: str
    paths: Paths
    time: str = ""


class _ManagedFields(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    manager: str
    operation: Literal["Apply", "Update"]
    api_version: str
    fields_v1: Document = msgspec.field(name="fieldsV1", default_factory=dict[str, Any])
    fields_type: str = ""
    time: str = ""


_decode_entries = json_decoder(list[_ManagedFields])
_decode = json_decoder()


# ---------------------------------------------------------------------------------------------- owners of an object


def owners_of(document: Document) -> tuple[Owner, ...]:
    """The owners of an object's fields; none where nobody has applied it, or the annotation cannot be read."""
    text = section(document, "metadata", "annotations").get(OWNERS_ANNOTATION)
    if not isinstance(text, str):
        return ()
    try:
        entries = _decode_entries(text)
    except msgspec.MsgspecError:
        return ()
    return tuple(
        Owner(each.manager, each.operation, each.api_version, frozenset(_paths_in(each.fields_v1)), each.time)
        for each in entries
    )


def with_owners(document: Document, owners: Iterable[Owner]) -> Document:
    """The object with owners, without those that own nothing."""
    entries = [
        _ManagedFields(each.manager, each.operation, each.api_version, fields_v1(each.paths), "FieldsV1", each.time)
        for each in owners
        if each.paths
    ]
    metadata = section(document, "metadata")
    annotations = {**section(metadata, "annotations"), OWNERS_ANNOTATION: encode(entries).decode()}
    return {**document, "metadata": {**metadata, "annotations": annotations}}


def managed_fields(text: str) -> list[Document]:
    """The annotation as `metadata.managedFields` has it; nothing where it cannot be read."""
    try:
        return cast("list[Document]", msgspec.to_builtins(_decode_entries(text)))
    except msgspec.MsgspecError:
        return []


def states_owners(document: Document) -> bool:
    """True for a manifest or patch that says whose fields the object has after it."""
    return section(document, "metadata", "annotations").get(OWNERS_ANNOTATION) is not None


def updated(before: Document, after: Document, manager: str = OTHER_WRITES) -> Document:
    """The object after a write of a manager, who owns the fields that it has changed, and others no longer.

    An object without owners stays without.
    """
    owners = owners_of(before)
    if not owners:
        return after
    everyones = frozenset(path for each in owners for path in each.paths)
    fields = paths_of(after)
    changed = frozenset(path for path in everyones | fields if value_at(before, path) != value_at(after, path))
    if not changed:
        return after
    own = next((each for each in owners if (each.manager, each.operation) == (manager, "Update")), None)
    others = [each._replace(paths=each.paths - changed) for each in owners if each is not own]
    kept = own.paths - changed if own else frozenset[Path]()
    new = Owner(manager, "Update", str(after.get("apiVersion") or ""), kept | (changed & fields))
    return with_owners(after, [*others, new])


# ---------------------------------------------------------------------------------------------- paths


def paths_of(document: Document) -> Paths:
    """The fields of a manifest that can be owned: leaves, and entries of lists with a key."""
    metadata = {name: value for name, value in section(document, "metadata").items() if name not in _UNOWNED_METADATA}
    for name in ("labels", "annotations"):
        pairs = {key: text for key, text in section(metadata, name).items() if key not in _UNOWNED_PAIRS}
        metadata.pop(name, None)
        metadata |= {name: pairs} if pairs else {}
    own = {name: value for name, value in document.items() if name not in (*_UNOWNED, "metadata")}
    return frozenset(_leaves((), own | ({"metadata": metadata} if metadata else {})))


def _leaves(at: Path, value: Any, name: str = "") -> Iterator[Path]:
    if isinstance(value, dict) and value:
        for key, child in cast("Document", value).items():
            yield from _leaves((*at, f"f:{key}"), child, key)
    elif isinstance(value, list) and name in SETS:
        yield from ((*at, f"v:{encode(each).decode()}") for each in cast("list[Any]", value))
    elif isinstance(value, list) and value and (key := key_of_entries(name, cast("list[Any]", value))):
        for entry in cast("list[Document]", value):
            place = (*at, f"k:{encode({key: entry[key]}).decode()}")
            yield place
            yield from _leaves(place, entry)
    elif at:
        yield at


def value_at(document: Document, path: Path) -> Any:
    """The value of a field; True for an entry or a word that is there, ABSENT for what is not."""
    value: Any = document
    for element in path:
        value = _child(value, element)
        if value is ABSENT:
            return ABSENT
    return value if path[-1].startswith("f:") else True


def _child(value: Any, element: str) -> Any:
    kind, _, word = element.partition(":")
    if kind == "f":
        return cast("Document", value).get(word, ABSENT) if isinstance(value, dict) else ABSENT
    entries: Sequence[Any] = cast("list[Any]", value) if isinstance(value, list) else ()
    if kind == "v":
        return True if _decode(word) in entries else ABSENT
    entry = _entry_of(entries, word)
    return ABSENT if entry is None else entry


def _entry_of(entries: Sequence[Any], word: str) -> Document | None:
    """The entry of a list that an element `k:` names."""
    ((key, value),) = cast("Document", _decode(word)).items()
    return entry_with(entries, key, value)


def without_paths(document: Document, paths: Iterable[Path]) -> Document:
    """The object without fields, and without mappings that became empty by that."""
    found: Any = document
    for path in sorted(paths, key=len):  # an entry before its fields
        found = _without(found, path)
    return found


def _without(value: Any, path: Path) -> Any:
    """The value without a field; None where nothing is left of a mapping or list."""
    kind, _, word = path[0].partition(":")
    if kind == "f":
        if not isinstance(value, dict) or word not in value:
            return cast("Any", value)
        fields = cast("Document", value)
        child = _without(fields[word], path[1:]) if len(path) > 1 else None
        kept = {**fields, word: child} if child is not None else {name: fields[name] for name in fields if name != word}
        return kept or None
    entries: list[Any] = cast("list[Any]", value) if isinstance(value, list) else []
    if kind == "v":
        return [each for each in entries if each != _decode(word)] or None
    entry = _entry_of(entries, word)
    if entry is None:
        return entries
    if len(path) == 1:
        return [each for each in entries if each is not entry] or None
    return [_without(each, path[1:]) if each is entry else each for each in entries]


def written(path: Path) -> str:
    """A field as Kubernetes writes it in messages: `.spec.workers[name="a"].minimum`."""
    return "".join(_element(element) for element in path)


def _element(element: str) -> str:
    kind, _, word = element.partition(":")
    if kind == "f":
        return f".{word}"
    if kind == "v":
        return f"[={word}]"
    return "[" + ",".join(f"{name}={encode(value).decode()}" for name, value in _decode(word).items()) + "]"


def fields_v1(paths: Iterable[Path]) -> Document:
    """Fields in Kubernetes' form of nested mappings."""
    tree: Document = {}
    for path in sorted(paths):
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        if path[-1].startswith("k:"):
            node[_MEMBER] = {}
    return tree


def _paths_in(tree: Document, at: Path = ()) -> Iterator[Path]:
    if not tree and at:
        yield at
    for element, child in tree.items():
        if element == _MEMBER:
            yield at
        elif isinstance(child, dict):
            yield from _paths_in(cast("Document", child), (*at, element))
