"""The plug-ins, in the order in which they act: Gardener's (`plugin/pkg/plugins.go`), ours behind those they follow."""

from gardenbus.apiserver.domain.plugins import (
    deletion_confirmation,
    finalizer_removal,
    managed_seed,
    namespaced_cloud_profile_validator,
    placement_validator,
    project_validator,
    resource_reference_manager,
    seed_validator,
    shoot_exposure_class,
    shoot_managed_seed,
    shoot_mutator,
    shoot_toleration_restriction,
    shoot_validator,
    use_as_seed,
)
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin

PLUGINS: tuple[AdmissionPlugin, ...] = (
    resource_reference_manager.PLUGIN,
    shoot_toleration_restriction.PLUGIN,
    shoot_exposure_class.PLUGIN,
    shoot_toleration_restriction.NOTES,
    shoot_managed_seed.PLUGIN,
    use_as_seed.PLUGIN,
    shoot_mutator.PLUGIN,
    finalizer_removal.PLUGIN,
    shoot_validator.PLUGIN,
    seed_validator.PLUGIN,
    namespaced_cloud_profile_validator.PLUGIN,
    project_validator.PLUGIN,
    deletion_confirmation.PLUGIN,
    managed_seed.PLUGIN,
    placement_validator.PLUGIN,
)
DEFAULT_PLUGINS = tuple(plugin for plugin in PLUGINS if plugin.is_default)
