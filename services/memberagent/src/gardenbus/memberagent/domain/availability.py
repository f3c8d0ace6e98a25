"""Availability of an object in a cluster, from its own status.

Source: KubeFleet's `pkg/controllers/workapplier/availability_tracker.go`; Jobs as its earlier versions track them.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, cast

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document, section
from gardenbus.memberagent.domain.work_status import tracking_of


class ObjectAvailability(NamedTuple):
    """`is_available` None: it cannot be tracked."""

    is_available: bool | None
    message: str = ""


def availability_of(group: str, live: Document) -> ObjectAvailability:
    """Availability of an object as the cluster has it."""
    kind = str(live.get("kind"))
    track = _TRACKED.get((group, kind))
    if track is not None:
        return track(live)
    return ObjectAvailability(True) if tracking_of(kind) == "data" else ObjectAvailability(None)


def _deployment(live: Document) -> ObjectAvailability:
    wanted, status = _replicas(live), section(live, "status")
    if not _is_observed(live):
        return ObjectAvailability(False, "its controller has not seen it yet")
    for field in ("availableReplicas", "updatedReplicas", "replicas"):
        if _number(status, field) != wanted:
            return ObjectAvailability(False, f"{_number(status, field)} of {wanted} {_words(field)}")
    return ObjectAvailability(True)


def _stateful_set(live: Document) -> ObjectAvailability:
    wanted, status = _replicas(live), section(live, "status")
    if not _is_observed(live):
        return ObjectAvailability(False, "its controller has not seen it yet")
    if _number(status, "availableReplicas") != wanted:
        return ObjectAvailability(False, f"{_number(status, 'availableReplicas')} of {wanted} available replicas")
    if _number(status, "currentReplicas") != _number(status, "updatedReplicas"):
        return ObjectAvailability(False, "not all replicas are updated")
    is_current = status.get("currentRevision") == status.get("updateRevision")
    return ObjectAvailability(is_current, "" if is_current else "its revision is being rolled out")


def _daemon_set(live: Document) -> ObjectAvailability:
    status = section(live, "status")
    wanted = _number(status, "desiredNumberScheduled")
    if not _is_observed(live):
        return ObjectAvailability(False, "its controller has not seen it yet")
    if _number(status, "numberAvailable") != wanted:
        return ObjectAvailability(False, f"{_number(status, 'numberAvailable')} of {wanted} available")
    is_updated = _number(status, "currentNumberScheduled") == _number(status, "updatedNumberScheduled")
    return ObjectAvailability(is_updated, "" if is_updated else "not all are updated")


def _service(live: Document) -> ObjectAvailability:
    spec = section(live, "spec")
    match spec.get("type") or "ClusterIP":
        case "ClusterIP" | "NodePort":
            addresses: Any = spec.get("clusterIPs")
            has_address = isinstance(addresses, list) and bool(cast("list[Any]", addresses)[:1] or None)
            return ObjectAvailability(has_address, "" if has_address else "it has no cluster IP")
        case "LoadBalancer":
            entries: Any = section(live, "status", "loadBalancer").get("ingress")
            first: Any = cast("list[Any]", entries)[0] if isinstance(entries, list) and entries else {}
            has_ingress = bool(first.get("ip") or first.get("hostname"))
            return ObjectAvailability(has_ingress, "" if has_ingress else "no load balancer has given it an address")
        case _:
            return ObjectAvailability(None)


def _definition(live: Document) -> ObjectAvailability:
    for kind in ("Established", "NamesAccepted"):
        condition = get_condition(conditions_of(live), kind) or {}
        if condition.get("status") != "True":
            return ObjectAvailability(False, f"{kind} is {condition.get('status') or 'not set'}")
    return ObjectAvailability(True)


def _budget(live: Document) -> ObjectAvailability:
    is_observed = _is_observed(live) and _number(section(live, "status"), "observedGeneration") > 0
    return ObjectAvailability(is_observed, "" if is_observed else "its controller has not seen it yet")


def _job(live: Document) -> ObjectAvailability:
    status = section(live, "status")
    failed = get_condition(conditions_of(live), "Failed") or {}
    if failed.get("status") == "True":
        return ObjectAvailability(False, f"it has failed: {failed.get('message') or failed.get('reason')}")
    if _number(status, "succeeded") > 0 or _number(status, "ready") > 0:
        return ObjectAvailability(True)
    return ObjectAvailability(False, "none of its pods is ready")


_TRACKED: Mapping[tuple[str, str], Callable[[Document], ObjectAvailability]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("policy", "PodDisruptionBudget"): _budget,
    ("batch", "Job"): _job,
}


def _replicas(live: Document) -> int:
    replicas: Any = section(live, "spec").get("replicas")
    return 1 if replicas is None else int(replicas)


def _is_observed(live: Document) -> bool:
    return section(live, "status").get("observedGeneration") == section(live, "metadata").get("generation")


def _number(status: Document, field: str) -> int:
    return int(status.get(field) or 0)


def _words(field: str) -> str:
    return {"availableReplicas": "available replicas", "updatedReplicas": "updated replicas"}.get(field, field)
