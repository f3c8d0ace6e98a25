"""Distance of two regions: by a region ConfigMap, else by their names."""

import re
from collections.abc import Mapping
from typing import Any, cast

import yaml

from gardenbus.common.api.short_cache import short_cache

_ORIENTATIONS = ("north", "south", "east", "west", "central")
_INT64 = 2**63

FARTHEST = 1000
"""Seeds farther away than this by name are no candidates."""

OTHER_PROVIDER = 2
"""Penalty of another provider on the distance by name."""


@short_cache(10_000)
def distance_by_name(seed_region: str, shoot_region: str) -> int:
    """Twice the edit distance of the names without orientation, plus 1 or 2 when the orientations differ.

    Source: `pkg/scheduler/controller/shoot/distance.go` of Gardener.
    """
    seed_base, seed_orientation = _orientation_of(seed_region)
    shoot_base, shoot_orientation = _orientation_of(shoot_region)
    distance = 2 * _edit_distance(seed_base, shoot_base)
    if seed_orientation == shoot_orientation:
        return distance
    return distance + (2 if seed_orientation and shoot_orientation else 1)


def _edit_distance(one: str, other: str) -> int:
    """Levenshtein's distance; of names so unlike in length that they are too far apart, that difference."""
    if 2 * (difference := abs(len(one) - len(other))) > FARTHEST:
        return difference
    row = list(range(len(other) + 1))
    for position, letter in enumerate(one, 1):
        diagonal, row[0] = row[0], position
        for index, letter_there in enumerate(other, 1):
            replaced = diagonal + (letter != letter_there)
            diagonal = row[index]
            row[index] = min(diagonal + 1, row[index - 1] + 1, replaced)
    return row[-1]


def _orientation_of(region: str) -> tuple[str, str]:
    # The first of the list that occurs wins, not the leftmost: "northeast-1" is north of ":east-1".
    for orientation in _ORIENTATIONS:
        if orientation in region:
            return region.replace(orientation, ":", 1), orientation
    return region, ""


@short_cache(10_000)
def parse_distances(text: str) -> Mapping[str, int]:
    """Read region → distance, a YAML map; raises ValueError with the problem for anything else."""
    try:
        parsed: object = yaml.load(text, Loader=_Loader)  # noqa: S506  a SafeLoader without the integers of base 60
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"not YAML: {' '.join(str(error).split())[:200]}") from error
    if not isinstance(parsed, dict):
        raise ValueError(f"not a map of region to distance but {_named(parsed)}")  # noqa: TRY004  one error for all
    return {_key(region): _whole(region, value) for region, value in cast("dict[Any, object]", parsed).items()}


def _key(region: object) -> str:
    return str(region).lower() if isinstance(region, bool) else str(region)


def _whole(region: object, value: object) -> int:
    if value is None:
        return 0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -_INT64 <= value < _INT64:
        raise ValueError(f"the distance to {str(region)[:80]!r} is {_named(value)}, not a whole number")
    return value


def _named(value: object) -> str:
    return "nothing" if value is None else f"{str(value)[:80]!r}"


class _Loader(yaml.SafeLoader):
    """Reads `1:30` as text, as Go's YAML does, not as 90."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:int"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(  # pyright: ignore[reportUnknownMemberType]  PyYAML has no types here
    "tag:yaml.org,2002:int",
    re.compile(r"[-+]?(?:0b[0-1_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)\Z"),
    list("-+0123456789"),
)
_Loader.add_implicit_resolver(  # pyright: ignore[reportUnknownMemberType]  PyYAML has no types here
    "tag:yaml.org,2002:float", re.compile(r"[-+]?[0-9]+[eE][-+]?[0-9]{1,3}\Z"), list("-+0123456789")
)
