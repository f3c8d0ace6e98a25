"""Feature gates and admission plug-ins that a newer Kubernetes does not have: a maintenance takes them out.

Source: Gardener's `pkg/controllermanager/controller/shoot/maintenance/reconciler.go`.
"""

from collections.abc import Mapping, Sequence

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.expirable_versions import Numbers, numbers_of
from gardenbus.common.api.garden.kubernetes_features import (
    GATED_COMPONENTS,
    VersionedFeature,
    admission_plugins,
    feature_gates,
)
from gardenbus.controllermanager.domain.dropped_fields import CleanedSpec

_PLUGINS = "spec.kubernetes.kubeAPIServer.admissionPlugins"


def without_unsupported_features(spec: Document) -> CleanedSpec:
    """The spec of a shoot without what its versions do not have; itself where there is nothing of the kind."""
    kubernetes = section(spec, "kubernetes")
    version = str(kubernetes.get("version") or "")
    operations: list[str] = []
    cleaned = _without_gates(kubernetes, GATED_COMPONENTS, version, "spec.kubernetes", operations)
    cleaned = _without_plugins(cleaned, version, operations)
    pools = mappings(section(spec, "provider").get("workers"))
    cleaned_pools = [_of_pool(pool, version, index, operations) for index, pool in enumerate(pools)]
    if not operations:
        return CleanedSpec(spec, ())
    changed: Document = {**spec, "kubernetes": cleaned}
    if pools:
        changed["provider"] = {**section(spec, "provider"), "workers": cleaned_pools}
    return CleanedSpec(changed, tuple(operations))


def _of_pool(pool: Document, version: str, index: int, operations: list[str]) -> Document:
    kubernetes = section(pool, "kubernetes")
    own, path = str(kubernetes.get("version") or version), f"spec.provider.workers[{index}].kubernetes"
    cleaned = _without_gates(kubernetes, ("kubelet",), own, path, operations)
    return pool if cleaned is kubernetes else {**pool, "kubernetes": cleaned}


def _without_gates(
    kubernetes: Document, components: Sequence[str], version: str, path: str, operations: list[str]
) -> Document:
    for field in components:
        component = section(kubernetes, field)
        gates = section(component, "featureGates")
        removed = _unsupported(gates, feature_gates(), numbers_of(version))
        if removed:
            operations.append(_removed("feature gates", f"{path}.{field}.featureGates", version, removed))
            kept = {name: value for name, value in gates.items() if name not in removed}
            kubernetes = {**kubernetes, field: {**component, "featureGates": kept}}
    return kubernetes


def _without_plugins(kubernetes: Document, version: str, operations: list[str]) -> Document:
    server = section(kubernetes, "kubeAPIServer")
    plugins = mappings(server.get("admissionPlugins"))
    names = [str(plugin.get("name")) for plugin in plugins]
    removed = _unsupported(names, admission_plugins(), numbers_of(version))
    if not removed:
        return kubernetes
    operations.append(_removed("admission plugins", _PLUGINS, version, removed))
    kept = [plugin for plugin in plugins if plugin.get("name") not in removed]
    return {**kubernetes, "kubeAPIServer": {**server, "admissionPlugins": kept}}


def _unsupported(
    names: Sequence[str] | Document, features: Mapping[str, VersionedFeature], version: Numbers
) -> Sequence[str]:
    if not version:
        return ()
    return sorted(name for name in names if name not in features or not features[name].is_in(version))


def _removed(what: str, path: str, version: str, removed: Sequence[str]) -> str:
    listed = ", ".join(removed)
    return f'Removed {what} from "{path}" because they are not supported in Kubernetes version "{version}": {listed}'
