"""JSON patches (RFC 6902). Needs the extra `patches`."""

import copy
from typing import Any, cast

from gardenbus.common.api.document import Document
from gardenbus.common.errors import BadRequest

_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_ABSENT = object()


def patched(document: Document, operations: object) -> Document:
    """A document after a JSON patch. Raises BadRequest with the operation that cannot be carried out."""
    import jsonpatch  # noqa: PLC0415  few commands patch
    from jsonpointer import JsonPointerException  # noqa: PLC0415  as above

    if not isinstance(operations, list):
        raise BadRequest("a JSON patch is a list of operations: [{op: replace, path: /spec/purpose, value: testing}]")
    result: Any = copy.deepcopy(document)
    for number, each in enumerate(cast("list[Any]", operations)):
        operation = cast("Document", each) if isinstance(each, dict) else {}
        name, path = operation.get("op"), operation.get("path")
        try:
            result = jsonpatch.JsonPatch([_checked(operation)]).apply(result, in_place=True)
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


def _difference(document: Document, operation: Document) -> str:
    """Message of a failed `test`."""
    from jsonpointer import resolve_pointer  # noqa: PLC0415  few commands patch

    path = operation["path"]
    value: Any = resolve_pointer(document, path, _ABSENT)
    return f"there is no {path}" if value is _ABSENT else f"{path} is {value!r}, not {operation.get('value')!r}"
