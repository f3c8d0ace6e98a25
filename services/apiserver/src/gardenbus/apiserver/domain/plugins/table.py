"""The plug-ins. Their order, and which are on by default, stand in `common.api.configuration.admission`."""

from collections.abc import Mapping, Sequence

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
from gardenbus.common.api.configuration.admission import ADMISSION_PLUGINS, AdmissionConfiguration

_BY_NAME: Mapping[str, AdmissionPlugin] = {
    plugin.name: plugin
    for plugin in (
        bastion.PLUGIN,
        controller_registration_resources.PLUGIN,
        custom_verb_authorizer.PLUGIN,
        deletion_confirmation.PLUGIN,
        extension_labels.PLUGIN,
        extension_validator.PLUGIN,
        finalizer_removal.PLUGIN,
        kubeconfig_secret.PLUGIN,
        managed_seed.PLUGIN,
        namespace_lifecycle.PLUGIN,
        namespaced_cloud_profile_validator.PLUGIN,
        openidconnect_preset.CLUSTER_PLUGIN,
        openidconnect_preset.PLUGIN,
        override_validator.PLUGIN,
        placement_validator.PLUGIN,
        project_mutator.PLUGIN,
        project_validator.PLUGIN,
        resource_quota.PLUGIN,
        resource_reference_manager.PLUGIN,
        resource_size.PLUGIN,
        scheduling_requirements.PLUGIN,
        seed_validator.BUCKET_PLUGIN,
        seed_validator.PLUGIN,
        shoot_dns.PLUGIN,
        shoot_exposure_class.PLUGIN,
        shoot_managed_seed.PLUGIN,
        shoot_mutator.PLUGIN,
        shoot_quota_validator.PLUGIN,
        shoot_toleration_restriction.NOTES,
        shoot_toleration_restriction.PLUGIN,
        shoot_validator.PLUGIN,
        shoot_vpa_enabled_by_default.PLUGIN,
        use_as_seed.PLUGIN,
    )
}

PLUGINS: tuple[AdmissionPlugin, ...] = tuple(_BY_NAME[name] for name in ADMISSION_PLUGINS)
"""All plug-ins, in the order in which they act."""


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
