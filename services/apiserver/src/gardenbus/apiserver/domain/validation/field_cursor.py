"""Field cursor that collects validation errors with their paths.

`null` counts as absent everywhere, as in Gardener's API. A value of the wrong type is reported once and then treated as
absent, so that one mistake is one problem.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from gardenbus.common.api.document import Document
from gardenbus.common.api.shown_values import shown
from gardenbus.common.errors import FieldProblem, InvalidResource

StringRule = Callable[[str], str]
"""Rule of a string: what is wrong with it, "" when nothing is."""

_SHOWN = 80
_MOST_PROBLEMS = 100
_NAME_END = re.compile(r"[.\[]")


class FieldErrors:
    """The problems found so far."""

    def __init__(self, most: int = _MOST_PROBLEMS) -> None:
        self._most = most
        self._problems: dict[FieldProblem, None] = {}
        self._missing: dict[str, FieldProblem] = {}

    def add_missing(self, path: str, message: str) -> None:
        """Note a mapping that is needed and absent, unless fields of it are noted: then these say what to write."""
        if not any(problem.field.startswith(f"{path}.") for problem in self._problems):
            self.add_error(path, message)
            self._missing[path] = FieldProblem(path, message)

    def add_error(self, path: str, message: str) -> None:
        """Note one problem."""
        for missing in [each for each in self._missing if path.startswith(f"{each}.")]:
            self._problems.pop(self._missing.pop(missing), None)
        problem = FieldProblem(path, message)
        if len(self._problems) < self._most:
            self._problems[problem] = None

    def __len__(self) -> int:
        return len(self._problems)

    def sort_by_field(self, order: Sequence[str], *, since: int) -> None:
        """Put the problems after so many others into the order of their fields: `metadata`, or `spec.region`."""
        if len(self._problems) < since + 2:
            return
        places = {field: place for place, field in enumerate(order)}
        problems = list(self._problems)
        rest = sorted(problems[since:], key=lambda problem: places.get(_part_of(problem.field), len(places)))
        self._problems = dict.fromkeys((*problems[:since], *rest))

    @property
    def problems(self) -> tuple[FieldProblem, ...]:
        """All of them, in the order found."""
        return tuple(self._problems)

    def raise_if_any(self, subject: str) -> None:
        """Raise InvalidResource when there are any. `subject` begins the sentence (`Shoot garden-dev/apollo`)."""
        if self._problems:
            raise invalid(self.problems, f"{subject} is invalid: ")


class FieldCursor(Struct, eq=False, gc=False):
    """Cursor on a mapping of a manifest; false where there is no mapping, and then nothing below it is required.

    Its path is put together when a problem is noted: hardly any cursor needs it.
    """

    content: Mapping[str, Any]
    step: str
    """The field that the mapping is at, or the whole path where there is nothing above."""
    errors: FieldErrors
    is_present: bool = True
    above: "FieldCursor | None" = None
    place: int | None = None
    """Place in the list at the field."""

    def __bool__(self) -> bool:
        return self.is_present

    @classmethod
    def root(cls, document: Document, errors: FieldErrors) -> "FieldCursor":
        """The manifest itself."""
        return cls(document, "", errors)

    @property
    def path(self) -> str:
        """The path of the mapping in the manifest."""
        if self.above is None:
            return self.step
        path = self.above.at(self.step)
        return path if self.place is None else f"{path}[{self.place}]"

    def at(self, field: str) -> str:
        """The path of a field here."""
        path = self.path
        return f"{path}.{field}" if path else field

    def add_error(self, field: str, message: str) -> None:
        """Note a problem with a field ("" for the place itself)."""
        self.errors.add_error(self.at(field) if field else self.path, message)

    def has(self, field: str) -> bool:
        """True when the field is present and not null."""
        return self.content.get(field) is not None

    def _get(self, field: str, expected: type | tuple[type, ...], described: str, *, required: bool) -> Any:
        value = self.content.get(field)
        if value is None:
            if required and self.is_present:
                self.add_error(field, f"is needed: {described}")
            return None
        if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
            self.add_error(field, f"must be {described}, not {shown(value)}{_hint(value, expected)}")
            return None
        return value

    def section(self, field: str, *, required: bool = False) -> "FieldCursor":
        """The mapping at a field. One that is required and absent counts as an empty one: what it needs is noted."""
        value: Document | None = self.content.get(field)
        if type(value) is dict:
            return FieldCursor(value, field, self.errors, True, self)
        if value is not None:
            value = self._get(field, dict, "a mapping", required=required)
        elif required and self.is_present:
            self.errors.add_missing(self.at(field), "is needed: a mapping")
            return FieldCursor({}, field, self.errors, True, self)
        return FieldCursor(value or {}, field, self.errors, value is not None, self)

    def nested(self, *fields: str) -> "FieldCursor":
        """The mapping at the end of a chain of fields."""
        here = self
        for field in fields:
            here = here.section(field)
        return here

    def text(
        self, field: str, *, required: bool = False, filled: bool = False, rule: StringRule | None = None
    ) -> str | None:
        """The string at a field, which keeps a rule; an empty one counts as absent, and is noted where it is needed.

        `filled`: it may be left out, but not be empty.
        """
        value: str | None = self.content.get(field)
        if type(value) is not str or not value:
            if value is None and not required:
                return None
            value = self._get(field, str, "a string", required=required)
            if value == "" and required:
                self.add_error(field, "is needed and is empty")
            elif value == "" and filled:
                self.add_error(field, "is empty: state it, or leave it out")
        if rule is not None and value and (problem := rule(value)):
            self.add_error(field, problem)
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
        """The whole number at a field, within bounds; a double is none (the parser makes 1 of 1.0)."""
        value = self.content.get(field)
        if value is None and not required:
            return None
        if type(value) is not int:
            value = self._get(field, int, "a whole number", required=required)
        if value is None:
            return None
        if least is not None and value < least:
            self.add_error(field, f"must be at least {least}, not {value}")
            return None
        if most is not None and value > most:
            self.add_error(field, f"must be at most {most}, not {value}")
            return None
        return value

    def choice(self, field: str, allowed: Sequence[str], *, required: bool = False) -> str | None:
        """The string at a field, one of a closed list."""
        value = self.text(field, required=required)
        if value is not None and value not in allowed and (value or not required):
            self.add_error(field, f"must be one of {', '.join(allowed)}, not {shown(value)}")
            return None
        return value

    def _list(self, field: str, described: str, *, required: bool = False) -> Sequence[Any]:
        """The list at a field; empty where there is none."""
        found: Any = self.content.get(field)
        if found is not None or required:
            found = self._get(field, list, described, required=required)
        return found or ()

    def entries(self, field: str, *, required: bool = False, most: int | None = None) -> Sequence["FieldCursor"]:
        """The mappings of the list at a field, of which there may be a limited number."""
        places: list[FieldCursor] = []
        for index, entry in enumerate(self._list(field, "a list", required=required)):
            if isinstance(entry, dict):
                places.append(FieldCursor(cast("Document", entry), field, self.errors, True, self, index))
            else:
                self.errors.add_error(f"{self.at(field)}[{index}]", f"must be a mapping, not {shown(entry)}")
        self._limit(field, len(places), most)
        return places

    def named_entries(self, field: str, name: str = "name", *, rule: StringRule | None = None) -> None:
        """The mappings of the list at a field have a name, each another one, which keeps a rule."""
        entries = self.entries(field)
        for entry in entries:
            entry.text(name, required=True, rule=rule)
        unique(entries, name)

    def texts(self, field: str) -> Sequence[tuple[str, str]]:
        """The non-empty strings of the list at a field, each with its path."""
        texts: list[tuple[str, str]] = []
        found = self._list(field, "a list of strings")
        path = self.at(field) if found else ""
        for index, entry in enumerate(found):
            if isinstance(entry, str) and entry:
                texts.append((f"{path}[{index}]", entry))
            else:
                self.errors.add_error(
                    f"{path}[{index}]", f"must be a string that is not empty, not {shown(entry)}{_hint(entry, str)}"
                )
        return texts

    def unique_texts(
        self, field: str, *, most: int | None = None, rule: StringRule | None = None
    ) -> Sequence[tuple[str, str]]:
        """The same, each repetition noted; their number may be limited, and each may have to keep a rule."""
        texts = self.texts(field)
        seen: set[str] = set()
        for path, text in texts:
            if text in seen:
                self.errors.add_error(path, "is in the list already: name it once")
            seen.add(text)
        self._limit(field, len(texts), most)
        for path, text in texts if rule is not None else ():
            if rule is not None and (problem := rule(text)):
                self.errors.add_error(path, problem)
        return texts

    def _limit(self, field: str, count: int, most: int | None) -> None:
        if most is not None and count > most:
            self.add_error(field, f"must be at most {most}, not {count}")

    def text_map(self, field: str, *, rule: StringRule | None = None) -> Mapping[str, str]:
        """The mapping of strings to strings at a field; each value may have to keep a rule."""
        section = self.section(field)
        found: dict[str, str] = {}
        for key, value in section.content.items():
            if isinstance(value, str):
                found[key] = value
            else:
                path = f"{section.path}[{key[:_SHOWN]}]"
                section.errors.add_error(path, f"must be a string, not {shown(value)}{_hint(value, str)}")
        for key, value in found.items() if rule is not None else ():
            if rule is not None and (problem := rule(value)):
                section.errors.add_error(f"{section.path}[{key[:_SHOWN]}]", problem)
        return found

    def same_as(self, old: Mapping[str, Any] | None, field: str, why: str) -> None:
        """Note a field that differs from the old content though it may not, once it was set."""
        before, value = (old or {}).get(field), self.content.get(field)
        if before not in (None, "") and value != before and _stated(value) != _stated(before):
            self.add_error(field, f"cannot be changed ({shown(before)} stays): {why}")

    def unchanged(self, old: Mapping[str, Any], field: str, why: str) -> None:
        """Note a field that differs from the old content, also one that was not set; null and "" count as absent."""
        before, value = (content.get(field) or None for content in (old, self.content))
        if value != before:
            self.add_error(field, f"cannot be changed ({shown(before) if before else 'none'} stays): {why}")


def invalid(problems: Iterable[FieldProblem], subject: str = "") -> InvalidResource:
    """The error that lists problems; `subject` begins the sentence."""
    listed = tuple(problems)
    return InvalidResource(subject + "; ".join(f"{problem.field}: {problem.message}" for problem in listed), listed)


def unique(places: Sequence[FieldCursor], field: str) -> None:
    """Note entries of a list whose `field` repeats that of an earlier one."""
    seen: set[str] = set()
    for place in places:
        value = place.content.get(field)
        if not isinstance(value, str):
            continue
        if value in seen:
            place.add_error(field, f"{shown(value)} is in the list already: name it once")
        seen.add(value)


def _stated(value: Any) -> Any:
    """A value; a mapping without the fields of it that are empty, which count as absent."""
    if not isinstance(value, dict):
        return value
    return {name: below for name, below in cast("Document", value).items() if below not in (None, "", [], {})}


def _part_of(field: str) -> str:
    """The part of a spec that a field is in, as `spec.region`; for others the first field, as `metadata`."""
    first, _, rest = field.partition(".")
    return f"spec.{_NAME_END.split(rest, 1)[0]}" if first == "spec" else first


def _hint(value: Any, expected: type | tuple[type, ...]) -> str:
    return ": put it in quotes" if expected is str and isinstance(value, bool | int | float) else ""
