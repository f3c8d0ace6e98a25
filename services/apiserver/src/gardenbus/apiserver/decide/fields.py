"""Walking a manifest with a notebook: each place knows its path, and what is wrong with it is noted, all of it.

`null` counts as absent everywhere, as it does in Gardener's API. A value of the wrong type is noted once and then
treated as absent, so that one mistake is one problem.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from gardenbus.common.errors import FieldProblem, InvalidResource
from gardenbus.common.resources.document import Document

_SHOWN = 80
_MOST_PROBLEMS = 100


class Notebook:
    """The problems found so far."""

    def __init__(self) -> None:
        self._problems: list[FieldProblem] = []

    def note(self, path: str, message: str) -> None:
        """Write one down."""
        problem = FieldProblem(path, message)
        if len(self._problems) < _MOST_PROBLEMS and problem not in self._problems:
            self._problems.append(problem)

    @property
    def problems(self) -> tuple[FieldProblem, ...]:
        """All of them, in the order found."""
        return tuple(self._problems)

    def settle(self, subject: str) -> None:
        """Raise InvalidResource when there are any. `subject` begins the sentence (`Shoot garden-dev/apollo`)."""
        if self._problems:
            listed = "; ".join(f"{problem.field}: {problem.message}" for problem in self._problems)
            raise InvalidResource(f"{subject} is invalid: {listed}", self.problems)


class Place:
    """A mapping inside a manifest, at a path."""

    __slots__ = ("content", "notebook", "path")

    def __init__(self, content: Mapping[str, Any], path: str, notebook: Notebook) -> None:
        self.content = content
        self.path = path
        self.notebook = notebook

    @classmethod
    def root(cls, document: Document, notebook: Notebook) -> "Place":
        """The manifest itself."""
        return cls(document, "", notebook)

    def at(self, field: str) -> str:
        """The path of a field here."""
        return f"{self.path}.{field}" if self.path else field

    def note(self, field: str, message: str) -> None:
        """Note a problem with a field ("" for the place itself)."""
        self.notebook.note(self.at(field) if field else self.path, message)

    def has(self, field: str) -> bool:
        """Whether the field is there and not null."""
        return self.content.get(field) is not None

    def _get(self, field: str, expected: type | tuple[type, ...], described: str, *, required: bool) -> Any:
        value = self.content.get(field)
        if value is None:
            if required:
                self.note(field, f"is needed: {described}")
            return None
        if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
            self.note(field, f"must be {described}, not {shown(value)}{_hint(value, expected)}")
            return None
        return value

    def section(self, field: str, *, required: bool = False) -> "Place | None":
        """The mapping at a field."""
        value = self.content.get(field)
        if value is None and not required:
            return None
        if type(value) is not dict:
            value = self._get(field, dict, "a mapping", required=required)
        return None if value is None else Place(cast("Document", value), self.at(field), self.notebook)

    def nested(self, *fields: str) -> "Place | None":
        """The mapping at the end of a chain of fields, when it is there."""
        here: Place | None = self
        for field in fields:
            here = here.section(field) if here else None
        return here

    def text(self, field: str, *, required: bool = False) -> str | None:
        """The string at a field; an empty one counts as absent when it is needed."""
        value: str | None = self.content.get(field)
        if (type(value) is str and value) or (value is None and not required):
            return value
        value = self._get(field, str, "a string", required=required)
        if value == "" and required:
            self.note(field, "is needed and is empty")
        return value

    def boolean(self, field: str) -> bool | None:
        """The truth value at a field."""
        value: bool | None = self.content.get(field)
        if value is None or type(value) is bool:
            return value
        return cast("bool | None", self._get(field, bool, "true or false", required=False))

    def integer(
        self, field: str, *, least: int | None = None, most: int | None = None, required: bool = False
    ) -> int | None:
        """The whole number at a field, within bounds."""
        value = self.content.get(field)
        if value is None and not required:
            return None
        if type(value) is not int:
            value = self._get(field, (int, float), "a whole number", required=required)
        if value is None:
            return None
        if isinstance(value, float):
            if not value.is_integer():
                self.note(field, f"must be a whole number, not {shown(value)}")
                return None
            value = int(value)
        if least is not None and value < least:
            self.note(field, f"must be at least {least}, not {value}")
            return None
        if most is not None and value > most:
            self.note(field, f"must be at most {most}, not {value}")
            return None
        return int(value)

    def choice(self, field: str, allowed: Sequence[str], *, required: bool = False) -> str | None:
        """The string at a field, one of a closed list."""
        value = self.text(field, required=required)
        if value is not None and value not in allowed and (value or not required):
            self.note(field, f"must be one of {', '.join(allowed)}, not {shown(value)}")
            return None
        return value

    def entries(self, field: str, *, required: bool = False) -> Sequence["Place"]:
        """The mappings of the list at a field."""
        found = self.content.get(field)
        if found is None and not required:
            return ()
        found = self._get(field, list, "a list", required=required)
        if not found:
            return ()
        places: list[Place] = []
        here = self.at(field)
        for index, entry in enumerate(cast("list[Any]", found)):
            path = f"{here}[{index}]"
            if isinstance(entry, dict):
                places.append(Place(cast("Document", entry), path, self.notebook))
            else:
                self.notebook.note(path, f"must be a mapping, not {shown(entry)}")
        return places

    def texts(self, field: str) -> Sequence[tuple[str, str]]:
        """The non-empty strings of the list at a field, each with its path."""
        if self.content.get(field) is None:
            return ()
        found = self._get(field, list, "a list of strings", required=False)
        if not found:
            return ()
        texts: list[tuple[str, str]] = []
        here = self.at(field)
        for index, entry in enumerate(cast("list[Any]", found)):
            path = f"{here}[{index}]"
            if isinstance(entry, str) and entry:
                texts.append((path, entry))
            else:
                self.notebook.note(path, f"must be a string that is not empty, not {shown(entry)}{_hint(entry, str)}")
        return texts

    def unique_texts(self, field: str) -> Sequence[tuple[str, str]]:
        """The same, each repetition noted."""
        texts = self.texts(field)
        for path, _ in _repetitions(texts):
            self.notebook.note(path, "is in the list already: name it once")
        return texts

    def text_map(self, field: str) -> Mapping[str, str]:
        """The mapping of strings to strings at a field."""
        section = self.section(field)
        if section is None:
            return {}
        found: dict[str, str] = {}
        for key, value in section.content.items():
            if isinstance(value, str):
                found[key] = value
            else:
                path = f"{section.path}[{key[:_SHOWN]}]"
                section.notebook.note(path, f"must be a string, not {shown(value)}{_hint(value, str)}")
        return found

    def same_as(self, old: Mapping[str, Any] | None, field: str, why: str) -> None:
        """Note a field that differs from the old content though it may not, once it was set."""
        before = (old or {}).get(field)
        if before not in (None, "") and self.content.get(field) != before:
            self.note(field, f"cannot be changed ({shown(before)} stays): {why}")


def unique(places: Sequence[Place], field: str) -> None:
    """Note entries of a list whose `field` repeats that of an earlier one."""
    named = [(place.at(field), value) for place in places if isinstance(value := place.content.get(field), str)]
    for path, value in _repetitions(named):
        places[0].notebook.note(path, f"{shown(value)} is in the list already: name it once")


def shown(value: Any) -> str:
    """A value as an error message shows it: short, and what it is where it is long."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return repr(value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…")
        case _:
            return str(value)[:_SHOWN]


def _hint(value: Any, expected: type | tuple[type, ...]) -> str:
    return ": put it in quotes" if expected is str and isinstance(value, bool | int | float) else ""


def _repetitions(texts: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    seen: set[str] = set()
    for path, value in texts:
        if value in seen:
            yield path, value
        seen.add(value)
