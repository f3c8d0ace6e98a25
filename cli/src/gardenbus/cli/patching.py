"""Changes of documents: JSON patches (RFC 6902), merge patches (RFC 7396) between two states, labels to set. Pure."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from gardenbus.cli.documents import as_mapping
from gardenbus.common.errors import BadRequest
from gardenbus.common.resources.document import Document

_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_ABSENT = object()


class Pairs(NamedTuple):
    """Labels or annotations to be set (by key) and to be taken away."""

    given: Mapping[str, str]
    gone: Sequence[str]

    @property
    def patch(self) -> dict[str, str | None]:
        """As part of a merge patch."""
        return {**self.given, **dict.fromkeys(self.gone)}

    def already(self, present: Mapping[str, Any]) -> list[str]:
        """What stands in the way unless it may be overwritten: `key (value)`."""
        return [f"{key} ({present[key]})" for key, value in self.given.items() if present.get(key, value) != value]


def split_pairs(words: Sequence[str]) -> tuple[list[str], Pairs]:
    """Tell `KIND NAME…` from `KEY=VALUE` and `KEY-`. Raises BadRequest when there is nothing to set or take away."""
    objects: list[str] = []
    given: dict[str, str] = {}
    gone: list[str] = []
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key:
            given[key] = value
        elif word.endswith("-") and len(word) > 1:
            gone.append(word[:-1])
        else:
            objects.append(word)
    if not given and not gone:
        raise BadRequest("say what to set, KEY=VALUE, or to take away, KEY-")
    if both := sorted(given.keys() & set(gone)):
        raise BadRequest(f"{both[0]}: set or take away, not both")
    return objects, Pairs(given, gone)


def merge_patch_between(before: Any, after: Any) -> Document:
    """The merge patch that makes one document of the other; {} when they are the same."""
    old, new = as_mapping(before), as_mapping(after)
    patch: Document = dict.fromkeys(key for key in old if key not in new)
    for key, value in new.items():
        if key not in old:
            patch[key] = value
        elif isinstance(value, dict) and isinstance(old[key], dict):
            if inner := merge_patch_between(old[key], value):
                patch[key] = inner
        elif value != old[key]:
            patch[key] = value
    return patch


def contested(base: Document, current: Document, patch: Document, path: str = "") -> Iterator[str]:
    """Fields that a patch is about and that have changed since the document it was made from."""
    for key, value in patch.items():
        here = f"{path}.{key}" if path else key
        old, new = base.get(key, _ABSENT), current.get(key, _ABSENT)
        if isinstance(value, dict) and isinstance(old, dict) and isinstance(new, dict):
            yield from contested(cast("Document", old), cast("Document", new), cast("Document", value), here)
        elif new not in (old, value):
            yield here


def patched(document: Document, operations: object) -> Document:
    """A document after a JSON patch. Raises BadRequest with the operation that cannot be carried out."""
    if not isinstance(operations, list):
        raise BadRequest("a JSON patch is a list of operations: [{op: replace, path: /spec/purpose, value: testing}]")
    result = copy.deepcopy(document)
    for number, each in enumerate(cast("list[Any]", operations)):
        operation = as_mapping(each)
        name = operation.get("op")
        try:
            result = _carried_out(result, operation)
        except (BadRequest, KeyError, IndexError, ValueError, TypeError) as error:
            reason = error.message if isinstance(error, BadRequest) else f"there is no {operation.get('path')}"
            raise BadRequest(f"operation {number} ({name}): {reason}") from error
    return result


def _carried_out(document: Any, operation: Document) -> Any:
    name, path = operation.get("op"), operation.get("path")
    if name not in _OPERATIONS or not isinstance(path, str):
        raise BadRequest(f"op is one of {', '.join(_OPERATIONS)}, and path a text")
    match name:
        case "test":
            if _at(document, path) != operation["value"]:
                raise BadRequest(f"{path} is {_at(document, path)!r}, not {operation['value']!r}")
            return document
        case "remove":
            return _without(document, path)
        case "replace":
            _at(document, path)
            return _with(_without(document, path), path, operation["value"])
        case "move" | "copy":
            source = str(operation.get("from"))
            value = copy.deepcopy(_at(document, source))
            return _with(_without(document, source) if name == "move" else document, path, value)
        case _:
            return _with(document, path, operation["value"])


def _keys(path: str) -> list[str]:
    if path and not path.startswith("/"):
        raise BadRequest(f"path {path!r}: begins with /")
    return [key.replace("~1", "/").replace("~0", "~") for key in path.split("/")[1:]]


def _child(parent: Any, key: str) -> Any:
    return cast("list[Any]", parent)[int(key)] if isinstance(parent, list) else parent[key]


def _at(document: Any, path: str) -> Any:
    for key in _keys(path):
        document = _child(document, key)
    return document


def _parent(document: Any, path: str) -> tuple[Any, str]:
    *before, last = _keys(path)
    for key in before:
        document = _child(document, key)
    return document, last


def _without(document: Any, path: str) -> Any:
    if not path:
        return {}
    parent, last = _parent(document, path)
    del parent[int(last) if isinstance(parent, list) else last]
    return document


def _with(document: Any, path: str, value: Any) -> Any:
    if not path:
        return value
    parent, last = _parent(document, path)
    if isinstance(parent, list):
        entries = cast("list[Any]", parent)
        at = len(entries) if last == "-" else int(last)
        if not 0 <= at <= len(entries):
            raise IndexError(last)
        entries.insert(at, value)
    else:
        parent[last] = value
    return document
