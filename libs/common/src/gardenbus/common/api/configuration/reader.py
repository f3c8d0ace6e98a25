"""Strict reader of component configurations: a table of fields for each kind, and every problem with its path.

A table maps the names in a file to a nested table or a `Field`. Names that are not in it are problems unless it has an
entry `OTHERS`. Null counts as absent. Defaults are those of the structs that are built of what was read.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from math import inf
from typing import Any, NamedTuple, TypeVar, cast

import yaml

from gardenbus.common.api.document import Document
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.api.names import LABEL
from gardenbus.common.errors import SettingsInvalid

T = TypeVar("T")
FieldParser = Callable[[Any], Any]
"""Checks a value and returns what is kept of it, None for nothing. Raises ValueError."""

_LARGEST_PORT = 65_535
_LONGEST_DAYS = 36_500
_LONGEST = timedelta(days=_LONGEST_DAYS)
"""A file that says more is mistaken; and what is added to an instant must not lead beyond the year 9999."""
_YEARS = " (100 years)"
_MOST = 100_000
"""Largest count: of workers, or of a lease's seconds, which are multiplied by the renewals that may be missed."""


_HEAVIEST = 100
"""Largest weight of a score."""

_NO_FIELD = ": no such field"


class Field(NamedTuple):
    """A field of a file.

    `attribute` is where its value is kept, with dots for nested structs; one that ends in a dot is a mapping, by the
    field's name. Without an attribute the value is checked and dropped, and listed as ignored if `is_ignored`.
    """

    attribute: str = ""
    parse: FieldParser = lambda value: value
    is_required: bool = False
    is_ignored: bool = False


Table = Mapping[str, "Field | Entries | Mapping[str, Any]"]


class Entries(NamedTuple):
    """A list of mappings, each of which is read by a table and made a struct; `attribute` as that of a `Field`."""

    attribute: str
    table: Table
    make: Callable[..., Any]
    description: str
    may_be_empty: bool = False


OTHERS = "*"
"""Entry of a table for all fields that it does not name."""

ACCEPTED = Field()
"""A field that is neither read nor listed as ignored."""


class Reading(NamedTuple):
    """The values by attribute (nested), the paths of ignored fields, and the problems as `path: message`."""

    values: dict[str, Any]
    ignored: list[str]
    problems: list[str]


def ignored(*names: str, parse: FieldParser = lambda value: value) -> dict[str, Field]:
    """Table entries of fields that are accepted without effect."""
    return dict.fromkeys(names, Field(parse=parse, is_ignored=True))


def header(api_version: str, kind: str) -> dict[str, Field]:
    """Table entries of apiVersion and kind."""
    return {
        name: Field(parse=exactly(expected), is_required=True)
        for name, expected in (("apiVersion", api_version), ("kind", kind))
    }


def logging() -> dict[str, Field]:
    """Table entries of logLevel and logFormat."""
    return {
        "logLevel": Field("log_level", one_of("debug", "info", "error")),
        "logFormat": Field("log_format", one_of("json", "text")),
    }


def read_one(text: str | bytes, table: Table, complete: Callable[[Reading], None] | None = None) -> dict[str, Any]:
    """Read a file of one document (YAML or JSON): its values, and the ignored paths as `ignored`.

    `complete` may change the values, and add problems that no table finds. Raises SettingsInvalid with all problems.
    """
    try:
        document: object = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsInvalid((f"the configuration is not YAML: {_one_line(error)}",)) from error
    if not isinstance(document, dict):
        raise SettingsInvalid((f"the configuration is no mapping but {type(document).__name__}",))
    reading = read(document, table)  # pyright: ignore[reportUnknownArgumentType]
    if complete is not None:
        complete(reading)
    if reading.problems:
        raise SettingsInvalid(tuple(reading.problems))
    return {**reading.values, "ignored": tuple(reading.ignored)}


def load_all(text: str | bytes, *, source: str) -> list[object]:
    """All documents of a file but empty ones. Raises SettingsInvalid when it is no YAML."""
    try:
        return [document for document in yaml.safe_load_all(text) if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsInvalid((f"{source}: is no YAML: {_one_line(error)}",)) from error


def read(document: object, table: Table) -> Reading:
    """Read a document by a table."""
    reading = Reading({}, [], [])
    _walk(document, table, "", reading)
    places = list(_places(table))
    reading.problems[:] = [each + _hint(each, places) for each in reading.problems]
    return reading


def is_unknown_field(problem: str) -> bool:
    """True for a problem of `read` that is a field which does not exist."""
    return _NO_FIELD in problem


def _places(table: Table, path: str = "") -> Iterator[str]:
    """The paths of all fields of a table, without the numbers of entries."""
    for name, entry in table.items():
        below = f"{path}.{name}" if path else name
        if name != OTHERS:
            yield below
        if not isinstance(entry, Field):
            yield from _places(entry.table if isinstance(entry, Entries) else entry, below)


def _hint(problem: str, places: Sequence[str]) -> str:
    """The places or names that may have been meant by a field that does not exist."""
    path, found, _ = problem.partition(_NO_FIELD)
    if not found:
        return ""
    parent, _, name = re.sub(r"\[\d+\]", "", path).rpartition(".")
    elsewhere = [place for place in places if place.rpartition(".")[2].lower() == name.lower()]
    beside = {place.rpartition(".")[2]: place for place in places if place.rpartition(".")[0] == parent}
    near = elsewhere or [beside[each] for each in get_close_matches(name, beside, n=1)]
    return f"; did you mean {' or '.join(near[:2])}?" if near else ""


def _walk(value: object, table: Table, path: str, reading: Reading) -> None:
    fields: Mapping[str, Any] = cast("Document", value) if isinstance(value, dict) else {}
    if value is not None and not isinstance(value, dict):
        reading.problems.append(f"{path or 'configuration'}: must be a mapping, is {value!r}")
    others = table.get(OTHERS)
    for name in dict.fromkeys((*table, *fields)):
        entry = table.get(name, others)
        if name == OTHERS and name not in fields:
            continue
        below = f"{path}.{name}" if path else f"{name}"
        if entry is None:
            reading.problems.append(f"{below}{_NO_FIELD}")
        elif isinstance(entry, Field):
            _read_field(name, fields.get(name), entry, below, reading)
        elif isinstance(entry, Entries):
            _read_entries(fields.get(name), entry, below, reading)
        else:
            _walk(fields.get(name), entry, below, reading)


def _read_field(name: str, value: object, field: Field, path: str, reading: Reading) -> None:
    if value is None and not field.is_required:
        return
    try:
        parsed = field.parse(value)
    except ValueError as error:
        reading.problems.append(f"{path}: {error}")
        return
    if field.is_ignored:
        reading.ignored.append(path)
    elif field.attribute and parsed is not None:
        _keep(field.attribute, name, parsed, reading)


def _keep(path: str, name: str, value: object, reading: Reading) -> None:
    *groups, attribute = path.split(".")
    values = reading.values
    for group in groups:
        values = values.setdefault(group, {})
    values[attribute or name] = value


def _read_entries(value: object, entries: Entries, path: str, reading: Reading) -> None:
    if value is None:
        return
    if not isinstance(value, list) or not (value or entries.may_be_empty):
        reading.problems.append(f"{path}: must be a list of {entries.description}, is {value!r}")
        return
    found: list[Any] = []
    for number, entry in enumerate(cast("list[object]", value)):
        below = Reading({}, reading.ignored, reading.problems)
        _walk(entry, entries.table, f"{path}[{number}]", below)
        found.append(entries.make(**below.values))
    _keep(entries.attribute, "", tuple(found), reading)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def checked(is_valid: Callable[[Any], bool], expectation: str) -> FieldParser:
    """A parser that keeps a valid value as it is."""

    def parse(value: Any) -> Any:
        if not is_valid(value):
            raise ValueError(f"{expectation}, is {value!r}")
        return value

    return parse


def exactly(expected: str) -> FieldParser:
    """A parser of one text alone."""
    return checked(lambda value: value == expected, f"must be {expected}")


def one_of(*choices: str) -> FieldParser:
    """A parser of one of some texts; an empty one counts as absent."""
    parse = checked(lambda value: value in choices, f"must be one of {', '.join(choices)}")
    return lambda value: None if value == "" else parse(value)


def _at_most(most: float, parse: FieldParser, of: str = "") -> FieldParser:
    """A parser of numbers that another takes, up to a bound."""
    is_small_enough = checked(lambda value: value <= most, f"must not be above {most:.0f}{of}")
    return lambda value: is_small_enough(parse(value))


def duration_from(least: timedelta, expectation: str = "") -> FieldParser:
    """A parser of durations that are not below another, and not above 100 years."""
    is_long_enough = checked(
        lambda value: parse_duration(value) >= least, expectation or f"must not be below {least.total_seconds():g}s"
    )
    is_short_enough = checked(
        lambda value: parse_duration(value) <= _LONGEST, f"must not be above {24 * _LONGEST_DAYS}h{_YEARS}"
    )
    return lambda value: parse_duration(is_short_enough(is_long_enough(value)))


def _is_number(value: object, types: type | tuple[type, ...] = (int, float)) -> bool:
    return isinstance(value, types) and not isinstance(value, bool)


def _is_mapping_of(value: object, of: type) -> bool:
    return isinstance(value, dict) and all(
        isinstance(name, str) and isinstance(each, of) for name, each in cast("dict[Any, Any]", value).items()
    )


text = checked(lambda value: isinstance(value, str), "must be a text")
name = checked(lambda value: isinstance(value, str) and value != "", "must be a text")
label = checked(
    lambda value: isinstance(value, str) and LABEL.fullmatch(value) is not None,
    "must be a lower-case RFC 1123 label",
)
flag = checked(lambda value: isinstance(value, bool), "must be true or false")
count = _at_most(_MOST, checked(lambda value: _is_number(value, int) and value > 0, "must be a whole number above 0"))
count_or_zero = checked(lambda value: _is_number(value, int) and value >= 0, "must be a whole number, at least 0")
days_or_zero = _at_most(_LONGEST_DAYS, count_or_zero, _YEARS)
weight = checked(
    lambda value: _is_number(value, int) and 1 <= value <= _HEAVIEST, f"must be a whole number from 1 to {_HEAVIEST}"
)
port = checked(lambda value: _is_number(value, int) and 0 <= value <= _LARGEST_PORT, "must be a port")
number = checked(_is_number, "must be a number")
seconds = _at_most(
    _LONGEST.total_seconds(),
    checked(lambda value: _is_number(value) and 0 <= value < inf, "must be a number of seconds"),
    _YEARS,
)
mapping = checked(lambda value: isinstance(value, dict), "must be a mapping")
texts = checked(lambda value: _is_mapping_of(value, str), "must be a mapping of texts")
flags = checked(lambda value: _is_mapping_of(value, bool), "must be a map of names to true or false")
duration = duration_from(timedelta(), "must be a duration of 0 or above")
positive_duration = duration_from(timedelta(microseconds=1), "must be a duration above 0 such as 10s")
