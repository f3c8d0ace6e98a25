"""Loads users' own filters that are installed beside a service, by their entry points."""

import warnings
from collections.abc import Sequence
from importlib.metadata import entry_points

from gardenbus.common.errors import SettingsInvalid
from gardenbus.scheduling.filters.table import RULES
from gardenbus.scheduling.user_filters import ENTRY_POINT_GROUP, OlderSeedFilter, SeedFilter, filter_of


def load_filters() -> Sequence[SeedFilter]:
    """Load users' own filters: each entry point is a `SeedFilter`, or makes one when called without arguments.

    Raises SettingsInvalid naming the entry points that cannot be loaded: a rule that silently does not hold is worse
    than a service that does not start. Warns (FutureWarning) of filters with the method names of earlier versions.
    """
    filters: list[SeedFilter] = []
    problems: list[str] = []
    for entry_point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            filters.append(filter_of(entry_point.load(), RULES.union(each.name for each in filters)))
        except Exception as error:  # noqa: BLE001  somebody else's code may fail in any way
            problems.append(f"entry point {entry_point.name} = {entry_point.value}: {type(error).__name__}: {error}")
    for older in filters:
        if isinstance(older, OlderSeedFilter):
            message = f"the filter {older.name}: wish and refuse are named shoot_input and filter by now"
            warnings.warn(message, FutureWarning, stacklevel=2)
    if problems:
        raise SettingsInvalid(tuple(problems))
    return filters
