"""Backends that are installed, by their entry points: an agent's own, and those of other distributions beside it."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from gardenbus.common.errors import SettingsInvalid


@cache
def backend_entry_points(group: str) -> Mapping[str, Sequence[EntryPoint]]:
    """Entry points of a group, by name. They are searched once in the life of a process."""
    found: dict[str, list[EntryPoint]] = {}
    for each in entry_points(group=group):
        found.setdefault(each.name, []).append(each)
    return found


def backend_factory(group: str, name: str, owner: str) -> Callable[[Any], Any]:
    """The factory of the backend that the configuration of `owner` (`seed green`) names; it takes a backend's context.

    Raises SettingsInvalid when it is not installed, installed twice, or cannot be loaded.
    """
    installed = backend_entry_points(group)
    found = installed.get(name, ())
    where = f"{owner}: backend.type"
    if not found:
        names = ", ".join(sorted(installed))
        raise SettingsInvalid((f"{where}: must be one of {names}, is {name!r}; others need an entry point",))
    if len(found) > 1:
        raise SettingsInvalid((f"{where}: {name} is an entry point of several distributions",))
    try:
        return cast("Callable[[Any], Any]", found[0].load())
    except Exception as error:  # somebody else's module may fail in any way
        raise SettingsInvalid((f"{where}: {found[0].value} cannot be loaded: {error}",)) from error
