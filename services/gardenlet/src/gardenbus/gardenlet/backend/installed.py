"""Makers that are installed: the gardenlet's own, and those of other distributions beside it."""

from gardenbus.agent.installed_backends import backend_entry_points, backend_factory
from gardenbus.gardenlet.backend.port import Maker, MakerContext, MakerFactory

ENTRY_POINT_GROUP = "gardenbus.gardenlet.backends"


def installed_backends() -> frozenset[str]:
    """Names that `backend.type` of a GardenletConfiguration can have here."""
    return frozenset(backend_entry_points(ENTRY_POINT_GROUP))


def new_maker(context: MakerContext) -> Maker:
    """The maker that the configuration names. Raises SettingsInvalid when it is not installed, or cannot be made."""
    make: MakerFactory = backend_factory(ENTRY_POINT_GROUP, context.settings.type, f"seed {context.seed_name}")
    return make(context)
