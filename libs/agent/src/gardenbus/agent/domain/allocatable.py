"""Allocatable resources of a seed: its capacity without what is reserved, as its gardenlet reports it."""

from collections.abc import Mapping
from fractions import Fraction

from gardenbus.common.api.configuration.gardenlet import Quantity
from gardenbus.common.api.quantities import parse_quantity

_SUFFIXES = {"": Fraction(1), "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9)} | {
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
}
_FINE = {"m": 10**3, "u": 10**6, "n": 10**9}


def allocatable(capacity: Mapping[str, Quantity], reserved: Mapping[str, Quantity]) -> Mapping[str, Quantity]:
    """Remainder of each resource: as written if nothing is reserved, else in the capacity's unit if it fits."""
    return {
        name: _remaining(quantity, reserved[name]) if name in reserved else quantity
        for name, quantity in capacity.items()
    }


def _remaining(capacity: Quantity, reserved: Quantity) -> Quantity:
    rest = parse_quantity(capacity) - parse_quantity(reserved)
    if not isinstance(capacity, str):
        return int(rest) if rest.denominator == 1 else float(rest)
    suffix = capacity.lstrip("+-.0123456789")
    unit = _SUFFIXES.get(suffix)
    if unit is not None and (rest / unit).denominator == 1:
        return f"{int(rest / unit)}{suffix}"
    if rest.denominator == 1:
        return str(int(rest))
    fine, parts = next((each for each in _FINE.items() if (rest * each[1]).denominator == 1), ("n", 10**9))
    return f"{int(rest * parts)}{fine}"
