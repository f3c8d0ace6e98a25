"""Changes of documents: JSON patches (RFC 6902), patches that replace a manifest, labels to set. Pure."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from gardenbus.cli.manifests.files import as_mapping
from gardenbus.common.api.document import SEED_LABEL_PREFIX, STATUS_LABEL, Document
from gardenbus.common.api.garden.tolerations import UNCHECKED_TOLERATIONS
from gardenbus.common.api.merge_patches import merge_patch_between
from gardenbus.common.errors import BadRequest

_OPERATIONS = ("add", "remove", "replace", "move", "copy", "test")
_ABSENT = object()
_SYSTEM_PAIRS = frozenset(
    {STATUS_LABEL, "gardener.cloud/created-by", "deletion.gardener.cloud/confirmed-by", UNCHECKED_TOLERATIONS}
)
"""Labels and annotations that only the apiserver writes."""


class Pairs(NamedTuple):
    """Labels or annotations to be set (by key) and to be taken away."""

    given: Mapping[str, str]
    gone: Sequence[str]

    @property
    def patch(self) -> dict[str, str | None]:
        """The merge patch for them."""
        return {**self.given, **dict.fromkeys(self.gone)}

    def already(self, present: Mapping[str, Any]) -> list[str]:
        """Keys that are set already, as `key (value)`."""
        return [f"{key} ({present[key]})" for key, value in self.given.items() if present.get(key, value) != value]


def split_pairs(words: Sequence[str]) -> tuple[list[str], Pairs]:
    """Separate `KIND NAME…` from `KEY=VALUE` and `KEY-`. Raises BadRequest when there is nothing to set or remove."""
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
        raise BadRequest("give KEY=VALUE to set, or KEY- to remove")
    if both := sorted(given.keys() & set(gone)):
        raise BadRequest(f"{both[0]}: set or remove, not both")
    return objects, Pairs(given, gone)


def replacing_patch(present: Document, given: Document) -> Document:
    """The merge patch that makes `present` what a manifest says, but for what the system sets; {} when it is that.

    Finalizers and owners, the system's labels and annotations and a placed shoot's seed stay unless the manifest has
    them.
    """
    old, new = as_mapping(present.get("metadata")), as_mapping(given.get("metadata"))
    kept = {name: old[name] for name in ("finalizers", "ownerReferences") if name in old and name not in new}
    pairs = {
        name: {**_system_pairs(as_mapping(old.get(name))), **as_mapping(new.get(name))}
        for name in ("labels", "annotations")
        if name in old or name in new
    }
    after = {**given, "metadata": {**new, **kept, **pairs}}
    spec, seed = as_mapping(given.get("spec")), as_mapping(present.get("spec")).get("seedName")
    if present.get("kind") == "Shoot" and seed and "seedName" not in spec:
        after["spec"] = {**spec, "seedName": seed}
    return merge_patch_between(present, after)


def _system_pairs(pairs: Document) -> Document:
    return {key: value for key, value in pairs.items() if key in _SYSTEM_PAIRS or key.startswith(SEED_LABEL_PREFIX)}


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
    import jsonpatch  # noqa: PLC0415  few commands patch
    from jsonpointer import JsonPointerException  # noqa: PLC0415  as above

    if not isinstance(operations, list):
        raise BadRequest("a JSON patch is a list of operations: [{op: replace, path: /spec/purpose, value: testing}]")
    result: Any = copy.deepcopy(document)
    for number, each in enumerate(cast("list[Any]", operations)):
        operation = as_mapping(each)
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
