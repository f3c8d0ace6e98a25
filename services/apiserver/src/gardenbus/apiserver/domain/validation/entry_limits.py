"""Limits on how many entries a list or mapping of a manifest has, before it is merged, completed and checked.

Each entry costs a check, and one of a pool or a selector many: what is admitted in one turn of the event loop is
bounded by these numbers, which no real manifest comes near. A patch may leave what is stored as long as it is.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from gardenbus.apiserver.domain.validation.field_cursor import FieldErrors
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import ObjectKey

MOST_ENTRIES = 1000
"""Entries of a list, or of a mapping."""

MOST_VALUES = 16 * 1024
"""Values of an object: texts, numbers, lists and mappings."""

FEWER_ENTRIES: Mapping[str, int] = {
    "workers": 200,
    "matchExpressions": 100,
    "matchLabels": 100,
    "machineImages": 200,
}
"""Entries of fields, wherever they stand, of which each costs much: here, or each time that a shoot is scheduled."""

METADATA_ENTRIES: Mapping[str, int] = {
    "labels": MOST_ENTRIES,
    "annotations": MOST_ENTRIES,
    "finalizers": 100,
    "ownerReferences": 100,
}

OPAQUE_KINDS = frozenset({
    "ConfigMap", "Secret", "ShootState", "Work", "ClusterResourceEnvelope", "ResourceEnvelope",
    "ClusterResourceSnapshot", "ResourceSnapshot", "ControllerRevision",
})  # fmt: skip
"""Kinds whose spec or data is bounded by the values of a message alone: texts and bundles that are passed on."""

LONG_KINDS = frozenset({"CloudProfile"})
"""Kinds that are bounded by their entries, and by the values of a message: they list what a provider has."""

_FEWER_QUOTED: Sequence[tuple[bytes, int]] = tuple(
    (f'"{field}"'.encode(), most) for field, most in {**FEWER_ENTRIES, **METADATA_ENTRIES}.items()
)
"""Fields of few entries as JSON has them, and how many."""

_FEWEST = min(most for _, most in _FEWER_QUOTED)

_EntryPath = tuple[str | int, ...]


def check_metadata(metadata: Document, errors: FieldErrors) -> None:
    """Note what has too many entries in metadata."""
    for field, most in METADATA_ENTRIES.items():
        value: Any = metadata.get(field)
        if isinstance(value, dict | list) and (count := len(cast("list[Any]", value))) > most:
            errors.add_error(f"metadata.{field}", _too_many(count, most))


def may_exceed(encoded: bytes) -> bool:
    """False for a manifest in JSON that is too short for any limit; cheap, as each manifest is checked.

    More entries than N have N commas between them, and a value takes a byte.
    """
    commas = encoded.count(b",")
    if commas < _FEWEST:
        return False
    if commas >= MOST_ENTRIES or len(encoded) >= MOST_VALUES:
        return True
    return any(commas >= most and quoted in encoded for quoted, most in _FEWER_QUOTED)


def check_entries(document: Document, current: Document | None = None) -> None:
    """Raise InvalidResource for a manifest with more entries than allowed, and than what is stored (`current`) has."""
    errors, kind, metadata = FieldErrors(), str(document["kind"]), section(document, "metadata")
    check_metadata(metadata, errors)
    if kind not in OPAQUE_KINDS:
        _check_content(document, errors)
    if current is not None and errors.problems:
        errors = _without_stored(errors, document, current)
    errors.raise_if_any(str(ObjectKey(kind, str(metadata.get("namespace") or ""), str(metadata["name"]))))


def _check_content(document: Document, errors: FieldErrors) -> None:
    values, most_values = 0, math.inf if document["kind"] in LONG_KINDS else MOST_VALUES
    for path, field, container in _containers(document):
        values += len(container)
        most = FEWER_ENTRIES.get(field, MOST_ENTRIES)
        if len(container) > most:
            errors.add_error(_text(path), _too_many(len(container), most))
        if values > most_values:
            errors.add_error("spec", f"has more than {MOST_VALUES:,} values: make it smaller")
            return


def _without_stored(errors: FieldErrors, document: Document, current: Document) -> FieldErrors:
    """The problems of what has become longer than it is stored."""
    before = {_text(path): len(container) for path, _, container in _containers(current, with_metadata=True)}
    after = {_text(path): len(container) for path, _, container in _containers(document, with_metadata=True)}
    before["spec"], after["spec"] = sum(before.values()), sum(after.values())
    kept = FieldErrors()
    for problem in errors.problems:
        if after.get(problem.field, 0) > before.get(problem.field, 0):
            kept.add_error(problem.field, problem.message)
    return kept


def _containers(document: Document, *, with_metadata: bool = False) -> Iterator[tuple[_EntryPath, str, list[Any]]]:
    """Lists and mappings of a manifest, with their path and the name of their field."""
    left: list[tuple[_EntryPath, str, Any]] = [
        ((name,), name, value)
        for name, value in document.items()
        if name != "status" and (with_metadata or name != "metadata")
    ]
    while left:
        path, field, value = left.pop()
        if isinstance(value, dict):
            found = cast("Document", value)
            yield path, field, cast("list[Any]", found)
            left += [((*path, name), name, each) for name, each in found.items() if isinstance(each, dict | list)]
        elif isinstance(value, list):
            entries = cast("list[Any]", value)
            yield path, field, entries
            left += [((*path, at), field, each) for at, each in enumerate(entries) if isinstance(each, dict | list)]


def _too_many(count: int, most: int) -> str:
    return f"has {count:,} entries, {most:,} are allowed"


def _text(path: _EntryPath) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step[:80]}" if text else step[:80]
    return text
