"""YAML parser with Kubernetes' semantics (YAML 1.1 as in go-yaml) that rejects harmful input.

Built on the parser's events, so that depth, repeated keys and the growth of aliases are checked before values are
built. Timestamps and sexagesimal numbers stay text.
"""

import copy
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any, cast

import yaml

from gardenbus.common.api.manifests.strict_json import (
    ValuePath,
    exact_integer,
    finite_number,
    path_text,
    too_many_manifests,
)
from gardenbus.common.errors import BadRequest

DEEPEST = 64
"""Deepest nesting of a manifest."""
DEEPEST_VALUE = DEEPEST + 4
"""Deepest nesting of a message: manifests may be in lists."""
MOST_VALUES = 32 * 1024
"""Most values of one object: each of them is looked at, and may be wrong."""
TOO_MANY_VALUES = f"more than {MOST_VALUES} values in one object: make it smaller"
MOST_NODES = 1_000_000
"""Most values of one message, each alias counted with all values of its anchor."""
MOST_ALIASED = 1 << 20
"""Most weight (values, and characters of text) that aliases may add to one message."""

_INTEGER = re.compile(r"[-+]?(0b[01][01_]*|0o?[0-7][0-7_]*|0x[0-9a-fA-F][0-9a-fA-F_]*|[1-9][0-9_]*|0)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_BOOLEANS = {
    word: truth
    for truth, words in ((True, ("true", "yes", "on")), (False, ("false", "no", "off")))
    for plain in words
    for word in (plain, plain.capitalize(), plain.upper())
}
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TAG = "tag:yaml.org,2002:"
_MERGE = "<<"
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Of libyaml, which a PyYAML that was built where there was none lacks, as on a Python that it has no wheels for."""
_parse = cast("Callable[..., Iterator[Any]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType]


def read_yaml(text: str, most: int = sys.maxsize) -> list[Any]:
    """Parse all documents of a text, empty ones (null) left out. Raises BadRequest with line and remedy."""
    return _YamlReader(text).documents(most)


class _YamlReader:
    """Parser of one text."""

    def __init__(self, text: str) -> None:
        self._events = _parse(text, Loader=_LOADER)
        self._nodes = 0
        self._nodes_of_object = 0
        self._aliased = 0
        self._depth = 0
        self._anchors: dict[str, tuple[Any, int] | None] = {}

    def documents(self, most: int) -> list[Any]:
        found: list[Any] = []
        read = 0
        try:
            for event in self._events:
                if isinstance(event, yaml.DocumentStartEvent):
                    read += 1
                    if read > most:
                        raise too_many_manifests(most)
                    self._anchors, self._nodes_of_object = {}, 0
                    value, _ = self._value(next(self._events), ())
                    if value is not None:
                        found.append(value)
        except yaml.MarkedYAMLError as error:
            raise BadRequest(_sentence(error)) from error
        except yaml.YAMLError as error:
            raise BadRequest(f"not YAML: {' '.join(str(error).split())[:200]}") from error
        return found

    def _value(self, event: Any, path: ValuePath) -> tuple[Any, int]:
        """The value that starts with an event, and its weight."""
        self._nodes += 1
        self._nodes_of_object += 1
        if self._nodes_of_object > 2 * MOST_VALUES:  # half of them may be keys
            raise _invalid(event, path, TOO_MANY_VALUES)
        if self._nodes > MOST_NODES:
            raise _invalid(event, path, f"more than {MOST_NODES} values in one message: split it")
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path)
        if event.anchor:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            value, weight = _scalar(event, path), 1 + len(event.value)
        else:
            value, weight = self._container(event, path)
        if event.anchor:
            self._anchors[event.anchor] = (value, weight)
        return value, weight

    def _alias(self, event: Any, path: ValuePath) -> tuple[Any, int]:
        if event.anchor not in self._anchors:
            raise _invalid(event, path, f"the alias *{event.anchor} has no anchor before it")
        anchored = self._anchors[event.anchor]
        if anchored is None:
            raise _invalid(event, path, f"the alias *{event.anchor} stands inside what it stands for")
        value, weight = anchored
        self._aliased += weight
        if self._aliased > MOST_ALIASED:
            raise _invalid(event, path, f"aliases add up to more than {MOST_ALIASED} values: write the manifest out")
        return copy.deepcopy(value), weight

    def _container(self, event: Any, path: ValuePath) -> tuple[Any, int]:
        self._depth += 1
        if self._depth > DEEPEST_VALUE:
            raise _invalid(event, path, f"nested deeper than {DEEPEST} levels")
        if isinstance(event, yaml.SequenceStartEvent):
            _check_tag(event, path, "seq")
            result = self._sequence(path)
        else:
            _check_tag(event, path, "map")
            result = self._mapping(path)
        self._depth -= 1
        return result

    def _sequence(self, path: ValuePath) -> tuple[list[Any], int]:
        entries: list[Any] = []
        total = 1
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            if path == ("items",):
                self._nodes_of_object = 0
            entry, weight = self._value(event, (*path, len(entries)))
            entries.append(entry)
            total += weight
        return entries, total

    def _mapping(self, path: ValuePath) -> tuple[dict[str, Any], int]:
        mapping: dict[str, Any] = {}
        sources: list[dict[str, Any]] = []
        total = 1
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if isinstance(event, yaml.ScalarEvent) and event.value == _MERGE and not event.style and not event.tag:
                source, weight = self._value(next(self._events), path)
                sources += _sources(source, event, path)
            else:
                key, key_weight = self._key(event, path)
                below = (*path, key)
                if key in mapping:
                    raise _invalid(event, below, "given twice: keep one")
                mapping[key], weight = self._value(next(self._events), below)
                weight += key_weight
            total += weight
        if not sources:
            return mapping, total
        merged: dict[str, Any] = {}
        for one in (*reversed(sources), mapping):  # of the sources of a key the first counts
            merged.update(one)
        return merged, total

    def _key(self, event: Any, path: ValuePath) -> tuple[str, int]:
        key, weight = self._value(event, path)
        if not isinstance(key, str):
            shown = event.value if isinstance(event, yaml.ScalarEvent) else "a list or mapping"
            raise _invalid(event, path, f"the key {shown[:40]} is not a string: put it in quotes")
        return key, weight


def _sources(source: Any, event: Any, path: ValuePath) -> list[dict[str, Any]]:
    """The mappings that `<<` merges."""
    sources = cast("list[Any]", source if isinstance(source, list) else [source])
    if not all(isinstance(one, dict) for one in sources):
        raise _invalid(event, path, "<< takes a mapping or a list of mappings")
    return sources


def _scalar(event: Any, path: ValuePath) -> Any:
    text: str = event.value
    tag: str = (event.tag or "").removeprefix(_TAG)
    if tag in ("str", "!", "timestamp") or (not tag and event.style):
        return text
    if tag not in ("", "int", "float", "bool", "null"):
        raise _unsupported_tag(event, path)
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INFINITE.fullmatch(text):
        raise _invalid(event, path, f"{text} is no JSON number: leave the field out or write a string")
    try:
        return _number(text, as_float=tag == "float")
    except ValueError as error:
        raise _invalid(event, path, str(error)) from error


def _number(text: str, *, as_float: bool) -> Any:
    if _INTEGER.fullmatch(text) and not as_float:
        digits = text.replace("_", "").removeprefix("+")
        unsigned = digits.removeprefix("-")
        if unsigned == "0" or not unsigned.startswith("0"):
            return exact_integer(digits)
        return exact_integer(str(int(digits, 0 if unsigned[1] in "box" else 8)))
    if _FLOAT.fullmatch(text):
        return finite_number(text)
    return text


def _check_tag(event: Any, path: ValuePath, allowed: str) -> None:
    if event.tag and event.tag.removeprefix(_TAG) not in (allowed, "!"):
        raise _unsupported_tag(event, path)


def _unsupported_tag(event: Any, path: ValuePath) -> BadRequest:
    shown = event.tag.replace(_TAG, "!!")[:80]
    return _invalid(event, path, f"the tag {shown} is not taken: manifests hold plain values only")


def _invalid(event: Any, path: ValuePath, problem: str) -> BadRequest:
    place = f"{path_text(path)[:120]}: " if path else ""
    return BadRequest(f"{place}{problem} (line {event.start_mark.line + 1})")


def _sentence(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    problem = error.problem or error.context or "cannot be read"
    hint = ": indent with spaces" if "\\t" in problem or "tab" in problem else ""
    return f"not YAML: {place}{problem}{hint}"
