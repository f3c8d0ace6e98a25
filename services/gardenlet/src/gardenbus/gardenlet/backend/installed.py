"""Makers that are installed, by their entry points: the gardenlet's own, and those of other distributions beside it."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from gardenbus.common.errors import SettingsInvalid
from gardenbus.gardenlet.backend.port import Maker, MakerContext, MakerFactory

ENTRY_POINT_GROUP = "gardenbus.gardenlet.backends"


@cache
def backend_entry_points() -> Mapping[str, Sequence[EntryPoint]]:
    """Entry points of all makers, by name. They are searched once in the life of a process."""
    found: dict[str, list[EntryPoint]] = {}
    for each in entry_points(group=ENTRY_POINT_GROUP):
        found.setdefault(each.name, []).append(each)
    return found


def installed_backends() -> frozenset[str]:
    """Names that `backend.type` of a GardenletConfiguration can have here."""
    return frozenset(backend_entry_points())


def new_maker(context: MakerContext) -> Maker:
    """The maker that the configuration names. Raises SettingsInvalid when it is not installed, or cannot be made."""
    name = context.settings.type
    found = backend_entry_points().get(name, ())
    where = f"seed {context.seed_name}: backend.type"
    if not found:
        names = ", ".join(sorted(installed_backends()))
        raise SettingsInvalid((f"{where}: must be one of {names}, is {name!r}; others need an entry point",))
    if len(found) > 1:
        raise SettingsInvalid((f"{where}: {name} is an entry point of several distributions",))
    try:
        factory = cast("MakerFactory", found[0].load())
    except Exception as error:  # somebody else's module may fail in any way
        raise SettingsInvalid((f"{where}: {found[0].value} cannot be loaded: {error}",)) from error
    return factory(context)
