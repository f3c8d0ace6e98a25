"""Health and progress of objects, in Gardener's words."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.gardenlet.domain.managed_resources.health import (
    has_exact_pods,
    health_problem,
    progress_problem,
)


def an_object(kind: str, *, spec: Document | None = None, generation: int = 1, **status: Any) -> Document:
    return {"kind": kind, "metadata": {"generation": generation}, "spec": spec or {}, "status": status}


def a_condition(kind: str, status: str = "True", reason: str = "R", message: str = "M") -> Document:
    return {"type": kind, "status": status, "reason": reason, "message": message}


OBSERVED: Document = {"observedGeneration": 1}
ROLLING = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}}}

UNHEALTHY = [
    ("apps", an_object("Deployment"), "observed generation outdated (0/1)"),
    ("apps", an_object("Deployment", **OBSERVED), 'condition "Available" is missing'),
    (
        "apps",
        an_object(
            "Deployment", **OBSERVED, conditions=[a_condition("Available", "False", "MinimumReplicas", "no pods")]
        ),
        'condition "Available" has invalid status False (expected True) due to MinimumReplicas: no pods',
    ),
    (
        "apps",
        an_object(
            "Deployment", **OBSERVED, conditions=[a_condition("Available"), a_condition("Progressing", "Unknown")]
        ),
        'condition "Progressing" has invalid status Unknown (expected True) due to R: M',
    ),
    (
        "apps",
        an_object("Deployment", **OBSERVED, conditions=[a_condition("Available"), a_condition("ReplicaFailure")]),
        'condition "ReplicaFailure" has invalid status True (expected False) due to R: M',
    ),
    ("apps", an_object("StatefulSet"), "observed generation outdated (0/1)"),
    (
        "apps",
        an_object("StatefulSet", spec={"replicas": 3}, **OBSERVED, readyReplicas=2),
        "not enough ready replicas (2/3)",
    ),
    ("apps", an_object("StatefulSet", **OBSERVED), "not enough ready replicas (0/1)"),
    (
        "apps",
        an_object("DaemonSet", **OBSERVED, desiredNumberScheduled=3, currentNumberScheduled=2),
        "not enough scheduled pods (2/3)",
    ),
    ("apps", an_object("DaemonSet", **OBSERVED, numberMisscheduled=1), "misscheduled pods found (1)"),
    (
        "apps",
        an_object(
            "DaemonSet",
            **OBSERVED,
            desiredNumberScheduled=2,
            currentNumberScheduled=2,
            updatedNumberScheduled=2,
            numberUnavailable=1,
        ),
        "too many unavailable pods found (1/2)",
    ),
    (
        "apps",
        an_object(
            "DaemonSet",
            spec=ROLLING,
            **OBSERVED,
            desiredNumberScheduled=3,
            currentNumberScheduled=3,
            updatedNumberScheduled=1,
            numberUnavailable=2,
        ),
        "too many unavailable pods found (2/3, only max. 1 unavailable pods allowed)",
    ),
    (
        "apps",
        an_object("ReplicaSet", spec={"replicas": 1}, **OBSERVED),
        "ReplicaSet does not have minimum availability",
    ),
    (
        "",
        an_object("ReplicationController", spec={"replicas": 1}, **OBSERVED),
        "ReplicationController does not have minimum availability",
    ),
    (
        "batch",
        an_object("Job", conditions=[a_condition("Failed", reason="BackoffLimitExceeded", message="too often")]),
        'condition "Failed" has invalid status True (expected False) due to BackoffLimitExceeded: too often',
    ),
    (
        "",
        an_object("Pod", phase="Pending"),
        'pod is in invalid phase "Pending" (expected one of ["Running" "Succeeded"])',
    ),
    ("", an_object("Service", spec={"type": "LoadBalancer"}), "service is missing ingress status"),
    ("apiextensions.k8s.io", an_object("CustomResourceDefinition"), 'condition "NamesAccepted" is missing'),
    (
        "apiextensions.k8s.io",
        an_object("CustomResourceDefinition", conditions=[a_condition("NamesAccepted")]),
        'condition "Established" is missing',
    ),
    (
        "apiextensions.k8s.io",
        an_object(
            "CustomResourceDefinition",
            conditions=[a_condition("NamesAccepted"), a_condition("Established"), a_condition("Terminating")],
        ),
        'condition "Terminating" has invalid status True (expected False) due to R: M',
    ),
    ("monitoring.coreos.com", an_object("Prometheus"), 'condition "Available" is missing'),
    (
        "monitoring.coreos.com",
        an_object("Alertmanager", conditions=[{**a_condition("Available"), "observedGeneration": 1}]),
        "not enough available replicas (0/1)",
    ),
    (
        "cert.gardener.cloud",
        an_object("Certificate", state="Pending"),
        'certificate state is "Pending" ("Ready" expected)',
    ),
    ("cert.gardener.cloud", an_object("Issuer"), 'issuer state is "" ("Ready" expected)'),
]


@pytest.mark.parametrize(("group", "live", "problem"), UNHEALTHY)
def test_an_object_that_is_not_healthy_has_gardeners_message(group: str, live: Document, problem: str) -> None:
    assert health_problem(group, live) == problem


@pytest.mark.parametrize(("group", "live", "_problem"), UNHEALTHY)
def test_a_check_that_is_to_be_skipped_finds_nothing(group: str, live: Document, _problem: str) -> None:
    annotations = {"resources.gardener.cloud/skip-health-check": "true"}
    skipped = {**live, "metadata": {**live["metadata"], "annotations": annotations}}
    assert health_problem(group, skipped) is None
    assert progress_problem(group, skipped) is None


HEALTHY = [
    ("apps", an_object("Deployment", **OBSERVED, conditions=[a_condition("Available"), a_condition("Progressing")])),
    ("apps", an_object("StatefulSet", spec={"replicas": 0}, **OBSERVED)),
    (
        "apps",
        an_object(
            "DaemonSet",
            spec=ROLLING,
            **OBSERVED,
            desiredNumberScheduled=4,
            currentNumberScheduled=4,
            updatedNumberScheduled=1,
            numberUnavailable=2,
        ),
    ),
    ("apps", an_object("ReplicaSet", **OBSERVED)),
    ("batch", an_object("Job", conditions=[a_condition("Complete")])),
    ("", an_object("Pod", phase="Succeeded")),
    ("", an_object("Service", spec={"type": "LoadBalancer"}, loadBalancer={"ingress": [{"ip": "1.2.3.4"}]})),
    ("", an_object("ConfigMap")),
    ("example.com", an_object("Deployment")),
    ("cert.gardener.cloud", an_object("Certificate", state="Ready")),
    ("autoscaling.k8s.io", an_object("VerticalPodAutoscaler")),
]


@pytest.mark.parametrize(("group", "live"), HEALTHY)
def test_an_object_that_is_well_or_not_checked_has_no_problem(group: str, live: Document) -> None:
    assert health_problem(group, live) is None


PROGRESSING = [
    ("apps", an_object("Deployment", generation=2, **OBSERVED), "observed generation outdated (1/2)"),
    ("apps", an_object("Deployment", **OBSERVED), 'condition "Progressing" is missing'),
    (
        "apps",
        an_object("Deployment", **OBSERVED, conditions=[a_condition("Progressing", reason="ReplicaSetUpdated")]),
        "M",
    ),
    ("apps", an_object("StatefulSet", spec={"replicas": 2}, **OBSERVED), "0 of 2 replica(s) have been updated"),
    (
        "apps",
        an_object("DaemonSet", **OBSERVED, desiredNumberScheduled=2, updatedNumberScheduled=1),
        "1 of 2 replica(s) have been updated",
    ),
    ("monitoring.coreos.com", an_object("Prometheus"), 'condition "Reconciled" is missing'),
    ("cert.gardener.cloud", an_object("Issuer"), "observed generation outdated (0/1)"),
]


@pytest.mark.parametrize(("group", "live", "problem"), PROGRESSING)
def test_an_object_that_is_being_rolled_out_has_gardeners_message(group: str, live: Document, problem: str) -> None:
    assert progress_problem(group, live) == problem


def test_an_object_that_is_rolled_out_or_never_is_has_no_problem() -> None:
    done = an_object("Deployment", **OBSERVED, conditions=[a_condition("Progressing", reason="NewReplicaSetAvailable")])
    assert progress_problem("apps", done) is None
    assert progress_problem("", an_object("ConfigMap")) is None


ENDED: list[Document] = [
    {"phase": "Failed"},
    {"phase": "Running", "reason": "Evicted"},
    {"phase": "Running", "reason": "OutOfcpu"},
    {"phase": "Running", "conditions": [a_condition("Ready", "False", "PodCompleted")]},
    {"phase": "Running", "conditions": [a_condition("DisruptionTarget")]},
]


def test_only_pods_that_have_not_ended_count_as_replicas() -> None:
    running: Document = {"status": {"phase": "Running"}}
    deployment = an_object("Deployment", spec={"replicas": 2})
    ended: list[Document] = [{"status": each} for each in ENDED]
    assert has_exact_pods(deployment, [running, running, *ended])
    assert not has_exact_pods(deployment, [running, running, running])
    assert not has_exact_pods(an_object("Deployment"), [])
