"""Finds the field that was probably meant by a name that is none."""

from collections import deque
from collections.abc import Sequence

from Levenshtein import distance

from gardenbus.common.api.fields.shapes import ListOf, MapOf, Shape

_FEW = 12
"""Fields that are listed where none is similar."""


def suggestion(name: str, shape: Shape, path: Sequence[str | int], root: Shape) -> str:
    """End of a sentence about an unknown field: a similar field, its right place, or the fields there are."""
    if similar := _similar(name, shape):
        return f"; did you mean `{similar}`?"
    if place := _place_of(name, root):
        return f" here; did you mean `{place}`?"
    if 0 < len(shape.fields) <= _FEW and path:
        return f"; there are {', '.join(sorted(shape.fields))}"
    return ""


def _similar(name: str, shape: Shape) -> str:
    folded = name[:80].lower()
    allowed = 1 if len(folded) <= 3 else max(2, len(folded) // 3)  # noqa: PLR2004  short words resemble each other
    near = sorted((distance(folded, field.lower()), field) for field in shape.fields)
    return near[0][1] if near and near[0][0] <= allowed else ""


def _place_of(name: str, root: Shape) -> str:
    """The shortest path at which a field of that name belongs; "" where there is none."""
    waiting = deque([("", root)])
    while waiting:
        path, shape = waiting.popleft()
        for field, kind in shape.fields.items():
            if field in ("metadata", "status"):
                continue
            here = f"{path}.{field}".removeprefix(".")
            if field == name:
                return here
            while isinstance(kind, ListOf | MapOf):
                here += "[]" if isinstance(kind, ListOf) else "[*]"
                kind = kind.entry if isinstance(kind, ListOf) else kind.value  # noqa: PLW2901
            if isinstance(kind, Shape):
                waiting.append((here, kind))
    return ""
