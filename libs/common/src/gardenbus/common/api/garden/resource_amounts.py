"""Amounts of resources in whole units of account: thousandths of cpu, and whole units of everything else.

Requests are rounded up and what is allocatable down, so that a sum of requests never exceeds what there is.
"""

import re
from collections.abc import Iterable, Mapping
from math import ceil, floor

from gardenbus.common.api.quantities import parse_quantity

CPU = "cpu"
MOST_AMOUNT = 2**53
"""Largest amount: as large a number as Redis, Prometheus and JavaScript hold exactly."""

RESOURCE = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
"""Name of a resource, as `cpu` or `example.com/load-balancers`."""

THOUSANDTHS = 1000
"""Units of account of one cpu."""


def requested_amount(resource: str, quantity: str | float) -> int:
    """The amount that a quantity requests. Raises ValueError unless it is a quantity above 0 and not too large."""
    amount = ceil(parse_quantity(quantity) * _units(resource))
    if amount <= 0:
        raise ValueError(f"{quantity!r} must be above 0: leave out what is not requested")
    if amount > MOST_AMOUNT:
        raise ValueError(f"{quantity!r} is too large: at most {quantity_of(resource, MOST_AMOUNT)}")
    return amount


def allocatable_amounts(quantities: Mapping[str, object], besides: Iterable[str] = ()) -> dict[str, int]:
    """The amounts that quantities of a seed make allocatable, but for some; what is no quantity is left out."""
    found: dict[str, int] = {}
    for resource in sorted(quantities.keys() - set(besides)):
        quantity = quantities[resource]
        if not isinstance(quantity, str | int | float) or not RESOURCE.fullmatch(resource):
            continue
        try:
            amount = floor(parse_quantity(quantity) * _units(resource))
        except ValueError:
            continue
        found[resource] = min(max(amount, 0), MOST_AMOUNT)
    return found


def quantity_of(resource: str, amount: int) -> str:
    """An amount as a quantity for people, with commas: `4,000m` of cpu, `17,179,869,184` of memory."""
    return f"{amount:,}{'m' if resource == CPU else ''}"


def lines_of(amounts: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Amounts as the store has them: `<resource> <amount>`, in the order of names."""
    return tuple(f"{resource} {amount}" for resource, amount in sorted(amounts))


def amounts_of(lines: Iterable[str]) -> dict[str, int]:
    """Amounts out of the store's lines."""
    return {resource: int(amount) for resource, _, amount in (line.rpartition(" ") for line in lines)}


def _units(resource: str) -> int:
    return THOUSANDTHS if resource == CPU else 1
