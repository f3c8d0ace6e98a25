"""Fields of a Shoot that are for nodes, and rejected of one without workers.

Source: Gardener's `pkg/api/core/validation/shoot.go`. There the type and the ranges of a network for nodes and pods are
rejected as well. Here they come with a warning: the decisions about shoots that have them are the same with and
without.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.value_rules import stated_in
from gardenbus.common.api.document import Document

OF_NODES = (
    *("addons", "secretBindingName", "credentialsBindingName", "systemComponents", "networking.providerConfig"),
    *("provider.infrastructureConfig", "provider.controlPlaneConfig", "provider.workersSettings"),
    "kubernetes.kubeControllerManager.nodeCIDRMaskSize",
    "kubernetes.kubeControllerManager.nodeCIDRMaskSizeIPv6",
    "kubernetes.kubeControllerManager.horizontalPodAutoscaler",
    "kubernetes.kubeControllerManager.podEvictionTimeout",
    "kubernetes.kubeControllerManager.nodeMonitorGracePeriod",
    *("kubernetes.kubeScheduler", "kubernetes.kubeProxy", "kubernetes.kubelet", "kubernetes.clusterAutoscaler"),
    "kubernetes.verticalPodAutoscaler",
    "maintenance.autoUpdate.machineImageVersion",
    "maintenance.autoRotation.credentials.sshKeypair",
)
"""Fields of a spec that are for nodes."""
_TAKEN = ("networking.type", "networking.pods", "networking.nodes")


def is_workerless(spec: Mapping[str, Any]) -> bool:
    """True for the spec of a shoot without workers."""
    return not stated_in(spec, "provider.workers")


def check_workerless(spec: FieldCursor, before: Document) -> None:
    """Note each field that is for nodes, where there are none any more, or where it changes.

    Those that are taken with a warning are noted beside workers, or a provider, that are missed anyway.
    """
    if not spec or not is_workerless(spec.content):
        return
    had_workers = bool(stated_in(before, "provider.workers"))
    is_mistake = had_workers or not spec.content.get("provider")
    for path in (*OF_NODES, *(_TAKEN if is_mistake else ())):
        value = stated_in(spec.content, path)
        if value is not None and (had_workers or value != stated_in(before, path)):
            spec.add_error(path, "is for nodes, and a shoot without workers has none: leave it out")


def workerless_warnings(spec: Document) -> Iterator[str]:
    """A warning for each field of a new shoot that is for nodes, and taken all the same."""
    if is_workerless(spec):
        for path in _TAKEN:
            if stated_in(spec, path) is not None:
                yield f"spec.{path}: is for nodes, and a shoot without workers has none: Gardener rejects it"
