"""Places in the document of scheduling requirements: values are read there, and what is wrong is reported."""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from gardenbus.common.api.document import Document
from gardenbus.common.errors import FieldProblem


class FieldPlace(NamedTuple):
    """A place of the document, and the list for what is wrong there."""

    path: str
    problems: list[FieldProblem]

    def report(self, below: str, problem: str) -> None:
        """Add a problem of a field below, or ("") of the place itself."""
        self.problems.append(FieldProblem(f"{self.path}{below}", problem))

    def at(self, below: str) -> "FieldPlace":
        """A place below."""
        return FieldPlace(f"{self.path}{below}", self.problems)


def mapping(value: Any, place: FieldPlace, fields: Sequence[str]) -> Document:
    """A mapping without other fields than some, and without nulls."""
    if not isinstance(value, dict):
        place.report("", f"must be a mapping of {', '.join(fields)}")
        return {}
    given = cast("Document", value)
    for name in given.keys() - set(fields):
        place.report(f".{name[:80]}", f"no such field; there are {', '.join(fields)}")
    return {name: given[name] for name in fields if given.get(name) is not None}


def entries_of(value: Any, place: FieldPlace, most: int) -> list[tuple[Any, FieldPlace]]:
    """The entries of a list that is not too long, each with its place."""
    if not isinstance(value, list):
        place.report("", "must be a list")
        return []
    entries = cast("list[Any]", value)
    if len(entries) > most:
        place.report("", f"must not have more than {most} entries")
        return []
    return [(entry, place.at(f"[{number}]")) for number, entry in enumerate(entries)]


def whole_number_at(value: Any, place: FieldPlace, least: int, most: int) -> int:
    """A whole number within limits; `least` where it is none."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    place.report("", f"must be a whole number from {least} to {most}")
    return least
