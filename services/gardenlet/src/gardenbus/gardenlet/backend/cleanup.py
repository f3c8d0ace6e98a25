"""Removal of what its users left in a cluster, before the cluster itself is removed.

Source: Gardener's `botanist/cleanup.go` and its order: webhooks, which could reject everything else; extensions of the
API; what has something outside of the cluster (volumes, load balancers); namespaces.
"""

from typing import cast

from gardenbus.agent.kubernetes.client import KubernetesClient
from gardenbus.common.api.document import Document, section
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.port import StepFailed

CODE = "ERR_CLEANUP_CLUSTER_RESOURCES"
_POLL_SECONDS = 0.25
_NAMED = 5
_KEPT_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_WEBHOOKS = (
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
)
_EXTENSIONS = ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",)
_OUTSIDE = ("/apis/networking.k8s.io/v1/ingresses", "/api/v1/services", "/api/v1/persistentvolumeclaims")
_NAMESPACES = "/api/v1/namespaces"


async def clean_up(client: KubernetesClient, clock: Clock, *, within_seconds: float) -> None:
    """Remove it all, and wait until it is gone. Raises StepFailed naming what is left, and Unavailable."""
    deadline = clock.monotonic() + within_seconds
    for stage in (_WEBHOOKS, _EXTENSIONS, _OUTSIDE, (_NAMESPACES,)):
        while left := [each for path in stage for each in await _delete_all(client, path)]:
            if clock.monotonic() > deadline:
                more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
                raise StepFailed(f"Still in the cluster: {', '.join(left[:_NAMED])}{more}.", (CODE,))
            await clock.sleep(_POLL_SECONDS)


async def _delete_all(client: KubernetesClient, collection: str) -> list[str]:
    """Request the deletion of all objects that are not the system's; returns those that are still there."""
    left: list[str] = []
    for found in await client.items(collection):
        metadata = section(found, "metadata")
        name, namespace = str(metadata.get("name")), str(metadata.get("namespace") or "")
        if not _is_of_a_user(collection, found, name):
            continue
        plural = collection.rpartition("/")[2]
        root = collection.removesuffix(f"/{plural}")
        path = f"{root}/namespaces/{namespace}/{plural}/{name}" if namespace else f"{collection}/{name}"
        if metadata.get("deletionTimestamp") or await client.delete(path, uid=str(metadata.get("uid") or "")):
            left.append(_description(plural, f"{namespace}/{name}" if namespace else name, found))
    return left


def _is_of_a_user(collection: str, found: Document, name: str) -> bool:
    if collection == _NAMESPACES:
        return name not in _KEPT_NAMESPACES
    if collection.endswith("/services"):
        return section(found, "spec").get("type") == "LoadBalancer"
    return True


def _description(plural: str, name: str, found: Document) -> str:
    """An object with the reason why it is still there, where that is known."""
    finalizers = cast("list[str]", section(found, "metadata").get("finalizers") or [])
    if finalizers:
        return f"{plural} {name} (finalizers: {', '.join(finalizers)})"
    conditions = cast("list[Document]", section(found, "status").get("conditions") or [])
    reasons = [str(each.get("message")) for each in conditions if each.get("status") == "True"]
    return f"{plural} {name}" + (f" ({'; '.join(reasons)[:200]})" if reasons else "")
