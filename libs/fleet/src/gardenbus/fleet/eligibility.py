"""Whether a cluster can be placed on at all: its agent is heard, has joined, and is not unhealthy for long.

What makes a cluster ineligible either holds from the start or from an instant on, when nobody says otherwise before.
Source: KubeFleet's `clustereligibilitychecker`.
"""

from datetime import UTC, datetime
from functools import lru_cache
from math import inf

from gardenbus.common.resources.conditions import TRUE
from gardenbus.common.resources.member_clusters import HEALTHY, JOINED, AgentCondition, AgentStatus, MemberCluster

HEARTBEAT_TIMEOUT_SECONDS = 300.0
"""How old the last heartbeat may be."""

HEALTH_TIMEOUT_SECONDS = 300.0
"""How long a cluster may be unhealthy before it counts."""

Outlook = tuple[tuple[float, str], ...]
"""Objections, each with the instant (unix seconds) after which it holds; the first that holds is told."""


def outlook(cluster: MemberCluster) -> Outlook:
    """What speaks against a cluster, now or once an instant has passed, in the order of the checks."""
    if cluster.is_deleting:
        return ((-inf, "it is leaving the fleet"),)
    agent = cluster.agent
    if agent is None:
        return ((-inf, "its member agent has not reported yet"),)
    stale = (
        instant(agent.last_received_heartbeat) + HEARTBEAT_TIMEOUT_SECONDS,
        "its heartbeat is older than 5 minutes",
    )
    joined = _condition(agent, JOINED)
    if joined is None or joined.status != TRUE:
        return (stale, (-inf, "it has not joined the fleet"))
    healthy = _condition(agent, HEALTHY)
    if healthy is None:
        return (stale, (-inf, "its health is not known"))
    if healthy.status != TRUE:
        return (
            stale,
            (instant(healthy.last_transition_time) + HEALTH_TIMEOUT_SECONDS, "it is unhealthy for more than 5 minutes"),
        )
    return (stale,)


def objection(cluster: MemberCluster, now: float) -> str | None:
    """Why a cluster is not eligible at `now` (unix seconds); None when it is."""
    return objection_at(outlook(cluster), now)


def objection_at(objections: Outlook, now: float) -> str | None:
    """The first objection that holds at `now`."""
    return next((reason for after, reason in objections if now > after), None)


def next_change(objections: Outlook, now: float) -> float:
    """After which instant something holds that does not hold at `now`; infinite if nothing will."""
    return min((after for after, _ in objections if after >= now), default=inf)


@lru_cache(maxsize=16384)
def instant(text: str) -> float:
    """The unix seconds of a timestamp; -infinity for one that is missing or cannot be read."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return -inf
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _condition(agent: AgentStatus, kind: str) -> AgentCondition | None:
    return next((condition for condition in agent.conditions if condition.type == kind), None)
