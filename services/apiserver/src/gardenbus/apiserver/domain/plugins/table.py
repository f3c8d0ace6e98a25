"""The plug-ins, in the order in which they act: Gardener's (`plugin/pkg/plugins.go`), ours behind those they follow."""

from collections.abc import Sequence

from gardenbus.apiserver.domain.plugins import (
    bastion,
    controller_registration_resources,
    custom_verb_authorizer,
    deletion_confirmation,
    extension_labels,
    extension_validator,
    finalizer_removal,
    kubeconfig_secret,
    managed_seed,
    namespace_lifecycle,
    namespaced_cloud_profile_validator,
    openidconnect_preset,
    override_validator,
    placement_validator,
    project_mutator,
    project_validator,
    resource_quota,
    resource_reference_manager,
    resource_size,
    scheduling_requirements,
    seed_validator,
    shoot_dns,
    shoot_exposure_class,
    shoot_managed_seed,
    shoot_mutator,
    shoot_quota_validator,
    shoot_toleration_restriction,
    shoot_validator,
    shoot_vpa_enabled_by_default,
    use_as_seed,
)
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin
from gardenbus.common.api.configuration.admission import AdmissionConfiguration

PLUGINS: tuple[AdmissionPlugin, ...] = (
    namespace_lifecycle.PLUGIN,
    resource_reference_manager.PLUGIN,
    extension_validator.PLUGIN,
    extension_labels.PLUGIN,
    shoot_toleration_restriction.PLUGIN,
    shoot_exposure_class.PLUGIN,
    shoot_toleration_restriction.NOTES,
    shoot_dns.PLUGIN,
    shoot_managed_seed.PLUGIN,
    use_as_seed.PLUGIN,
    shoot_quota_validator.PLUGIN,
    shoot_mutator.PLUGIN,
    scheduling_requirements.PLUGIN,
    finalizer_removal.PLUGIN,
    shoot_validator.PLUGIN,
    seed_validator.PLUGIN,
    seed_validator.BUCKET_PLUGIN,
    controller_registration_resources.PLUGIN,
    namespaced_cloud_profile_validator.PLUGIN,
    project_mutator.PLUGIN,
    project_validator.PLUGIN,
    deletion_confirmation.PLUGIN,
    custom_verb_authorizer.PLUGIN,
    openidconnect_preset.PLUGIN,
    openidconnect_preset.CLUSTER_PLUGIN,
    shoot_vpa_enabled_by_default.PLUGIN,
    managed_seed.PLUGIN,
    bastion.PLUGIN,
    placement_validator.PLUGIN,
    override_validator.PLUGIN,
    kubeconfig_secret.PLUGIN,
    resource_size.PLUGIN,
    resource_quota.PLUGIN,
)


def enabled_plugins(configuration: AdmissionConfiguration) -> Sequence[AdmissionPlugin]:
    """The plug-ins that a configuration leaves or switches on, in their order."""
    tolerations = configuration.tolerations
    configured = {
        plugin.name: plugin
        for plugin in (
            resource_size.plugin(configuration.resource_sizes),
            shoot_toleration_restriction.plugin(tolerations),
            scheduling_requirements.plugin(configuration.priority_by_purpose),
            shoot_toleration_restriction.notes(tolerations),
        )
    }
    return tuple(configured.get(one.name, one) for one in PLUGINS if configuration.is_enabled(one.name))


DEFAULT_PLUGINS = enabled_plugins(AdmissionConfiguration())
