"""Findings about the cluster of a Plant, and its status made of them.

Source: Gardener's `pkg/controllermanager/controller/plant` and `pkg/utils/kubernetes/health` of v1.53, the last with
Plants. A text has no response time, so that what has not changed is not written.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from gardenbus.common.api.conditions import FALSE, TRUE, UNKNOWN, build_condition, conditions_of, get_or_init
from gardenbus.common.api.document import Document, section

API_SERVER_AVAILABLE = "APIServerAvailable"
EVERY_NODE_READY = "EveryNodeReady"
NOT_FOUND = "Referenced Plant secret could not be found."
NO_KUBECONFIG = "Plant secret needs to contain a kubeconfig key."

_HTTP_OK = 200
_LONGEST_TEXT = 300
_LONGEST_FACT = 63
_UNKNOWN_FACT = "<unknown>"
_REGIONS = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_PRESSURES = ("DiskPressure", "MemoryPressure", "NetworkUnavailable", "PIDPressure")


class NodeCondition(msgspec.Struct, frozen=True):
    """A condition of a node."""

    type: str = ""
    status: str = ""
    reason: str | None = None
    message: str | None = None


class NodeMetadata(msgspec.Struct, frozen=True):
    """The metadata of a node."""

    name: str = ""
    labels: dict[str, str] | None = None


class NodeSpec(msgspec.Struct, frozen=True):
    """The spec of a node."""

    provider_id: str | None = msgspec.field(name="providerID", default=None)


class NodeStatus(msgspec.Struct, frozen=True):
    """The status of a node."""

    conditions: list[NodeCondition] | None = None


class PlantNode(msgspec.Struct, frozen=True):
    """The part of a node that is read; a server sends the others for nothing."""

    metadata: NodeMetadata = NodeMetadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class PlantFinding(NamedTuple):
    """Status, reason and message of a condition."""

    status: str
    reason: str
    message: str


class PlantFacts(NamedTuple):
    """The content of `status.clusterInfo`."""

    cloud: str = ""
    region: str = ""
    version: str = ""


class PlantFindings(NamedTuple):
    """All that one check has found out. `facts` is None where those of before are kept."""

    api_server: PlantFinding
    nodes: PlantFinding
    facts: PlantFacts | None


def not_reachable(message: str) -> PlantFindings:
    """The findings about a cluster to which no way leads."""
    text = _plain(message)
    return PlantFindings(
        PlantFinding(FALSE, "APIServerDown", text), PlantFinding(FALSE, "Nodes not reachable", text), PlantFacts()
    )


def healthz_failed(problem: str) -> PlantFinding:
    """The finding about an API server that gives no response."""
    return PlantFinding(
        FALSE, "HealthzRequestFailed", f"Request to API server /healthz endpoint failed. ({_plain(problem)})"
    )


def healthz_finding(code: int, content: bytes) -> PlantFinding:
    """The finding about an API server, by its response."""
    if code == _HTTP_OK:
        text = "API server /healthz endpoint responded with success status code."
        return PlantFinding(TRUE, "HealthzRequestSucceeded", text)
    body = _plain(content[: 4 * _LONGEST_TEXT].decode(errors="replace"))
    text = f"API server /healthz endpoint check returned a non ok status code {code}. ({body})"
    return PlantFinding(FALSE, "HealthzRequestError", text)


def nodes_not_checked(problem: str) -> PlantFinding:
    """The finding about nodes of which there is no list."""
    return PlantFinding(UNKNOWN, "ConditionCheckError", _plain(problem))


def nodes_finding(problem: str | None) -> PlantFinding:
    """The finding about the nodes, by the first problem of any."""
    if problem is not None:
        return PlantFinding(FALSE, "NodesUnhealthy", _plain(problem))
    return PlantFinding(TRUE, "EveryNodeReady", "All nodes are ready.")


def first_problem(nodes: Iterable[PlantNode]) -> str | None:
    """The problem of the first node that has one: it is not ready, or lacks something."""
    for node in nodes:
        conditions = {each.type: each for each in node.status.conditions or ()}
        ready = conditions.get("Ready")
        if ready is None:
            return f'Node {node.metadata.name} is unhealthy: condition "Ready" is missing'
        for condition, wanted in ((ready, TRUE), *((conditions.get(kind), FALSE) for kind in _PRESSURES)):
            if condition is not None and condition.status != wanted:
                return (
                    f'Node {node.metadata.name} is unhealthy: condition "{condition.type}" has invalid status '
                    f"{condition.status} (expected {wanted}) due to {condition.reason or ''}: {condition.message or ''}"
                )
    return None


def facts_of(node: PlantNode | None, version: str) -> PlantFacts:
    """The facts about a cluster, by one of its nodes."""
    if node is None:
        return PlantFacts(_UNKNOWN_FACT, _UNKNOWN_FACT, _fact(version))
    labels = node.metadata.labels or {}
    region = next((labels[label] for label in _REGIONS if labels.get(label)), _UNKNOWN_FACT)
    cloud = (node.spec.provider_id or "").partition("://")[0] or _UNKNOWN_FACT
    return PlantFacts(_fact(cloud), _fact(region), _fact(version))


def with_findings(plant: Document, findings: PlantFindings, now: str) -> Document:
    """The Plant with its status; equal to what it was where nothing has changed."""
    before = conditions_of(plant)
    conditions: list[Document] = []
    for kind, finding in ((API_SERVER_AVAILABLE, findings.api_server), (EVERY_NODE_READY, findings.nodes)):
        old = get_or_init(before, kind, now)
        new, _ = build_condition(old, now=now, status=finding.status, reason=finding.reason, message=finding.message)
        conditions.append(new)
    status = {**section(plant, "status"), "conditions": conditions}
    if (facts := findings.facts) is not None:
        cloud = {"type": facts.cloud, "region": facts.region}
        status["clusterInfo"] = {"cloud": cloud, "kubernetes": {"version": facts.version}}
    generation = section(plant, "metadata").get("generation")
    return {**plant, "status": status | ({"observedGeneration": generation} if generation else {})}


def _plain(text: str) -> str:
    """Text of somebody else's server as one line of a bounded length."""
    line = " ".join(text[: 4 * _LONGEST_TEXT].split())
    return "".join(each if each.isprintable() else "?" for each in line)[:_LONGEST_TEXT]


def _fact(text: str) -> str:
    return _plain(text)[:_LONGEST_FACT]
