"""Backends that are installed, by their entry points: the member agent's own, and those of other distributions."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import cast

from gardenbus.common.errors import SettingsInvalid
from gardenbus.memberagent.backend.port import BackendContext, BackendFactory, ClusterBackend

ENTRY_POINT_GROUP = "gardenbus.memberagent.backends"


@cache
def cluster_backend_entry_points() -> Mapping[str, Sequence[EntryPoint]]:
    """Entry points of all backends, by name. They are searched once in the life of a process."""
    found: dict[str, list[EntryPoint]] = {}
    for each in entry_points(group=ENTRY_POINT_GROUP):
        found.setdefault(each.name, []).append(each)
    return found


def installed_cluster_backends() -> frozenset[str]:
    """Names that `backend.type` of a MemberAgentConfiguration can have here."""
    return frozenset(cluster_backend_entry_points())


def new_backend(context: BackendContext) -> ClusterBackend:
    """The backend that the configuration names. Raises SettingsInvalid when it is not installed, or cannot be made."""
    name = context.settings.type
    found = cluster_backend_entry_points().get(name, ())
    where = f"cluster {context.cluster}: backend.type"
    if not found:
        names = ", ".join(sorted(installed_cluster_backends()))
        raise SettingsInvalid((f"{where}: must be one of {names}, is {name!r}; others need an entry point",))
    if len(found) > 1:
        raise SettingsInvalid((f"{where}: {name} is an entry point of several distributions",))
    try:
        factory = cast("BackendFactory", found[0].load())
    except Exception as error:  # somebody else's module may fail in any way
        raise SettingsInvalid((f"{where}: {found[0].value} cannot be loaded: {error}",)) from error
    return factory(context)
