"""Field ownership: which manager has set which fields of an object, as server-side apply keeps it. Pure.

A manager owns the fields of the manifest that it applied last, and those that it set by another write. They are kept as
an annotation with what Kubernetes has in `metadata.managedFields`, on objects alone that somebody has applied
server-side: all others have none, and cost nothing. The status is not owned.

A field is a path of Kubernetes' own elements: `f:<name>` of a mapping, `k:{"name":"a"}` an entry of a list with a key,
`v:"a"` a word of a set. Source: `structured-merge-diff/fieldpath`, `apimachinery/pkg/util/managedfields`.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, cast

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import SERVER_METADATA, Document, encode, section
from gardenbus.common.api.list_types import SETS, entries_by, key_of_entries
from gardenbus.common.api.members import Members, hashable
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
_MOST_DEPTH = 100


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
    try:
        return tuple(
            Owner(each.manager, each.operation, each.api_version, frozenset(_paths_in(each.fields_v1)), each.time)
            for each in entries
        )
    except ValueError:
        return ()


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
    changed = changed_paths(everyones | fields, before, after)
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


class FieldValues:
    """Values of a document's fields. Entries of each list are indexed once: all fields are found in one pass."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._entries: dict[tuple[int, str], Mapping[Hashable, Document]] = {}
        self._words: dict[int, Members] = {}

    def at(self, path: Path) -> Any:
        """The value of a field; True for an entry or a word that is there, ABSENT for what is not."""
        value: Any = self._document
        for element in path:
            value = self._child(value, element)
            if value is ABSENT:
                return ABSENT
        return value if path[-1].startswith("f:") else True

    def _child(self, value: Any, element: str) -> Any:
        kind, _, word = element.partition(":")
        if kind == "f":
            return cast("Document", value).get(word, ABSENT) if isinstance(value, dict) else ABSENT
        if not isinstance(value, list):
            return ABSENT
        entries = cast("list[Any]", value)
        if kind == "v":
            if id(entries) not in self._words:
                self._words[id(entries)] = Members(entries)
            return True if _decode(word) in self._words[id(entries)] else ABSENT
        key, of_key = _key_of(word)
        if (id(entries), key) not in self._entries:
            self._entries[id(entries), key] = entries_by(entries, key)
        return self._entries[id(entries), key].get(hashable(of_key), ABSENT)


def changed_paths(paths: Iterable[Path], before: Document, after: Document) -> Paths:
    """Those of some fields that have another value, came or went."""
    old, new = FieldValues(before), FieldValues(after)
    return frozenset(path for path in paths if old.at(path) != new.at(path))


def _key_of(word: str) -> tuple[str, Any]:
    """Key and value that an element `k:` names."""
    ((key, value),) = cast("Document", _decode(word)).items()
    return key, value


def without_paths(document: Document, paths: Iterable[Path]) -> Document:
    """The object without fields, and without mappings that became empty by that."""
    tree: _Tree = {}
    for path in paths:
        node = tree
        for element in path:
            node = node.setdefault(element, {})
        node[_REMOVED] = {}
    return cast("Document", _without(document, tree)) if tree else document


_Tree = dict[str, "_Tree"]
_REMOVED = ""


def _without(value: Any, tree: _Tree) -> Any:
    """The value without the fields of a tree; None where nothing is left of a mapping or list."""
    if _REMOVED in tree:
        return None
    if isinstance(value, dict):
        fields = cast("Document", value)
        names = {element.partition(":")[2]: node for element, node in tree.items() if element.startswith("f:")}
        kept = {
            name: child
            for name, each in fields.items()
            if (child := _without(each, names[name]) if name in names else each) is not None
        }
        return kept or None
    if not isinstance(value, list):
        return value
    words = Members(_decode(element[2:]) for element in tree if element.startswith("v:"))
    keyed = [(*_key_of(element[2:]), node) for element, node in tree.items() if element.startswith("k:")]
    nodes = {(key, hashable(of_key)): node for key, of_key, node in keyed}
    keys = {key for key, _, _ in keyed}
    left = [
        entry
        for each in cast("list[Any]", value)
        if each not in words and (entry := _without_entry(each, keys, nodes)) is not None
    ]
    return left or None


def _without_entry(entry: Any, keys: Iterable[str], nodes: Mapping[tuple[str, object], _Tree]) -> Any:
    if isinstance(entry, dict):
        fields = cast("Document", entry)
        for key in keys:
            if key in fields and (node := nodes.get((key, hashable(fields[key])))) is not None:
                return _without(fields, node)
    return cast("Any", entry)


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
    """The fields of nested mappings. Raises ValueError for an element that is none, and where they are too deep."""
    if len(at) > _MOST_DEPTH:
        raise ValueError("the fields are nested too deeply")
    if not tree and at:
        yield at
    for element, child in tree.items():
        if element == _MEMBER and at:
            yield at
        elif isinstance(child, dict):
            _check_element(element)
            yield from _paths_in(cast("Document", child), (*at, element))


def _check_element(element: str) -> None:
    """Raise ValueError for what is neither a name, nor an entry's key, nor a word."""
    kind, _, word = element.partition(":")
    if kind == "f":
        return
    try:
        value = _decode(word) if kind in ("k", "v") else None
    except msgspec.MsgspecError as error:
        raise ValueError(element[:80]) from error
    is_key = isinstance(value, dict) and len(cast("Document", value)) == 1
    if not (is_key if kind == "k" else kind == "v"):
        raise ValueError(element[:80])
