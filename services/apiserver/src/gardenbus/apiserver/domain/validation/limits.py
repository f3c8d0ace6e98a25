"""Limits that are a number of clusters or percent of them, and quantities that are written as text."""

import re
from typing import Any, cast

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.quantities import parse_quantity
from gardenbus.common.api.shown_values import shown

MOST_MACHINES = 2**31 - 1
"""Machines of a worker pool: Gardener's API has 32 bits for their number."""

_PERCENT = re.compile(r"(100|[0-9]{1,2})%")


def check_limit(holder: FieldCursor, field: str) -> None:
    """Note a limit that is neither a whole number from 0 nor percent from 0% to 100%."""
    value = holder.content.get(field)
    if isinstance(value, str):
        if not is_percent(value):
            holder.add_error(field, f"must be a number as 2, or percent from 0% to 100% as '25%', not {shown(value)}")
    else:
        holder.integer(field, least=0)


def is_percent(value: object) -> bool:
    """True for percent from 0% to 100%."""
    return isinstance(value, str) and _PERCENT.fullmatch(value) is not None


def is_zero_limit(limit: object) -> bool:
    """True when a limit allows nothing, however many clusters there are."""
    return limit in (0, "0%", "00%")


def quantity_problem(text: str) -> str:
    """Problem of a quantity; "" when it is valid."""
    try:
        parse_quantity(text)
    except ValueError as error:
        return str(error)
    return ""


def amount_problem(amount: object) -> str:
    """Problem of a quantity that is not below zero; "" when it is valid."""
    if not isinstance(amount, str | int | float) or isinstance(amount, bool):
        return f"must be a quantity as 10, 1500m or 1Ki, not {shown(amount)}"
    try:
        number = parse_quantity(amount)
    except ValueError as error:
        return str(error)
    return f"must not be below zero, but is {amount}" if number < 0 else ""


def check_only_quantity(holder: FieldCursor, field: str) -> None:
    """Report a list without exactly one quantity."""
    texts = holder.texts(field)
    stated: Any = holder.content.get(field) or []
    if isinstance(stated, list) and len(cast("list[Any]", stated)) != 1:
        count = len(cast("list[Any]", stated))
        holder.add_error(field, f"must hold exactly one quantity, as ['4'], and holds {count}")
        return
    for path, text in texts:
        if problem := quantity_problem(text):
            holder.errors.add_error(path, problem)
