"""Fields that a newer Kubernetes has no use for. Source: Gardener's `pkg/api/core/validation/shoot.go`."""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.value_rules import stated_in
from gardenbus.apiserver.domain.validation.workerless import OF_NODES, is_workerless
from gardenbus.common.api.garden.expirable_versions import Numbers, numbers_of
from gardenbus.common.api.garden.kubernetes_features import DROPPED_FIELDS

_INSTEAD = {
    "kubernetes.clusterAutoscaler.maxEmptyBulkDelete": "write maxScaleDownParallelism",
    "kubernetes.clusterAutoscaler.ignoreTaints": "write startupTaints or statusTaints",
    "dns.providers[].secretName": "write credentialsRef",
    "cloudProfileName": "write cloudProfile: {kind: CloudProfile, name: …}",
    "secretBindingName": "write credentialsBindingName",
}


def check_removed_fields(spec: FieldCursor) -> None:
    """Note each field that the version of a Shoot has no use for any more."""
    version = numbers_of(spec.section("kubernetes").content.get("version"))[:2]
    has_no_nodes = is_workerless(spec.content)
    for first, path in DROPPED_FIELDS:
        if version < first or (has_no_nodes and path.startswith(OF_NODES)):
            continue
        holder, is_listed, field = path.partition("[].")
        if is_listed:
            for entry in spec.nested(*holder.split(".")[:-1]).entries(holder.rpartition(".")[2]):
                if entry.has(field):
                    entry.add_error(field, _problem(path, first))
        elif stated_in(spec.content, path) not in (None, ""):
            spec.add_error(path, _problem(path, first))


def _problem(path: str, first: Numbers) -> str:
    return f"is for Kubernetes below {'.'.join(map(str, first))}: {_INSTEAD.get(path, 'leave it out')}"
