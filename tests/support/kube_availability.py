"""Objects whose availability a member agent tracks, on a real API server: their status is written as controllers do it.

There are no nodes, so nothing here would become available by itself; the controllers are stopped meanwhile.
"""

import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document
from gardenbus.gardenlet.backend.processes.child import running_below
from tests.support.kube_clusters import RealCluster


class Tracked(NamedTuple):
    """An object, its path, and what it waits for after each status, "" once it is available."""

    manifest: Document
    path: str
    waits_for: str
    statuses: tuple[tuple[Document, str], ...]


def _pods(name: str) -> Document:
    return {
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": name, "image": "registry.example.org/web:1"}]},
        },
    }


def _manifest(api_version: str, kind: str, name: str, spec: Document) -> Document:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "shop"}, "spec": spec}


SEEN: Document = {"observedGeneration": 1}
UNSEEN = "its controller has not seen it yet"
APPS = "/apis/apps/v1/namespaces/shop"
JOB: Document = {"template": {"spec": {**_pods("j")["template"]["spec"], "restartPolicy": "Never"}}}
BEGUN: Document = {"startTime": "2026-01-02T03:04:05Z"}

TRACKED = (
    Tracked(
        _manifest("apps/v1", "Deployment", "front", {"replicas": 2, **_pods("front")}),
        f"{APPS}/deployments/front",
        UNSEEN,
        (
            ({**SEEN, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 1},
             "1 of 2 available replicas"),
            ({**SEEN, "replicas": 3, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2},
             "3 of 2 replicas"),
            ({**SEEN, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}, ""),
        ),
    ),
    Tracked(
        _manifest("apps/v1", "StatefulSet", "store", {"replicas": 2, "serviceName": "store", **_pods("store")}),
        f"{APPS}/statefulsets/store",
        UNSEEN,
        (
            ({**SEEN, "replicas": 2, "availableReplicas": 1, "readyReplicas": 1}, "1 of 2 available replicas"),
            ({**SEEN, "replicas": 2, "availableReplicas": 2, "readyReplicas": 2, "currentReplicas": 1,
              "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"},
             "its revision is being rolled out"),
            ({**SEEN, "replicas": 2, "availableReplicas": 2, "readyReplicas": 2, "currentReplicas": 2,
              "updatedReplicas": 2, "currentRevision": "b", "updateRevision": "b"}, ""),
        ),
    ),
    Tracked(
        _manifest("apps/v1", "DaemonSet", "probe", _pods("probe")),
        f"{APPS}/daemonsets/probe",
        UNSEEN,
        (
            ({**SEEN, "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberMisscheduled": 0,
              "numberReady": 1, "numberAvailable": 1}, "1 of 2 available"),
            ({**SEEN, "desiredNumberScheduled": 2, "currentNumberScheduled": 2, "numberMisscheduled": 0,
              "numberReady": 2, "numberAvailable": 2, "updatedNumberScheduled": 2}, ""),
        ),
    ),
    Tracked(
        _manifest("batch/v1", "Job", "migrate", JOB),
        "/apis/batch/v1/namespaces/shop/jobs/migrate",
        "none of its pods is ready",
        (({**BEGUN, "active": 1, "ready": 0}, "none of its pods is ready"), ({**BEGUN, "active": 1, "ready": 1}, "")),
    ),
    Tracked(
        _manifest("v1", "Service", "door", {"type": "LoadBalancer", "ports": [{"port": 443}], "selector": {"a": "b"}}),
        "/api/v1/namespaces/shop/services/door",
        "no load balancer has given it an address",
        (({"loadBalancer": {"ingress": [{"hostname": "door.example.org"}]}}, ""),),
    ),
    Tracked(
        _manifest("policy/v1", "PodDisruptionBudget", "few", {"minAvailable": 1, "selector": {}}),
        "/apis/policy/v1/namespaces/shop/poddisruptionbudgets/few",
        UNSEEN,
        (
            ({**SEEN, "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 1, "expectedPods": 1}, ""),
        ),
    ),
)  # fmt: skip


async def write_status(cluster: RealCluster, path: str, status: Document) -> None:
    """Write a status as the object's controller would."""
    await cluster.client.request(
        "PATCH", f"{path}/status", body={"status": status}, content_type="application/merge-patch+json"
    )


@contextmanager
def stopped(directory: Path, name: str, program: str) -> Generator[None]:
    """Stop a program of a cluster, as SIGSTOP does, for the time of the block."""
    found: list[Any] = [
        running.child
        for running in running_below(next(directory.glob(f"seed/control-planes/*{name}*")))
        if any(argument.endswith(program) for argument in running.arguments[:2])
    ]
    (child,) = found
    child.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        child.signal(signal.SIGCONT)
