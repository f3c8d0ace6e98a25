"""Label and field selectors of lists in kubectl's syntax: `env=dev,tier in (gold,silver),!old`, `spec.seedName=aws`.

The expressions never go back over what they have read (`*+`, `++`): a selector is read in the time of its length.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.selectors import LabelSelector, LabelSelectorRequirement
from gardenbus.common.errors import BadRequest

FieldPath = tuple[str, ...]
ObjectPredicate = Callable[[Document], bool]

LONGEST_SELECTOR = 4096
"""Characters of a selector."""

_SET_BASED = re.compile(r"\s*+(?P<key>[^\s,!=()]++)\s++(?P<operator>in|notin)\s*+\((?P<values>[^()]*+)\)\s*+(?:,|$)")
_EQUALITY = re.compile(r"\s*+(?P<key>[^\s,!=()]++)\s*+(?P<operator>==|=|!=)\s*+(?P<value>[^\s,!=()]*+)\s*+(?:,|$)")
_PRESENCE = re.compile(r"\s*+(?P<not>!?)\s*+(?P<key>[^\s,!=()]++)\s*+(?:,|$)")
_FIELD = re.compile(r"([^=!\s]++)\s*+(==|=|!=)\s*+(.*)")


def parse_label_selector(text: str) -> LabelSelector:
    """Parse a label selector. Raises BadRequest with the invalid part."""
    _check_length(text, "labelSelector")
    requirements: list[LabelSelectorRequirement] = []
    at, text = 0, text.rstrip()
    while at < len(text):
        if found := _SET_BASED.match(text, at):
            values = tuple(value.strip() for value in found["values"].split(","))
            requirements.append(
                LabelSelectorRequirement(found["key"], "In" if found["operator"] == "in" else "NotIn", values)
            )
        elif found := _EQUALITY.match(text, at):
            operator = "NotIn" if found["operator"] == "!=" else "In"
            requirements.append(LabelSelectorRequirement(found["key"], operator, (found["value"],)))
        elif found := _PRESENCE.match(text, at):
            requirements.append(LabelSelectorRequirement(found["key"], "DoesNotExist" if found["not"] else "Exists"))
        else:
            raise BadRequest(f"labelSelector: {text[at : at + 80]!r} cannot be read; write a=b,c!=d,e in (f,g),h,!i")
        at = found.end()
    selector = LabelSelector.of({}, requirements)
    if problems := selector.problems:
        raise BadRequest(f"labelSelector: {problems[0][1]}")
    return selector


def parse_field_selector(text: str) -> ObjectPredicate:
    """Parse a field selector over any scalar field by its path; a missing field is "". Raises BadRequest."""
    wanted = _field_requirements(text)
    return lambda document: all((_field(document, path) == value) is equal for path, equal, value in wanted)


def field_paths(text: str) -> list[FieldPath]:
    """The paths that a field selector names. Raises BadRequest."""
    return [path for path, _, _ in _field_requirements(text)]


def required_field(text: str, *path: str) -> str:
    """The value that a field selector requires of a field; "" when it requires none. Raises BadRequest."""
    return next((value for name, is_equal, value in _field_requirements(text) if is_equal and name == path), "")


def required_labels(text: str) -> frozenset[tuple[str, str]]:
    """Labels, and the one value of each, without which a label selector matches nothing. Raises BadRequest."""
    if not text:
        return frozenset()
    selector = parse_label_selector(text)
    single = (each for each in selector.match_expressions if each.operator == "In" and len(each.values) == 1)
    return frozenset((*selector.match_labels, *((each.key, each.values[0]) for each in single)))


def _field_requirements(text: str) -> list[tuple[FieldPath, bool, str]]:
    _check_length(text, "fieldSelector")
    wanted: list[tuple[FieldPath, bool, str]] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        found = _FIELD.fullmatch(part)
        if not found:
            raise BadRequest(f"fieldSelector: {part[:80]!r} cannot be read; write metadata.name=a,spec.seedName!=b")
        wanted.append((tuple(found[1].split(".")), found[2] != "!=", found[3]))
    return wanted


def _check_length(text: str, field: str) -> None:
    if len(text) > LONGEST_SELECTOR:
        raise BadRequest(f"{field}: has {len(text)} characters, {LONGEST_SELECTOR} are allowed: select in parts")


def list_predicate(query: Mapping[str, Any]) -> ObjectPredicate | None:
    """Predicate of a list's `labelSelector` and `fieldSelector`; None without both. Raises BadRequest."""
    tests: list[ObjectPredicate] = []
    if text := _text(query, "labelSelector"):
        selector = parse_label_selector(text)
        tests.append(lambda document: selector.meets(section(document, "metadata", "labels")))
    if text := _text(query, "fieldSelector"):
        tests.append(parse_field_selector(text))
    return (lambda document: all(test(document) for test in tests)) if tests else None


def _text(query: Mapping[str, Any], name: str) -> str:
    value = query.get(name) or ""
    if not isinstance(value, str):
        raise BadRequest(f"{name}: must be text")
    return value


def _field(document: Document, path: tuple[str, ...]) -> str:
    value: Any = document
    for name in path:
        value = cast("Mapping[str, Any]", value).get(name) if isinstance(value, Mapping) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)
