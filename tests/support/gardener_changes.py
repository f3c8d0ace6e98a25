"""Changes of manifests, made from the fields of their kinds, for Gardener's validation and for the one here.

A change takes a field away, states one that is not there, or puts another value of its type at its place: values at
the edges, values that other manifests have in a field of that name, entries that are repeated, moved or new. A case
makes one or two changes, in a new object or in a stored one; the stored one may have been changed before.
"""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any, cast

from gardenbus.common.api.document import Document
from gardenbus.common.api.fields.kinds import sent_shape
from gardenbus.common.api.fields.shapes import FieldType, ListOf, MapOf, Shape
from tests.support.gardener_results import FOLDER, OF_STORED

_TEXTS = (
    *("", "x", "other", "Not_A Name!", "a" * 64, "a" * 300, "-5s", "5m", "10.0.0.0/8", "10.5.3.1/16", "2001:db8::/48"),
    *("1.33.4", "1.34.2", "1.35.0", "no version", "*", "true", "1Gi", "5%", "a.b/c", "2020-01-01T00:00:00Z"),
)
_VALUES: Mapping[str, Sequence[Any]] = {
    "string": _TEXTS,
    "integer": (-1, 0, 1, 2, 7, 100, 101, 1024, 65536, 2**31 - 1),
    "number": (-0.1, 0, 0.5, 1, 1.1),
    "boolean": (True, False),
    "time": ("2020-01-01T00:00:00Z", "2038-01-01T00:00:00Z"),
    "duration": ("-5s", "0s", "1s", "5m0s", "1000h0m0s"),
    "bytes": ("", "eA=="),
    "quantity": ("-1", "0", "1", "100m", "2Gi", "1000000Gi"),
    "int-or-string": (-1, 0, 1, 7, "-5%", "0%", "25%", "101%", "x"),
    "open": ({}, {"a": "b"}),
}
_FREE_KEYS = ("", "key", "Not A Key!", "a/b/c", "Upper/x", "k" * 64)
_NEVER = frozenset({"status", "apiVersion", "kind", "metadata"})
_METADATA: Mapping[str, FieldType] = {"labels": MapOf("string"), "annotations": MapOf("string")}
_OF_METADATA = 0.03
_MOST_TRIES = 20

Pool = Mapping[str, Sequence[Any]]
"""Values that manifests have in fields of a name."""


def bases() -> Mapping[str, Document]:
    """Manifests that Gardener accepts, by the names of their files."""
    return {
        path.stem: json.loads(path.read_text())["base"]
        for path in sorted(FOLDER.glob("*.json"))
        if path.stem != "differences"
    }


def pool_of(documents: Sequence[Document]) -> Pool:
    """The values that manifests have in fields of a name, each once."""
    found: dict[str, dict[str, Any]] = {}

    def collect(value: Any, name: str) -> None:
        if isinstance(value, list):
            for entry in cast("list[Any]", value):
                collect(entry, name)
        elif isinstance(value, dict):
            for field, below in cast("Document", value).items():
                collect(below, field)
        if not isinstance(value, list):
            found.setdefault(name, {})[json.dumps(value)] = value

    for document in documents:
        collect(document, "")
    return {name: tuple(values.values()) for name, values in found.items()}


class Changes:
    """A source of changes that repeats itself with its seed."""

    def __init__(self, pool: Pool, seed: int) -> None:
        self._pool = pool
        self._random = Random(seed)

    def change(self, document: Document) -> Document:
        """A copy of a manifest with one change."""
        shape = sent_shape(document["apiVersion"], document["kind"])
        assert shape is not None
        fields = {name: below for name, below in shape.fields.items() if name not in _NEVER}
        found = copy.deepcopy(document)
        for _ in range(_MOST_TRIES):
            if self._random.random() < _OF_METADATA:
                self._descend(found["metadata"], Shape(_METADATA))
            else:
                self._descend(found, Shape(fields))
            if found != document:
                break
        return found

    def cases(self, name: str, base: Document, count: int) -> Iterator[tuple[str, Document, Document | None]]:
        """Names, new manifests and stored ones."""
        stored = {**base, "metadata": {**base["metadata"], **OF_STORED}}
        for number in range(count):
            kind = self._random.choice(("create", "create", "update", "update", "further"))
            old = None if kind == "create" else self.change(stored) if kind == "further" else stored
            changed = self.change(base if old is None else stored if self._random.random() < 0.1 else old)
            if self._random.random() < 0.25:
                changed = self.change(changed)
            yield f"{name}-{number}-{kind}", changed, old

    def _descend(self, holder: Any, kind: FieldType) -> None:
        """Change a mapping or a list below, or one of its own members."""
        pick = self._random
        if isinstance(kind, ListOf):
            self._change_list(holder, kind)
            return
        if isinstance(kind, MapOf):
            key = pick.choice([*holder, *_FREE_KEYS])
            self._change_member(holder, key, kind.value)
            return
        if not isinstance(kind, Shape) or not kind.fields:
            return
        stated = [name for name in kind.fields if name in holder]
        weights = [_weight(holder[name]) for name in stated]
        is_old = bool(stated) and pick.random() < 0.75
        field = pick.choices(stated, weights)[0] if is_old else pick.choice([*kind.fields])
        self._change_member(holder, field, kind.fields[field])

    def _change_member(self, holder: Document, field: str, kind: FieldType) -> None:
        value: Any = holder.get(field)
        if isinstance(value, dict | list) and value and not isinstance(kind, str) and self._random.random() < 0.9:
            self._descend(value, kind)
        elif value is not None and self._random.random() < 0.25:
            del holder[field]
        else:
            holder[field] = self._value(field, kind)

    def _change_list(self, entries: list[Any], kind: ListOf) -> None:
        pick = self._random
        way = pick.choice(("below", "below", "below", "below", "repeat", "drop", "new", "turn"))
        place = pick.randrange(len(entries))
        if way == "below" and isinstance(entries[place], dict):
            self._descend(entries[place], kind.entry)
        elif way == "below":
            entries[place] = self._value("", kind.entry)
        elif way == "repeat":
            entries.append(copy.deepcopy(entries[place]))
            if isinstance(entries[-1], dict) and pick.random() < 0.6:
                self._descend(entries[-1], kind.entry)
        elif way == "drop":
            del entries[place]
        elif way == "new":
            entries.append(self._value("", kind.entry))
        else:
            entries.reverse()

    def _value(self, field: str, kind: FieldType) -> Any:
        """A value of a type."""
        pick = self._random
        others = self._pool.get(field, ())
        if isinstance(kind, ListOf):
            return [] if pick.random() < 0.2 else [self._value(field, kind.entry)]
        if isinstance(kind, MapOf):
            return {} if pick.random() < 0.2 else {pick.choice(_FREE_KEYS): self._value("", kind.value)}
        if isinstance(kind, Shape):
            mappings = [value for value in others if _fits(value, kind)]
            if mappings and pick.random() < 0.3:
                return copy.deepcopy(pick.choice(mappings))
            count = pick.choice((0, 1, 1, 2, 3))
            fields = pick.sample([*kind.fields], min(count, len(kind.fields)))
            return {name: self._value(name, kind.fields[name]) for name in fields}
        if others and pick.random() < 0.5:
            possible = [value for value in others if _fits(value, kind)]
            if possible:
                return copy.deepcopy(pick.choice(possible))
        return copy.deepcopy(pick.choice(_VALUES[kind]))


def _fits(value: Any, kind: FieldType) -> bool:
    """True for a value that can be of a type."""
    if isinstance(kind, ListOf):
        return isinstance(value, list) and all(_fits(entry, kind.entry) for entry in cast("list[Any]", value))
    if isinstance(kind, MapOf):
        return isinstance(value, dict) and all(_fits(below, kind.value) for below in cast("Document", value).values())
    if isinstance(kind, Shape):
        return isinstance(value, dict) and all(
            name in kind.fields and _fits(below, kind.fields[name]) for name, below in cast("Document", value).items()
        )
    return type(value) in {type(one) for one in _VALUES[kind]}


def _weight(value: Any) -> int:
    """More changes go where more is stated."""
    if isinstance(value, dict):
        return 1 + sum(map(_weight, cast("Document", value).values()))
    return 1 + sum(map(_weight, cast("list[Any]", value))) if isinstance(value, list) else 1
