"""Kubernetes label selectors, frozen and hashable: matchLabels and matchExpressions, with their validity rules."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_PREFIX = 253


class LabelSelectorRequirement(msgspec.Struct, frozen=True, order=True):
    """One entry of matchExpressions."""

    key: str
    """The label."""

    operator: str
    """`In`, `NotIn`, `Exists` or `DoesNotExist`."""

    values: tuple[str, ...] = ()
    """For `In` and `NotIn`."""

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Match labels; a missing key matches NotIn and DoesNotExist."""
        match self.operator:
            case "In":
                return labels.get(self.key) in self.values
            case "NotIn":
                return labels.get(self.key) not in self.values
            case "Exists":
                return self.key in labels
            case _:
                return self.key not in labels

    def __str__(self) -> str:
        """As kubectl writes it: `env in (dev,prod)`."""
        match self.operator:
            case "In":
                return f"{self.key} in ({','.join(sorted(self.values))})"
            case "NotIn":
                return f"{self.key} notin ({','.join(sorted(self.values))})"
            case "Exists":
                return self.key
            case _:
                return f"!{self.key}"


class LabelSelector(msgspec.Struct, frozen=True):
    """A selector as written, valid or not; an empty one matches everything."""

    match_labels: tuple[tuple[str, str], ...] = ()
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    @classmethod
    def of(
        cls, match_labels: Mapping[str, str], match_expressions: Sequence[LabelSelectorRequirement] = ()
    ) -> "LabelSelector":
        """Build a selector; the order of its parts does not matter."""
        return cls(tuple(sorted(match_labels.items())), tuple(sorted(match_expressions)))

    @property
    def problems(self) -> tuple[tuple[str, str], ...]:
        """Validation errors: (path below the selector, message). Source: apimachinery's NewRequirement."""
        found: list[tuple[str, str]] = []
        for key, value in self.match_labels:
            if problem := _key_problem(key):
                found.append(("matchLabels", problem))
            if problem := _value_problem(value):
                found.append(("matchLabels", f"{key[:80]!r}: {problem}"))
        for index, requirement in enumerate(self.match_expressions):
            found += [(f"matchExpressions[{index}].{part}", problem) for part, problem in _problems_of(requirement)]
        return tuple(found)

    def check(self) -> None:
        """Raise ValueError, naming each problem, when it is invalid."""
        if problems := self.problems:
            raise ValueError("; ".join(f"{path}: {message}" for path, message in problems))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Match labels; raises ValueError when the selector is invalid."""
        self.check()
        return self.meets(labels)

    @property
    def keys(self) -> frozenset[str]:
        """The keys of all labels that it reads."""
        return frozenset((*(key for key, _ in self.match_labels), *(each.key for each in self.match_expressions)))

    def meets(self, labels: Mapping[str, str]) -> bool:
        """Match labels against a valid selector."""
        return all(labels.get(key) == value for key, value in self.match_labels) and all(
            requirement.matches(labels) for requirement in self.match_expressions
        )

    def __str__(self) -> str:
        """As kubectl writes it: `env=dev,tier in (gold)`."""
        parts = [f"{key}={value}" for key, value in self.match_labels]
        return ",".join(sorted(parts + [str(requirement) for requirement in self.match_expressions]))


def parse_selector(selector: Mapping[str, Any]) -> LabelSelector:
    """Read a selector out of a manifest and check it; raises ValueError with the path of what is wrong."""
    labels: object = selector.get("matchLabels") or {}
    expressions: object = selector.get("matchExpressions") or []
    try:
        parsed = LabelSelector.of(
            msgspec.convert(labels, dict[str, str]),
            [
                msgspec.convert(
                    {name: value for name, value in entry.items() if value is not None}, LabelSelectorRequirement
                )
                for entry in cast("list[Mapping[str, Any]]", msgspec.convert(expressions, list[dict[str, Any]]))
            ],
        )
    except msgspec.ValidationError as error:
        raise ValueError(f"not a label selector: {error}") from error
    parsed.check()
    return parsed


def _problems_of(requirement: LabelSelectorRequirement) -> list[tuple[str, str]]:
    problems: list[tuple[str, str]] = []
    if problem := _key_problem(requirement.key):
        problems.append(("key", problem))
    if requirement.operator not in OPERATORS:
        problems.append(("operator", f"{requirement.operator!r} is none of {', '.join(OPERATORS)}"))
    elif requirement.operator in ("In", "NotIn"):
        if not requirement.values:
            problems.append(("values", f"{requirement.operator} needs at least one value"))
    elif requirement.values:
        problems.append(("values", f"{requirement.operator} takes no values"))
    problems += [("values", problem) for value in requirement.values if (problem := _value_problem(value))]
    return problems


def _key_problem(key: str) -> str:
    prefix, slash, name = key.rpartition("/")
    if not _NAME.fullmatch(name) or (slash and (len(prefix) > _LONGEST_PREFIX or not _PREFIX.fullmatch(prefix))):
        return f"{key[:80]!r} is not a label key"
    return ""


def _value_problem(value: str) -> str:
    return "" if not value or _NAME.fullmatch(value) else f"{value[:80]!r} is not a label value"
