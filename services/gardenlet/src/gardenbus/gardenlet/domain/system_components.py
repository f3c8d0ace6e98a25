"""Objects that the gardenlet keeps in every shoot, and what of a shoot's objects is in the way of its owner.

Source: Gardener's `pkg/gardenlet/operation/botanist` (shoot-info, cluster-identity), `pkg/gardenlet/operation/care`
(webhooks) and `pkg/utils/kubernetes/health`.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from gardenbus.common.api.conditions import TRUE, condition_status
from gardenbus.common.api.document import Document, section
from gardenbus.gardenlet.domain.control_plane import ClusterParameters

FIELD_MANAGER = "gardenbus-gardenlet"
SYSTEM_NAMESPACE = "kube-system"
_CONFIG_MAPS = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps"
_CRITICAL_RESOURCES = frozenset({"pods", "nodes", "leases", "configmaps", "endpoints", "secrets", "serviceaccounts"})
"""Some of the resources without which a cluster neither falls asleep nor wakes."""

_WRITES = frozenset({"CREATE", "UPDATE", "*"})


class SystemComponent(NamedTuple):
    """An object that is kept as it is here, with its path."""

    path: str
    manifest: Document


def system_components(
    spec: Document, cluster: ClusterParameters, *, shoot: tuple[str, str], uid: str
) -> tuple[SystemComponent, ...]:
    """The objects of one shoot."""
    namespace, name = shoot
    provider = section(spec, "provider")
    data = {
        "shootName": name,
        "projectName": namespace.removeprefix("garden-"),
        "technicalID": cluster.technical_id,
        "provider": str(provider.get("type") or ""),
        "region": str(spec.get("region") or ""),
        "kubernetesVersion": cluster.version,
        "podNetwork": cluster.pods,
        "serviceNetwork": cluster.services,
        "domain": str(section(spec, "dns").get("domain") or ""),
    }
    identity = {"cluster-identity": f"{cluster.technical_id}-{uid}", "origin": "shoot"}
    return (_config_map("shoot-info", data), _config_map("cluster-identity", identity))


def differs(component: SystemComponent, found: Document | None) -> bool:
    """True if an object of the cluster is missing, or does not have what is kept in it."""
    return found is None or section(found, "data") != component.manifest["data"]


def nodes_problem(nodes: Iterable[Document], *, wanted: int) -> str | None:
    """Problem of a cluster's Nodes; None when as many are ready as its pools have at least."""
    ready = [node for node in nodes if condition_status(_conditions(node), "Ready") == TRUE]
    if len(ready) >= wanted:
        return None
    return f"{len(ready)} of at least {wanted} nodes are ready: the seed's backend makes no machines."


def webhook_problem(configurations: Iterable[Document]) -> str | None:
    """Problem of admission webhooks that can block the system; None when there is none.

    A webhook blocks when it fails closed on writes of what the system itself writes, in the system's namespace.
    """
    found: list[str] = []
    for configuration in configurations:
        name = str(section(configuration, "metadata").get("name"))
        found += [
            f"{name}/{webhook.get('name')}"
            for webhook in cast("list[Document]", configuration.get("webhooks") or [])
            if webhook.get("failurePolicy") != "Ignore" and _is_about_the_system(webhook)
        ]
    return f"Webhooks that fail closed block the system: {', '.join(sorted(found))}." if found else None


def _is_about_the_system(webhook: Document) -> bool:
    selector = section(webhook, "namespaceSelector")
    if selector.get("matchLabels") or selector.get("matchExpressions"):
        return False
    rules = cast("list[Mapping[str, list[str]]]", webhook.get("rules") or [])
    return any(
        _WRITES.intersection(rule.get("operations") or ())
        and (_CRITICAL_RESOURCES | {"*", "*/*"}).intersection(rule.get("resources") or ())
        for rule in rules
    )


def _conditions(document: Document) -> list[Document]:
    return cast("list[Document]", section(document, "status").get("conditions") or [])


def _config_map(name: str, data: Mapping[str, str]) -> SystemComponent:
    manifest: Document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": SYSTEM_NAMESPACE,
            "labels": {"resources.gardener.cloud/managed-by": "gardener"},
        },
        "data": dict(data),
    }
    return SystemComponent(f"{_CONFIG_MAPS}/{name}", manifest)
