"""The overlay of a seed's maker, where the gardenlet's configuration switches it on."""

from gardenbus.common.api.configuration.gardenlet import ExtensionSettings
from gardenbus.gardenlet.backend.extensions.maker import ExtensionsMaker
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.port import Maker, MakerContext


def with_extensions(maker: Maker, context: MakerContext, settings: ExtensionSettings) -> Maker:
    """The maker itself, unless extensions act on some kinds of objects on this seed."""
    if not settings.kubeconfig or not settings.kinds:
        return maker
    api = SeedAPI(context.directory / settings.kubeconfig, context.clock, context.owned)
    return ExtensionsMaker(maker, context, api, settings)
