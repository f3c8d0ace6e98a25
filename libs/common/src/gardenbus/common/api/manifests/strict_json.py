"""JSON parser for a store of record: no duplicate keys, no NaN, no number that would lose precision.

One text may hold several documents, one after the other.
"""

import json
import re
import sys
from collections.abc import Iterable
from typing import Any, NoReturn, cast

from gardenbus.common.errors import BadRequest

_INT64 = 2**63
_WHOLE = 2**53
"""Doubles below this are exact to the unit."""
_LONGEST_INTEGER = 400
_SPACE = re.compile(r"[ \t\r\n]*")
_NONZERO = re.compile(r"[1-9]")
_LONGEST_KEY = 80
_LONGEST_PATH = 1000

MemberPairs = list[tuple[str, Any]]
ValuePath = tuple[str | int, ...]
"""Keys of objects and numbers of entries, from the outermost on."""


def path_text(path: Iterable[str | int]) -> str:
    """A path as people write it, `spec.workers[0].name`, with long keys cut.

    For what is reported only: one key may have megabytes, and millions of values below it.
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{step[:_LONGEST_KEY]}" for step in path)
    return "".join(steps).removeprefix(".")


class NotJSON(BadRequest):
    """The text is no JSON at all (it may be YAML that starts with a brace)."""


def read_json(text: str, most: int = sys.maxsize) -> list[Any]:
    """Parse all documents of a text. Raises NotJSON, or BadRequest with the path of an invalid value."""
    documents: list[Any] = []
    position = _after_space(text, 0)
    while position < len(text):
        if len(documents) == most:
            raise too_many_manifests(most)
        value, position = _one(text, position)
        documents.append(value)
        position = _after_space(text, position)
    return documents


def too_many_manifests(most: int) -> BadRequest:
    """The error for a message with more than so many."""
    return BadRequest(f"more than {most} manifests in one message: send it in parts")


def _after_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _one(text: str, position: int) -> tuple[Any, int]:
    try:
        return _decoder.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise NotJSON(f"not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from error
    except RecursionError as error:
        raise BadRequest("nested far deeper than 64 levels") from error
    except _InvalidValueError as invalid:
        raise BadRequest(_where(text, position, invalid)) from None


class _InvalidValueError(Exception):
    """An invalid value; a second, slower pass finds its path."""

    def __init__(self, problem: str, key: str = "") -> None:
        super().__init__(problem)
        self.problem = problem
        self.key = key


def _unique(pairs: MemberPairs) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise _InvalidValueError("", _repeated(pairs))
    return mapping


def _repeated(pairs: MemberPairs) -> str:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            return key
        seen.add(key)
    return ""


def exact_integer(digits: str) -> int | float:
    """An integer that int64 or a double holds exactly; raises ValueError with the remedy for any other."""
    if len(digits) <= _LONGEST_INTEGER:
        number = int(digits)
        if -_INT64 <= number < _INT64:
            return number
        try:
            if int(float(number)) == number:
                return float(number)
        except OverflowError:
            pass
    raise ValueError(f"the number {digits[:40]} is too large to be kept exactly: write it as a string")


def finite_number(digits: str) -> float:
    """A double, as an integer where it is whole (1.0 is 1, what decodes integers takes it).

    Raises ValueError when it would be infinite, or zero though the text is not.
    """
    number = float(digits)
    if number in (float("inf"), float("-inf")) or (not number and _NONZERO.search(re.split("[eE]", digits)[0])):
        raise ValueError(f"the number {digits[:40]} is beyond what a double holds: write it as a string")
    return int(number) if -_WHOLE < number < _WHOLE and number.is_integer() else number


def _integer(digits: str) -> int | float:
    try:
        return exact_integer(digits)
    except ValueError as error:
        raise _InvalidValueError(str(error)) from error


def _float(digits: str) -> float:
    try:
        return finite_number(digits)
    except ValueError as error:
        raise _InvalidValueError(str(error)) from error


def _constant(name: str) -> NoReturn:
    raise _InvalidValueError(f"{name} is no JSON number: leave the field out or write a string")


_decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_integer, parse_float=_float, parse_constant=_constant)


class _InvalidValue:
    """An invalid value in the second pass."""

    def __init__(self, problem: str) -> None:
        self.problem = problem


def _where(text: str, position: int, invalid: _InvalidValueError) -> str:
    """Message with the path of an invalid value: parses again and keeps pairs and the first invalid value."""
    marked: list[_InvalidValue] = []

    def mark(read: Any) -> Any:
        def reading(digits: str) -> Any:
            try:
                return None if marked else read(digits)
            except _InvalidValueError as again:
                marked.append(_InvalidValue(again.problem))
                return marked[0]

        return reading

    decoder = json.JSONDecoder(
        object_pairs_hook=tuple, parse_int=mark(_integer), parse_float=mark(_float), parse_constant=mark(_constant)
    )
    try:
        value, _ = decoder.raw_decode(text, position)
        path, problem = _find(value) or ([], invalid.problem)
    except (json.JSONDecodeError, RecursionError):
        return invalid.problem or f"the key {invalid.key[:80]!r} is given twice in one object: keep one"
    place = path_text(reversed(path))[:_LONGEST_PATH]
    return f"{place}: {problem}" if place else problem


def _find(value: Any) -> tuple[list[str | int], str] | None:
    """The path of the first invalid value, the innermost step first, and what is wrong with it."""
    if isinstance(value, _InvalidValue):
        return [], value.problem
    below: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, list):
        below = enumerate(cast("list[Any]", value))
    elif isinstance(value, tuple):
        below = pairs = cast("MemberPairs", list(cast("tuple[Any, ...]", value)))
        if len(dict(pairs)) != len(pairs):
            return [_repeated(pairs)], "given twice: keep one"
    for step, entry in below:
        if found := _find(entry):
            found[0].append(step)
            return found
    return None
