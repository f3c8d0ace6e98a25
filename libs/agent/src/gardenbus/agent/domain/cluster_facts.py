"""Status of a MemberCluster from the facts that its agent collects.

Source: KubeFleet's `pkg/controllers/internalmembercluster/v1beta1` and `apis/cluster/v1beta1`.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from gardenbus.agent.domain.documents import mappings
from gardenbus.common.api.conditions import conditions_of, get_condition, observed_condition
from gardenbus.common.api.configuration.member_agent import ClusterSettings
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.member_clusters import (
    AGENT_LEFT,
    HEALTHY,
    JOINED,
    MEMBER_AGENT,
    NAMESPACE_COLLECTION_SUCCEEDED,
)
from gardenbus.common.ports.clock import timestamp

ResourceQuantities = Mapping[str, Mapping[str, str]]


class ClusterFacts(NamedTuple):
    """Current state of a cluster."""

    properties: Mapping[str, str] = {}
    """Measured quantities, by property."""

    usage: ResourceQuantities = {}
    """`capacity`, `allocatable`, `available`: quantities by resource."""

    namespaces: Mapping[str, str] = {}
    """Namespaces, each with the Work that made it ("": made by others)."""

    problem: str | None = None
    """Reason why it is not healthy."""

    healthy_message: str = "The agent reaches its cluster."
    """Message of the condition while there is no problem."""

    certificate_expires_at: datetime | None = None
    """The end of its agent's client certificate; None without one."""

    is_silent: bool = False
    """True if the cluster cannot be reached, so that nothing can be reported."""


def configured_facts(cluster: ClusterSettings, measured: ClusterFacts) -> ClusterFacts:
    """State of a configured cluster: as measured, with the configured properties and amounts over that."""
    usage = cluster.resource_usage
    amounts = {"capacity": usage.capacity, "allocatable": usage.allocatable, "available": usage.available}
    return measured._replace(
        properties={**measured.properties, **{name: str(value) for name, value in cluster.properties.items()}},
        usage={
            field: {**measured.usage.get(field, {}), **{name: str(value) for name, value in each.items()}}
            for field, each in amounts.items()
        },
    )


def joined_patch(observed: Document, facts: ClusterFacts, *, now: str) -> Document:
    """Status patch of a cluster in the fleet, to be merged into the observed one."""
    generation = section(observed, "metadata").get("generation", 0)
    reached = ("True", "AgentHealthy", facts.healthy_message)
    health = reached if facts.problem is None else ("False", "AgentUnhealthy", facts.problem)
    healthy = observed_condition(_agent_conditions(observed), HEALTHY, health, generation=generation, now=now)
    found = ("True", "NamespacesCollected", f"{len(facts.namespaces)} namespaces.")
    collected = observed_condition(
        conditions_of(observed), NAMESPACE_COLLECTION_SUCCEEDED, found, generation=generation, now=now
    )
    return {
        **_membership(
            observed, healthy, status="True", reason="MemberAgentJoined", message="It is in the fleet.", now=now
        ),
        "conditions": [
            _joined(observed, "True", "MemberAgentJoined", "It is in the fleet.", generation, now),
            collected,
        ],
        "properties": _without_lost(
            section(observed, "status", "properties"),
            {name: {"value": value, "observationTime": now} for name, value in facts.properties.items()},
        ),
        "resourceUsage": {**{name: dict(values) for name, values in facts.usage.items()}, "observationTime": now},
        "namespaces": _without_lost(section(observed, "status", "namespaces"), dict(facts.namespaces)),
        **_certificate(facts),
    }


def _certificate(facts: ClusterFacts) -> Document:
    ends = facts.certificate_expires_at
    return {"clientCertificateExpirationTimestamp": timestamp(ends)} if ends is not None else {}


def left_patch(observed: Document, *, now: str) -> Document:
    """Status patch of a deleting cluster, once no object of a Work is in it."""
    message = "Nothing that came by Works is left in it."
    generation = section(observed, "metadata").get("generation", 0)
    healthy = get_condition(_agent_conditions(observed), HEALTHY)
    return {
        **_membership(observed, healthy, status="False", reason=AGENT_LEFT, message=message, now=now),
        "conditions": [_joined(observed, "False", AGENT_LEFT, message, generation, now)],
    }


def _joined(observed: Document, status: str, reason: str, message: str, generation: int, now: str) -> Document:
    return observed_condition(
        conditions_of(observed), JOINED, (status, reason, message), generation=generation, now=now
    )


def _membership(
    observed: Document, healthy: Document | None, *, status: str, reason: str, message: str, now: str
) -> Document:
    generation = section(observed, "metadata").get("generation", 0)
    joined = observed_condition(
        _agent_conditions(observed), JOINED, (status, reason, message), generation=generation, now=now
    )
    conditions = [joined, healthy] if healthy is not None else [joined]
    return {"agentStatus": [{"type": MEMBER_AGENT, "conditions": conditions, "lastReceivedHeartbeat": now}]}


def _agent_conditions(observed: Document) -> list[Document]:
    agents = mappings(section(observed, "status"), "agentStatus")
    own = next((each for each in agents if each.get("type") == MEMBER_AGENT), None)
    return mappings(own, "conditions") if own is not None else []


def _without_lost(observed: Document, wanted: Document) -> Document:
    """Patch that also removes (null) observed fields that are no longer wanted."""
    return {**{name: None for name in observed if name not in wanted}, **wanted}
