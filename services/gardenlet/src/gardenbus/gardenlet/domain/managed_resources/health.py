"""Health of an object, and whether it is being rolled out, from its own status.

Source: Gardener's `pkg/utils/kubernetes/health` and `pkg/resourcemanager/controller/health/progressing`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gardenbus.common.api.conditions import FALSE, TRUE, conditions_of, get_condition
from gardenbus.common.api.document import Document, section
from gardenbus.gardenlet.domain.managed_resources.names import SKIP_HEALTH_CHECK, annotations_of

OLD_PODS = "there are still non-terminated old pods"
_HEALTHY_PHASES = ("Running", "Succeeded")
_ROLLED_OUT = "NewReplicaSetAvailable"
_HUNDRED = 100

StatusCheck = Callable[[Document], str | None]


def health_problem(group: str, live: Document) -> str | None:
    """The first problem of an object; None when it is healthy, or nothing is checked of its kind."""
    return _checked(_HEALTH, group, live)


def progress_problem(group: str, live: Document) -> str | None:
    """The unmet condition of a rollout; None when it is complete, or the kind of the object is not rolled out."""
    return _checked(_PROGRESS, group, live)


def has_exact_pods(deployment: Document, pods: Iterable[Document]) -> bool:
    """True if a Deployment has as many pods as replicas, apart from those that have ended."""
    return sum(not _has_ended(each) for each in pods) == _replicas(deployment)


def _checked(checks: Mapping[tuple[str, str], StatusCheck], group: str, live: Document) -> str | None:
    check = checks.get((group, str(live.get("kind"))))
    if check is None or annotations_of(live).get(SKIP_HEALTH_CHECK) == "true":
        return None
    return check(live)


# ---------------------------------------------------------------------------------------------- health


def _deployment(live: Document) -> str | None:
    return (
        _generation_problem(live)
        or _condition_problem(live, "Available", TRUE)
        or _condition_problem(live, "Progressing", TRUE, is_required=False)
        or _condition_problem(live, "ReplicaFailure", FALSE, is_required=False)
    )


def _stateful_set(live: Document) -> str | None:
    ready, wanted = _number(live, "readyReplicas"), _replicas(live)
    return _generation_problem(live) or (f"not enough ready replicas ({ready}/{wanted})" if ready < wanted else None)


def _daemon_set(live: Document) -> str | None:
    if problem := _generation_problem(live):
        return problem
    wanted, current = _number(live, "desiredNumberScheduled"), _number(live, "currentNumberScheduled")
    if current < wanted:
        return f"not enough scheduled pods ({current}/{wanted})"
    if misscheduled := _number(live, "numberMisscheduled"):
        return f"misscheduled pods found ({misscheduled})"
    unavailable = _number(live, "numberUnavailable")
    if _number(live, "updatedNumberScheduled") >= wanted:
        return f"too many unavailable pods found ({unavailable}/{current})" if unavailable else None
    most = _most_unavailable(live, wanted)
    if unavailable <= most:
        return None
    return f"too many unavailable pods found ({unavailable}/{current}, only max. {most} unavailable pods allowed)"


def _job(live: Document) -> str | None:
    return _condition_problem(live, "Failed", FALSE, is_required=False)


def _pod(live: Document) -> str | None:
    phase = section(live, "status").get("phase") or ""
    expected = " ".join(f'"{each}"' for each in _HEALTHY_PHASES)
    return None if phase in _HEALTHY_PHASES else f'pod is in invalid phase "{phase}" (expected one of [{expected}])'


def _replica_set(live: Document) -> str | None:
    if problem := _generation_problem(live):
        return problem
    wanted: Any = section(live, "spec").get("replicas")
    is_short = isinstance(wanted, int) and _number(live, "readyReplicas") < wanted
    return f"{live.get('kind')} does not have minimum availability" if is_short else None


def _service(live: Document) -> str | None:
    if section(live, "spec").get("type") != "LoadBalancer" or section(live, "status", "loadBalancer").get("ingress"):
        return None
    return "service is missing ingress status"


def _definition(live: Document) -> str | None:
    return (
        _condition_problem(live, "NamesAccepted", TRUE)
        or _condition_problem(live, "Established", TRUE)
        or _condition_problem(live, "Terminating", FALSE, is_required=False)
    )


def _monitoring(live: Document) -> str | None:
    available, wanted = _number(live, "availableReplicas"), _replicas(live)
    return _monitoring_problem(live, "Available") or (
        f"not enough available replicas ({available}/{wanted})" if available < wanted else None
    )


def _vertical_pod_autoscaler(live: Document) -> str | None:
    return _condition_problem(live, "ConfigUnsupported", FALSE, is_required=False)


def _certificate(live: Document) -> str | None:
    return _condition_problem(live, "Ready", TRUE, is_required=False) or _state_problem(live, "certificate")


def _issuer(live: Document) -> str | None:
    return _state_problem(live, "issuer")


_HEALTH: Mapping[tuple[str, str], StatusCheck] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "ReplicaSet"): _replica_set,
    ("batch", "Job"): _job,
    ("", "Pod"): _pod,
    ("", "ReplicationController"): _replica_set,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("monitoring.coreos.com", "Prometheus"): _monitoring,
    ("monitoring.coreos.com", "Alertmanager"): _monitoring,
    ("autoscaling.k8s.io", "VerticalPodAutoscaler"): _vertical_pod_autoscaler,
    ("cert.gardener.cloud", "Certificate"): _certificate,
    ("cert.gardener.cloud", "Issuer"): _issuer,
}


# ---------------------------------------------------------------------------------------------- progress


def _deployment_progress(live: Document) -> str | None:
    if problem := _generation_problem(live):
        return problem
    condition = get_condition(conditions_of(live), "Progressing")
    if condition is None:
        return 'condition "Progressing" is missing'
    is_done = condition.get("status") == TRUE and condition.get("reason") == _ROLLED_OUT
    return None if is_done else str(condition.get("message") or "")


def _stateful_set_progress(live: Document) -> str | None:
    return _generation_problem(live) or _update_problem(_number(live, "updatedReplicas"), _replicas(live))


def _daemon_set_progress(live: Document) -> str | None:
    wanted = _number(live, "desiredNumberScheduled")
    return _generation_problem(live) or _update_problem(_number(live, "updatedNumberScheduled"), wanted)


def _monitoring_progress(live: Document) -> str | None:
    return _monitoring_problem(live, "Reconciled") or _update_problem(_number(live, "updatedReplicas"), _replicas(live))


def _generation_problem(live: Document) -> str | None:
    observed = _number(live, "observedGeneration")
    generation: Any = section(live, "metadata").get("generation") or 0
    return f"observed generation outdated ({observed}/{generation})" if observed < generation else None


_PROGRESS: Mapping[tuple[str, str], StatusCheck] = {
    ("apps", "Deployment"): _deployment_progress,
    ("apps", "StatefulSet"): _stateful_set_progress,
    ("apps", "DaemonSet"): _daemon_set_progress,
    ("monitoring.coreos.com", "Prometheus"): _monitoring_progress,
    ("monitoring.coreos.com", "Alertmanager"): _monitoring_progress,
    ("cert.gardener.cloud", "Certificate"): _generation_problem,
    ("cert.gardener.cloud", "Issuer"): _generation_problem,
}


def is_rolled_out_by_pods(group: str, live: Document) -> bool:
    """True for a kind of which pods of an older revision may be left when its status is complete."""
    return (group, live.get("kind")) == ("apps", "Deployment")


# ---------------------------------------------------------------------------------------------- parts


def _condition_problem(live: Document, kind: str, expected: str, *, is_required: bool = True) -> str | None:
    condition = get_condition(conditions_of(live), kind)
    if condition is None:
        return f'condition "{kind}" is missing' if is_required else None
    status = condition.get("status")
    if status == expected:
        return None
    due = f"due to {condition.get('reason') or ''}: {condition.get('message') or ''}"
    return f'condition "{kind}" has invalid status {status} (expected {expected}) {due}'


def _monitoring_problem(live: Document, kind: str) -> str | None:
    condition = get_condition(conditions_of(live), kind)
    if condition is None:
        return f'condition "{kind}" is missing'
    observed: Any = condition.get("observedGeneration") or 0
    generation: Any = section(live, "metadata").get("generation") or 0
    if observed < generation:
        return f"observed generation outdated ({observed}/{generation})"
    return _condition_problem(live, kind, TRUE)


def _state_problem(live: Document, name: str) -> str | None:
    state = section(live, "status").get("state") or ""
    return None if state == "Ready" else f'{name} state is "{state}" ("Ready" expected)'


def _update_problem(updated: int, wanted: int) -> str | None:
    return f"{updated} of {wanted} replica(s) have been updated" if updated < wanted else None


def _replicas(live: Document) -> int:
    wanted: Any = section(live, "spec").get("replicas")
    return wanted if isinstance(wanted, int) else 1


def _number(live: Document, field: str) -> int:
    value: Any = section(live, "status").get(field)
    return value if isinstance(value, int) else 0


def _most_unavailable(live: Document, wanted: int) -> int:
    """Pods that may be unavailable during a rollout; a percentage is rounded down."""
    strategy = section(live, "spec", "updateStrategy")
    value: Any = section(strategy, "rollingUpdate").get("maxUnavailable")
    if wanted == 0 or strategy.get("type") != "RollingUpdate":
        return 0
    if isinstance(value, str) and value.endswith("%") and value[:-1].isdigit():
        return int(value[:-1]) * wanted // _HUNDRED
    return value if isinstance(value, int) else 0


def _has_ended(pod: Document) -> bool:
    status = section(pod, "status")
    reason = str(status.get("reason") or "")
    if status.get("phase") in ("Failed", "Succeeded") or reason.startswith("OutOf"):
        return True
    if any(each in reason for each in ("Evicted", "NodeAffinity", "NodeLost")):
        return True
    conditions = conditions_of(pod)
    ready = get_condition(conditions, "Ready") or {}
    is_completed = ready.get("status") == FALSE and ready.get("reason") == "PodCompleted"
    return is_completed or (get_condition(conditions, "DisruptionTarget") or {}).get("status") == TRUE
