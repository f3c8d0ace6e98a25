"""Reading a nested mapping strictly, with the path of everything that is wrong."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, TypeVar, cast

from gardenbus.common.resources.durations import parse_duration

T = TypeVar("T")


class Section:
    """One mapping of a configuration. Problems of it and of all below it end in one list, `path: message`."""

    def __init__(self, value: Any, path: str, problems: list[str]) -> None:
        self.path = path
        self.problems = problems
        self.values: Mapping[str, Any] = {}
        if isinstance(value, dict):
            self.values = cast("Mapping[str, Any]", value)
        elif value is not None:
            self.refuse("", f"must be a mapping, is {value!r}")

    def refuse(self, name: str, message: str) -> None:
        """Note a problem with a field (with the section itself, for the empty name)."""
        path = ".".join(filter(None, (self.path, name)))
        self.problems.append(f"{path or 'configuration'}: {message}")

    def section(self, name: str) -> "Section":
        """The mapping below a field; empty when the field is absent."""
        return Section(self.values.get(name), ".".join(filter(None, (self.path, name))), self.problems)

    def read(self, name: str, parse: Callable[[Any], T], default: T) -> T:
        """A field through `parse`, which raises ValueError when it is wrong; `default` when absent or wrong."""
        value = self.values.get(name)
        if value is None:
            return default
        try:
            return parse(value)
        except ValueError as error:
            self.refuse(name, str(error))
            return default

    def refuse_others(self, *known: str) -> None:
        """Note every field that is not among the known ones."""
        for name in self.values:
            if name not in known:
                self.refuse(name, "no such field")


def positive_count(value: Any) -> int:
    """A whole number above 0; raises ValueError."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"must be a whole number above 0, is {value!r}")
    return value


def flag(value: Any) -> bool:
    """True or false; raises ValueError."""
    if not isinstance(value, bool):
        raise ValueError(f"must be true or false, is {value!r}")  # noqa: TRY004 - one error for whatever is wrong
    return value


def seconds(value: Any) -> float:
    """A number of seconds, 0 or above; raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ValueError(f"must be a number of seconds, is {value!r}")
    return float(value)


def texts(value: Any) -> Mapping[str, str]:
    """A mapping of texts to texts; raises ValueError."""
    if not isinstance(value, dict) or not all(
        isinstance(part, str) for pair in cast("dict[Any, Any]", value).items() for part in pair
    ):
        raise ValueError(f"must be a mapping of texts, is {value!r}")
    return cast("Mapping[str, str]", value)


def duration(value: Any) -> timedelta:
    """A duration, zero or above; raises ValueError."""
    found = parse_duration(value)
    if found < timedelta(0):
        raise ValueError(f"must be a duration of 0 or above, is {value!r}")
    return found


def positive_duration(value: Any) -> timedelta:
    """A duration above zero; raises ValueError."""
    found = parse_duration(value)
    if found <= timedelta(0):
        raise ValueError(f"must be longer than 0, is {value!r}")
    return found
