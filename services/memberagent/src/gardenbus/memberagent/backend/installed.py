"""Backends that are installed: the member agent's own, and those of other distributions beside it."""

from gardenbus.agent.installed_backends import backend_factory
from gardenbus.memberagent.backend.port import BackendContext, BackendFactory, ClusterBackend

ENTRY_POINT_GROUP = "gardenbus.memberagent.backends"


def new_backend(context: BackendContext) -> ClusterBackend:
    """The backend that the configuration names. Raises SettingsInvalid when it is not installed, or cannot be made."""
    make: BackendFactory = backend_factory(ENTRY_POINT_GROUP, context.settings.type, f"cluster {context.cluster}")
    return make(context)
