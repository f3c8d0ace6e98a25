"""JSON patches (RFC 6902). Needs the extra `patches`."""

import copy
from typing import Any, cast

from gardenbus.common.api.document import Document, encode
from gardenbus.common.errors import BadRequest

_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_ABSENT = object()

MOST_OPERATIONS = 10_000
"""Most operations of one patch, as kube-apiserver has it."""

MOST_COPIED_BYTES = 3 * 1024 * 1024
"""Most bytes of JSON that the copies of one patch may add together: a value that is copied into itself doubles."""


def patched(document: Document, operations: object) -> Document:
    """A document after a JSON patch. Raises BadRequest with the operation that cannot be carried out."""
    import jsonpatch  # noqa: PLC0415  few commands patch
    from jsonpointer import JsonPointerException  # noqa: PLC0415  as above

    if not isinstance(operations, list):
        raise BadRequest("a JSON patch is a list of operations: [{op: replace, path: /spec/purpose, value: testing}]")
    if (count := len(cast("list[Any]", operations))) > MOST_OPERATIONS:
        raise BadRequest(f"a JSON patch has {MOST_OPERATIONS:,} operations at most, not {count:,}: send several")
    result: Any = copy.deepcopy(document)
    copied = 0
    for number, each in enumerate(cast("list[Any]", operations)):
        operation = cast("Document", each) if isinstance(each, dict) else {}
        name, path = operation.get("op"), operation.get("path")
        try:
            copied = _copied(result, _checked(operation), copied)
            result = jsonpatch.JsonPatch([operation]).apply(result, in_place=True)
        except jsonpatch.JsonPatchTestFailed as error:
            raise BadRequest(f"operation {number} ({name}): {_difference(result, operation)}") from error
        except (jsonpatch.JsonPatchException, JsonPointerException, KeyError, TypeError, ValueError) as error:
            raise BadRequest(f"operation {number} ({name}): there is no {path}") from error
        except BadRequest as error:
            raise BadRequest(f"operation {number} ({name}): {error.message}") from error
    return result


def _checked(operation: Document) -> Document:
    path = operation.get("path")
    if operation.get("op") not in _OPERATIONS or not isinstance(path, str):
        raise BadRequest(f"op is one of {', '.join(_OPERATIONS)}, and path a text")
    if path and not path.startswith("/"):
        raise BadRequest(f"path {path!r}: begins with /")
    return operation


def _copied(document: Document, operation: Document, before: int) -> int:
    """Bytes that a patch has copied after an operation, before it is carried out. Raises BadRequest for too many."""
    from jsonpointer import resolve_pointer  # noqa: PLC0415  few commands patch

    if operation["op"] != "copy":
        return before
    copied = before + len(encode(resolve_pointer(document, operation["from"])))
    if copied > MOST_COPIED_BYTES:
        raise BadRequest(f"the copies of one patch add {MOST_COPIED_BYTES:,} bytes at most: send several")
    return copied


def _difference(document: Document, operation: Document) -> str:
    """Message of a failed `test`."""
    from jsonpointer import resolve_pointer  # noqa: PLC0415  few commands patch

    path = operation["path"]
    value: Any = resolve_pointer(document, path, _ABSENT)
    return f"there is no {path}" if value is _ABSENT else f"{path} is {value!r}, not {operation.get('value')!r}"
