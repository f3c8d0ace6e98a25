"""Rules of single values, and tables of them: field → rule.

A rule notes what is wrong with the value at a field, and nothing where none is stated.
"""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, cast

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.limits import amount_problem, is_percent
from gardenbus.common.api.document import Document
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.api.quantities import parse_quantity
from gardenbus.common.api.shown_values import shown

ValueRule = Callable[[FieldCursor, str], object]
ValueRules = Mapping[str, ValueRule]


def check_values(holder: FieldCursor, rules: ValueRules) -> None:
    """Note what is wrong with the values of a mapping that rules are about."""
    for field, value in holder.content.items():
        if value is not None and (rule := rules.get(field)) is not None:
            rule(holder, field)


def of_section(rules: ValueRules) -> ValueRule:
    """Rule of a mapping: those of its fields."""
    return lambda holder, field: check_values(holder.section(field), rules)


def whole(least: int | None = 0, most: int | None = None) -> ValueRule:
    """Rule of a whole number."""
    return lambda holder, field: holder.integer(field, least=least, most=most)


def one_of(*choices: str) -> ValueRule:
    """Rule of a closed list of strings."""
    return lambda holder, field: holder.choice(field, choices)


def share(*, below_one: bool = False) -> ValueRule:
    """Rule of a number from 0 to 1, or below 1."""

    def check(holder: FieldCursor, field: str) -> None:
        value: object = holder.content[field]
        if isinstance(value, int | float) and not (0 <= value < 1 or (value == 1 and not below_one)):
            holder.add_error(field, f"must be from 0 to {'below ' * below_one}1, not {value}")

    return check


def lasting(least: str = "0s", most: str = "") -> ValueRule:
    """Rule of a duration: not negative, or from and to another."""
    shortest, longest = parse_duration(least), parse_duration(most) if most else timedelta.max

    def check(holder: FieldCursor, field: str) -> None:
        try:
            duration = parse_duration(holder.content[field])
        except ValueError as error:
            holder.add_error(field, str(error))
            return
        if not shortest <= duration <= longest:
            bounds = f"be from {least} to {most}" if most else f"be at least {least}" if shortest else "not be negative"
            holder.add_error(field, f"must {bounds}, and is {shown(holder.content[field])}")

    return check


def amount(least: str = "0") -> ValueRule:
    """Rule of a quantity that is not below zero, nor below another."""
    smallest = parse_quantity(least)

    def check(holder: FieldCursor, field: str) -> None:
        value: object = holder.content[field]
        problem = amount_problem(value)
        if not problem and parse_quantity(cast("str", value)) < smallest:
            problem = f"must be at least {least}, not {shown(value)}"
        if problem:
            holder.add_error(field, problem)

    return check


def amount_or_percent(holder: FieldCursor, field: str) -> None:
    """Rule of a quantity, or percent from 0% to 100%."""
    value: object = holder.content[field]
    if amount_problem(value) and not is_percent(value):
        holder.add_error(field, f"must be a quantity as 200Mi, or percent from 0% to 100% as 5%, not {shown(value)}")


def amounts_of(rules: ValueRules) -> ValueRule:
    """Rule of a resource list with some resources alone: quantities of each."""

    def check(holder: FieldCursor, field: str) -> None:
        resources = holder.section(field)
        check_values(resources, rules)
        for resource in resources.content.keys() - rules.keys():
            resources.add_error(resource, f"is no resource here: there are {', '.join(rules)}")

    return check


_VERSION = re.compile(r"v?[0-9]+(\.[0-9]+){0,2}\.?(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


def version_problem(version: str) -> str:
    """Problem of a semantic version, whose minor and patch may be left out; "" when it is one."""
    return "" if _VERSION.fullmatch(version) else f"must be a version as 1.34.1, not {shown(version)}"


def stated_in(document: Mapping[str, Any], path: str) -> object:
    """The value at a path of a document, as `spec.addons`; None where there is none."""
    here: Any = document
    for step in path.split("."):
        here = cast("Document", here).get(step) if isinstance(here, dict) else None
    return here
