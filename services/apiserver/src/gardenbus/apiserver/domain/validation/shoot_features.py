"""Rules of feature gates and admission plug-ins of a Shoot, which depend on its version of Kubernetes.

Source: Gardener's `ValidateFeatureGates` and `ValidateAdmissionPlugins` in `pkg/utils/validation`.
"""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.common.api.garden.expirable_versions import Numbers, numbers_of
from gardenbus.common.api.garden.kubernetes_features import (
    CALLING_PLUGINS,
    CONFIGURED_PLUGINS,
    GATED_COMPONENTS,
    REQUIRED_PLUGINS,
    admission_plugins,
    feature_gates,
)


def check_features(spec: FieldCursor) -> None:
    """Note gates and plug-ins that the versions of a Shoot's spec do not have, or that cannot be what they are."""
    kubernetes = spec.section("kubernetes")
    version = numbers_of(kubernetes.content.get("version"))
    for component in GATED_COMPONENTS:
        _check_gates(kubernetes.section(component), version)
    for pool in spec.section("provider").entries("workers"):
        own = pool.section("kubernetes")
        _check_gates(own.section("kubelet"), numbers_of(own.content.get("version")) or version)
    for plugin in kubernetes.section("kubeAPIServer").entries("admissionPlugins"):
        _check_plugin(plugin, version)


def _check_gates(component: FieldCursor, version: Numbers) -> None:
    gates = component.section("featureGates")
    for name in gates.content:
        value, feature = gates.boolean(name), feature_gates().get(name)
        if feature is None:
            gates.add_error(name[:80], "there is no such feature gate")
        elif not feature.is_in(version):
            gates.add_error(name, f"Kubernetes {_text(version)} does not have this feature gate: leave it out")
        elif value is not None and value != feature.value and feature.is_locked_in(version):
            gates.add_error(
                name, f"is {str(feature.value).lower()} for good in Kubernetes {_text(version)}: leave it out"
            )


def _check_plugin(plugin: FieldCursor, version: Numbers) -> None:
    name = plugin.text("name", required=True)
    if name is None:
        return
    versions = admission_plugins().get(name)
    if versions is None:
        plugin.add_error("name", f"there is no admission plug-in {name[:80]!r}")
        return
    if not versions.is_in(version):
        plugin.add_error("name", f"Kubernetes {_text(version)} does not have the admission plug-in {name}")
        return
    if plugin.boolean("disabled") and name in REQUIRED_PLUGINS:
        plugin.add_error("disabled", f"{name} cannot be disabled")
    if plugin.has("config") and name not in CONFIGURED_PLUGINS:
        plugin.add_error("config", f"{name} takes no configuration: leave it out")
    if plugin.has("kubeconfigSecretName") and name not in CALLING_PLUGINS:
        plugin.add_error("kubeconfigSecretName", f"{name} calls no server: leave it out")


def _text(version: Numbers) -> str:
    return ".".join(map(str, version))
