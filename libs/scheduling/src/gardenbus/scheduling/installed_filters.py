"""Loads users' own filters that are installed beside a service, by their entry points."""

from collections.abc import Sequence
from importlib.metadata import entry_points

from gardenbus.common.errors import SettingsInvalid
from gardenbus.scheduling.filters.table import RULES
from gardenbus.scheduling.user_filters import ENTRY_POINT_GROUP, SeedFilter, filter_of


def load_filters() -> Sequence[SeedFilter]:
    """Load users' own filters: each entry point is a `SeedFilter`, or makes one when called without arguments.

    Raises SettingsInvalid naming the entry points that cannot be loaded: a rule that silently does not hold is worse
    than a service that does not start.
    """
    filters: list[SeedFilter] = []
    problems: list[str] = []
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            filters.append(filter_of(entry_point.load(), RULES.union(each.name for each in filters)))
        except Exception as error:  # noqa: BLE001  somebody else's code may fail in any way
            problems.append(f"entry point {entry_point.name} = {entry_point.value}: {type(error).__name__}: {error}")
    if problems:
        raise SettingsInvalid(tuple(problems))
    return filters
