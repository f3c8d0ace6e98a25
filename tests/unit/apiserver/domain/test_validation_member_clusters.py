"""Every field of member clusters, and of what their agents report, that something reads."""

import pytest

from gardenbus.apiserver.domain.defaults import with_defaults
from gardenbus.apiserver.domain.validation.manifest import validate, validate_status
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.common.api.document import Document
from gardenbus.common.errors import InvalidResource

EMPTY: Document = {}


def a_cluster(spec: Document | None = None, status: Document | None = None, name: str = "east") -> Document:
    return {
        "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
        "kind": "MemberCluster",
        "metadata": {"name": name},
        "spec": spec or {},
        "status": status or {},
    }


def problems_of(document: Document) -> dict[str, str]:
    with pytest.raises(InvalidResource) as caught:
        validate(document, None)
    return {problem.field: problem.message for problem in caught.value.problems}


def test_a_member_cluster_is_right() -> None:
    status = {
        "properties": {"kubernetes-fleet.io/node-count": {"value": "4", "observationTime": "2026-01-02T03:04:05Z"}},
        "resourceUsage": {"capacity": {"cpu": "8", "memory": "16Gi"}, "allocatable": {}, "available": {"cpu": "500m"}},
        "agentStatus": [
            {
                "type": "MemberAgent",
                "conditions": [{"type": "Joined", "status": "True", "observedGeneration": 1}],
                "lastReceivedHeartbeat": "2026-01-02T03:04:05Z",
            }
        ],
        "namespaces": {"team": "web-work"},
        "conditions": [{"type": "Joined", "status": "True"}],
    }
    cluster = with_defaults(a_cluster({"taints": [{"key": "gpu"}, {"key": "gpu", "value": "yes"}]}, status))
    validate(cluster, None)
    validate_status(cluster, a_cluster())
    assert cluster["spec"]["heartbeatPeriodSeconds"] == 60
    assert cluster["spec"]["taints"][0] == {"key": "gpu", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"heartbeatPeriodSeconds": 0}, "spec.heartbeatPeriodSeconds", "at least 1"),
        ({"heartbeatPeriodSeconds": 601}, "spec.heartbeatPeriodSeconds", "at most 600"),
        ({"deleteOptions": {"validationMode": "Lax"}}, "spec.deleteOptions.validationMode", "Strict, Skip"),
        ({"taints": [{"value": "a"}]}, "spec.taints[0].key", "is needed"),
        ({"taints": [{"key": "a", "effect": "NoExecute"}]}, "spec.taints[0].effect", "NoSchedule"),
        ({"taints": [{"key": "a", "value": "b c"}]}, "spec.taints[0].value", "no label value"),
        ({"taints": [{"key": "a"}, {"key": "a"}]}, "spec.taints[1].key", "keep one"),
        ({"taints": [{"key": f"a{i}"} for i in range(101)]}, "spec.taints", "at most 100"),
    ],
)
def test_a_member_cluster_is_wrong(spec: Document, field: str, message: str) -> None:
    assert message in problems_of(with_defaults(a_cluster(spec)))[field]


def test_the_name_of_a_member_cluster_fits_its_namespace_and_its_subject() -> None:
    validate(a_cluster(name="a" * 50), None)
    assert "at most 50" in problems_of(a_cluster(name="a" * 51))["metadata.name"]
    with pytest.raises(InvalidResource, match=r"metadata\.name"):
        key_of(a_cluster(name="east.example"))


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"properties": {"nodes": "4"}}, "status.properties.nodes"),
        ({"properties": {"nodes": {"value": 4}}}, "status.properties.nodes.value"),
        ({"properties": {"nodes": {"value": "many"}}}, "status.properties.nodes.value"),
        ({"resourceUsage": {"capacity": {"cpu": "lots"}}}, "status.resourceUsage.capacity[cpu]"),
        ({"resourceUsage": {"available": {"cpu": 4}}}, "status.resourceUsage.available[cpu]"),
        (
            {"agentStatus": [{"type": "MemberAgent", "lastReceivedHeartbeat": "now"}]},
            "status.agentStatus[0].lastReceivedHeartbeat",
        ),
        ({"agentStatus": [EMPTY]}, "status.agentStatus[0].type"),
        (
            {"agentStatus": [{"type": "A", "conditions": [{"type": "Joined", "status": "Yes"}]}]},
            "status.agentStatus[0].conditions[0].status",
        ),
        ({"namespaces": {"team": 5}}, "status.namespaces[team]"),
        (
            {"conditions": [{"type": "Joined", "status": "True", "observedGeneration": "1"}]},
            "status.conditions[0].observedGeneration",
        ),
    ],
)
def test_an_agent_may_not_report_of_its_cluster_what_nobody_can_read(status: Document, field: str) -> None:
    with pytest.raises(InvalidResource) as caught:
        validate_status(a_cluster(status=status), a_cluster())
    assert [problem.field for problem in caught.value.problems] == [field]


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"conditions": [{"type": "Applied", "status": "Yes"}]}, "status.conditions[0].status"),
        ({"manifestConditions": [EMPTY]}, "status.manifestConditions[0].identifier"),
        ({"manifestConditions": [{"identifier": {"ordinal": -1}}]}, "status.manifestConditions[0].identifier.ordinal"),
        (
            {"manifestConditions": [{"identifier": {"ordinal": 0}, "conditions": [{"type": "Applied"}]}]},
            "status.manifestConditions[0].conditions[0].status",
        ),
    ],
)
def test_an_agent_may_not_report_of_a_work_what_nobody_can_read(status: Document, field: str) -> None:
    work = {
        "apiVersion": "placement.kubernetes-fleet.io/v1beta1",
        "kind": "Work",
        "metadata": {"name": "w", "namespace": "fleet-member-a"},
    }
    with pytest.raises(InvalidResource) as caught:
        validate_status({**work, "status": status}, work)
    assert [problem.field for problem in caught.value.problems] == [field]
