"""What an agent makes of objects in a cluster: order, availability, differences, amounts."""

from typing import Any

import pytest

from gardenbus.common.api.fleet.apply_order import LAST_WAVE, wave_of
from gardenbus.common.api.fleet.apply_strategies import DEFAULT_STRATEGY, ApplyStrategy, strategy_of
from gardenbus.memberagent.domain.availability import availability_of
from gardenbus.memberagent.domain.cluster_measures import properties_of, usage_of
from gardenbus.memberagent.domain.differences import (
    MOST_DIFFERENCES,
    SPEC_HASH,
    differences,
    manifest_hash,
    summary,
)
from gardenbus.memberagent.domain.work_status import ManifestResult, status_includes, status_of
from tests.support.member_agents import a_manifest, a_work

Document = dict[str, Any]


def test_definitions_and_namespaces_come_first_and_webhooks_and_strange_kinds_last() -> None:
    order = [
        ("", "Namespace"),
        ("", "ConfigMap"),
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
        ("apps", "Deployment"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("example.org", "Tide"),
    ]
    waves = [wave_of(*each) for each in order]
    assert waves == sorted(set(waves))
    assert wave_of("apiextensions.k8s.io", "CustomResourceDefinition") == 0
    assert wave_of("example.org", "Deployment") == LAST_WAVE


def live(kind: str, generation: int = 2, spec: Document | None = None, **status: Any) -> Document:
    return {"kind": kind, "metadata": {"generation": generation}, "spec": spec or {}, "status": status}


SEEN: Document = {"observedGeneration": 2}
READY: Document = {**SEEN, "replicas": 2, "availableReplicas": 2, "updatedReplicas": 2}
CURRENT: Document = {"currentReplicas": 2, "updatedReplicas": 2, "currentRevision": "a", "updateRevision": "a"}
TRUE = [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}]


@pytest.mark.parametrize(
    ("group", "document", "is_available"),
    [
        ("apps", live("Deployment", spec={"replicas": 2}, **READY), True),
        ("apps", live("Deployment", spec={"replicas": 3}, **READY), False),
        ("apps", live("Deployment", 3, spec={"replicas": 2}, **READY), False),
        ("apps", live("Deployment", **SEEN), False),
        ("apps", live("Deployment", spec={"replicas": 0}, **SEEN), True),
        ("apps", live("StatefulSet", spec={"replicas": 2}, **SEEN, availableReplicas=2, **CURRENT), True),
        ("apps", live("StatefulSet", spec={"replicas": 2}, **SEEN, availableReplicas=1, **CURRENT), False),
        ("apps", live("StatefulSet", spec={"replicas": 0}, **SEEN, currentRevision="a", updateRevision="b"), False),
        ("apps", live("DaemonSet", **SEEN), True),
        ("apps", live("DaemonSet", **SEEN, desiredNumberScheduled=2, numberAvailable=1), False),
        ("apps", live("DaemonSet", 3, **SEEN), False),
        ("", live("Service", spec={"clusterIPs": ["10.0.0.1"]}), True),
        ("", live("Service"), False),
        ("", live("Service", spec={"type": "LoadBalancer", "clusterIPs": ["10.0.0.1"]}), False),
        ("", live("Service", spec={"type": "LoadBalancer"}, loadBalancer={"ingress": [{"hostname": "a"}]}), True),
        ("", live("Service", spec={"type": "ExternalName"}), None),
        ("apiextensions.k8s.io", live("CustomResourceDefinition", conditions=TRUE), True),
        ("apiextensions.k8s.io", live("CustomResourceDefinition", conditions=None), False),
        ("policy", live("PodDisruptionBudget", **SEEN), True),
        ("policy", live("PodDisruptionBudget"), False),
        ("batch", live("Job", succeeded=1), True),
        ("batch", live("Job", ready=1), True),
        ("batch", live("Job", active=1), False),
        ("batch", live("Job", ready=1, conditions=[{"type": "Failed", "status": "True"}]), False),
        ("", live("ConfigMap"), True),
        ("example.org", live("Tide"), None),
        ("example.org", live("Deployment"), None),
    ],
)
def test_availability_is_what_the_status_says(group: str, document: Document, is_available: bool | None) -> None:
    found = availability_of(group, document)
    assert found.is_available is is_available
    assert bool(found.message) is (is_available is False)


def test_differences_are_named_by_pointers_without_what_the_cluster_keeps() -> None:
    hub = a_manifest(data={"a/b": "1", "c": [1, {"d": 2}]}, metadata={"annotations": {SPEC_HASH: "x"}})
    member = a_manifest(
        data={"a/b": "2", "c": [1, {"d": 3}, 4]},
        metadata={"uid": "u", "labels": {"app.kubernetes.io/name": "x", "mine": "y"}, "managedFields": []},
        status={"n": 1},
    )
    found = differences(hub, member)
    assert [each.detail() for each in found] == [
        {"path": "/data/a~1b", "valueInMember": "2", "valueInHub": "1"},
        {"path": "/data/c/1/d", "valueInMember": "3", "valueInHub": "2"},
        {"path": "/data/c/2", "valueInMember": "4"},
        {"path": "/metadata/labels", "valueInMember": '{"mine":"y"}'},
    ]
    assert summary(found) == "/data/a~1b, /data/c/1/d, /data/c/2 and 1 more"
    assert manifest_hash(hub) == manifest_hash(a_manifest(data=hub["data"]))
    assert manifest_hash(hub) != manifest_hash(member)


def test_what_a_secret_holds_is_not_reported() -> None:
    secret: Document = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"key": "aGlkZGVu"}}
    (found,) = differences(secret, {**secret, "data": {"key": "b3RoZXI="}})
    assert found.detail() == {"path": "/data/key", "valueInMember": "(redacted)", "valueInHub": "(redacted)"}
    (missing,) = differences(secret, {**secret, "data": {}})
    assert missing.detail() == {"path": "/data/key", "valueInHub": "(redacted)"}
    (whole,) = differences(secret, {name: value for name, value in secret.items() if name != "data"})
    assert "aGlk" not in str(whole)


def test_a_hundred_differences_are_enough() -> None:
    hub = a_manifest(data={str(number): "1" for number in range(300)})
    assert len(differences(hub, a_manifest(data={}))) == MOST_DIFFERENCES


def a_node(cpu: str, memory: str) -> Document:
    return {"status": {"capacity": {"cpu": cpu, "memory": memory}, "allocatable": {"cpu": "1900m", "memory": "3Gi"}}}


def a_pod(cpu: str, phase: str = "Running", node: str = "n", **spec: Any) -> Document:
    containers = [{"resources": {"requests": {"cpu": cpu, "memory": "512Mi"}}}]
    return {"spec": {"nodeName": node, "containers": containers, **spec}, "status": {"phase": phase}}


def test_free_is_what_the_pods_on_nodes_leave() -> None:
    nodes = [a_node("2", "4Gi"), a_node("2", "4Gi")]
    starting = [{"resources": {"requests": {"cpu": "1", "memory": "many"}}}]
    pods = [
        a_pod("500m"),
        a_pod("100m", initContainers=starting),
        a_pod("700m", phase="Succeeded"),
        a_pod("700m", node=""),
        a_pod("0", overhead={"cpu": "50m"}),
    ]
    usage = usage_of(nodes, pods)
    assert usage["capacity"] == {"cpu": "4", "memory": f"{8 << 20}Ki"}
    assert usage["allocatable"] == {"cpu": "3800m", "memory": f"{6 << 20}Ki"}
    assert usage["available"] == {"cpu": "2250m", "memory": f"{(6 << 20) - (3 << 19)}Ki"}
    assert usage_of([], pods)["available"] == {"cpu": "0", "memory": "0Ki"}
    assert properties_of("v1.34.4", nodes) == {"kubernetes-fleet.io/node-count": "2", "k8s.io/k8s-version": "v1.34.4"}


def test_a_strategy_is_read_with_kubefleets_defaults() -> None:
    given: Document = {
        "type": "ServerSideApply",
        "comparisonOption": "FullComparison",
        "whenToApply": "IfNotDrifted",
        "whenToTakeOver": "Never",
        "allowCoOwnership": True,
        "serverSideApplyConfig": {"force": True},
    }
    assert strategy_of(a_work()) == DEFAULT_STRATEGY
    assert strategy_of(a_work(spec={"applyStrategy": {"type": "Pull", "whenToApply": 1}})) == DEFAULT_STRATEGY
    chosen = strategy_of(a_work(spec={"applyStrategy": given}))
    assert chosen == ApplyStrategy("ServerSideApply", "FullComparison", "IfNotDrifted", "Never", True, True)
    assert DEFAULT_STRATEGY.takes_fields
    assert not ApplyStrategy("ServerSideApply").takes_fields


def test_drifts_are_in_the_status_of_a_work_and_the_same_ones_are_reported_once() -> None:
    manifest = a_manifest(data={"a": "1"})
    found = tuple(differences(manifest, a_manifest(data={"a": "2"})))
    result = ManifestResult(0, manifest, applied=False, message="it was changed", reason="FoundDrifts", drifts=found)
    work = a_work(manifest)
    work["status"] = status_of(work, [result], now="2026-01-01T00:00:00Z")
    (reported,) = work["status"]["manifestConditions"]
    assert reported["conditions"][0]["reason"] == "FoundDrifts"
    assert reported["driftDetails"]["observedDrifts"] == [{"path": "/data/a", "valueInMember": "2", "valueInHub": "1"}]
    assert status_includes(work, status_of(work, [result], now="2026-01-01T00:01:00Z"))
    more = result._replace(drifts=(*found, *found))
    later = status_of(work, [more], now="2026-01-01T00:02:00Z")["manifestConditions"][0]["driftDetails"]
    assert later["firstDriftedObservedTime"] == "2026-01-01T00:00:00Z"
    assert later["observationTime"] == "2026-01-01T00:02:00Z"
