"""Changes of documents: labels to set, and fields that two changes are about. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from gardenbus.common.api.document import Document
from gardenbus.common.errors import BadRequest

_ABSENT = object()


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


def contested(base: Document, current: Document, patch: Document, path: str = "") -> Iterator[str]:
    """Fields that a patch is about and that have changed since the document it was made from."""
    for key, value in patch.items():
        here = f"{path}.{key}" if path else key
        old, new = base.get(key, _ABSENT), current.get(key, _ABSENT)
        if isinstance(value, dict) and isinstance(old, dict) and isinstance(new, dict):
            yield from contested(cast("Document", old), cast("Document", new), cast("Document", value), here)
        elif new not in (old, value):
            yield here
