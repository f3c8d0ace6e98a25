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
    _check_gated_fields(kubernetes)
    _check_pulls(kubernetes.section("kubelet"), version)
    for pool in spec.section("provider").entries("workers"):
        own = pool.section("kubernetes")
        of_pool = numbers_of(own.content.get("version")) or version
        _check_gates(own.section("kubelet"), of_pool)
        _check_pulls(own.section("kubelet"), of_pool)
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


_GATED_FIELDS = (
    ("kubeAPIServer", "structuredAuthentication", "StructuredAuthenticationConfiguration"),
    ("kubeAPIServer", "structuredAuthorization", "StructuredAuthorizationConfiguration"),
)
_VERIFICATION_FEATURE, _VERIFIED_SINCE = "KubeletEnsureSecretPulledImages", (1, 35)
_AUTOSCALER_GATES = ("CPUStartupBoost", "InPlace", "PerVPAConfig")


def check_autoscaler_gates(autoscaler: FieldCursor) -> None:
    """Note feature gates that the vertical pod autoscaler does not have (`ValidateVpaFeatureGates`)."""
    gates = autoscaler.section("featureGates")
    for name in gates.content:
        gates.boolean(name)
        if name not in _AUTOSCALER_GATES:
            gates.add_error(name[:80], f"there is no such feature gate: there are {', '.join(_AUTOSCALER_GATES)}")


def _check_gated_fields(kubernetes: FieldCursor) -> None:
    """Note fields that a feature gate of their component, which is off, takes away."""
    for component, field, feature in _GATED_FIELDS:
        holder = kubernetes.section(component)
        if holder.has(field) and holder.section("featureGates").content.get(feature) is False:
            holder.add_error(field, f"needs the feature gate {feature}: do not switch it off")
    proxy = kubernetes.section("kubeProxy")
    is_off = proxy.section("featureGates").content.get("NFTablesProxyMode") is False
    if proxy.content.get("mode") == "NFTables" and is_off:
        proxy.add_error("mode", "NFTables needs the feature gate NFTablesProxyMode: do not switch it off")
    check_autoscaler_gates(kubernetes.section("verticalPodAutoscaler"))


def _check_pulls(kubelet: FieldCursor, version: Numbers) -> None:
    """Note a policy of verifying pulled images that a kubelet does not have."""
    field = "imagePullCredentialsVerificationPolicy"
    if not kubelet.has(field):
        return
    if version and version[:2] < _VERIFIED_SINCE:
        kubelet.add_error(field, "is for Kubernetes 1.35 and above")
    if kubelet.section("featureGates").content.get(_VERIFICATION_FEATURE) is False:
        kubelet.add_error(field, f"needs the feature gate {_VERIFICATION_FEATURE}: do not switch it off")


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
