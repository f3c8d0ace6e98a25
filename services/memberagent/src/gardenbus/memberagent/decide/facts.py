"""What an agent finds out about its cluster, and what it says of that in the MemberCluster's status. Pure.

Source: KubeFleet's `pkg/controllers/internalmembercluster/v1beta1` and `apis/cluster/v1beta1`.
"""

from collections.abc import Mapping
from typing import NamedTuple

from gardenbus.common.resources.conditions import conditions_of, get_condition, observed_condition
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.member_clusters import (
    AGENT_LEFT,
    HEALTHY,
    JOINED,
    MEMBER_AGENT,
    NAMESPACE_COLLECTION_SUCCEEDED,
)
from gardenbus.memberagent.decide.listed import mappings

Usage = Mapping[str, Mapping[str, str]]


class Facts(NamedTuple):
    """How a cluster is at the moment."""

    properties: Mapping[str, str] = {}
    """What is measured, quantities by property."""

    usage: Usage = {}
    """`capacity`, `allocatable`, `available`: quantities by resource."""

    namespaces: Mapping[str, str] = {}
    """Each with the Work that made it ("" for one made by others)."""

    problem: str | None = None
    """Why it is not healthy."""

    is_silent: bool = False
    """Whether nothing is heard of it, so that nothing can be said either."""


def joined_patch(told: Document, facts: Facts, *, now: str) -> Document:
    """The status of a cluster that is in the fleet, to be merged into the one that was told last."""
    generation = section(told, "metadata").get("generation", 0)
    reached = ("True", "AgentHealthy", "The agent reaches its cluster.")
    health = reached if facts.problem is None else ("False", "AgentUnhealthy", facts.problem)
    healthy = observed_condition(_agent_conditions(told), HEALTHY, health, generation=generation, now=now)
    found = ("True", "NamespacesCollected", f"{len(facts.namespaces)} namespaces.")
    collected = observed_condition(
        conditions_of(told), NAMESPACE_COLLECTION_SUCCEEDED, found, generation=generation, now=now
    )
    return {
        **_membership(told, healthy, status="True", reason="MemberAgentJoined", message="It is in the fleet.", now=now),
        "conditions": [_joined(told, "True", "MemberAgentJoined", "It is in the fleet.", generation, now), collected],
        "properties": _without_lost(
            section(told, "status", "properties"),
            {name: {"value": value, "observationTime": now} for name, value in facts.properties.items()},
        ),
        "resourceUsage": {**{name: dict(values) for name, values in facts.usage.items()}, "observationTime": now},
        "namespaces": _without_lost(section(told, "status", "namespaces"), dict(facts.namespaces)),
    }


def left_patch(told: Document, *, now: str) -> Document:
    """The status of a cluster that is being deleted, once nothing that came by Works is in it."""
    message = "Nothing that came by Works is left in it."
    generation = section(told, "metadata").get("generation", 0)
    healthy = get_condition(_agent_conditions(told), HEALTHY)
    return {
        **_membership(told, healthy, status="False", reason=AGENT_LEFT, message=message, now=now),
        "conditions": [_joined(told, "False", AGENT_LEFT, message, generation, now)],
    }


def _joined(told: Document, status: str, reason: str, message: str, generation: int, now: str) -> Document:
    return observed_condition(conditions_of(told), JOINED, (status, reason, message), generation=generation, now=now)


def _membership(
    told: Document, healthy: Document | None, *, status: str, reason: str, message: str, now: str
) -> Document:
    generation = section(told, "metadata").get("generation", 0)
    joined = observed_condition(
        _agent_conditions(told), JOINED, (status, reason, message), generation=generation, now=now
    )
    conditions = [joined, healthy] if healthy is not None else [joined]
    return {"agentStatus": [{"type": MEMBER_AGENT, "conditions": conditions, "lastReceivedHeartbeat": now}]}


def _agent_conditions(told: Document) -> list[Document]:
    agents = mappings(section(told, "status"), "agentStatus")
    own = next((each for each in agents if each.get("type") == MEMBER_AGENT), None)
    return mappings(own, "conditions") if own is not None else []


def _without_lost(told: Document, wanted: Document) -> Document:
    """A patch that also takes away (null) what was told and is no more."""
    return {**{name: None for name in told if name not in wanted}, **wanted}
