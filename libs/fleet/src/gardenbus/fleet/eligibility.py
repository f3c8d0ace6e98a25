"""Eligibility of a cluster: it has a fresh heartbeat, has joined, and is not unhealthy for long.

A reason for ineligibility holds either from the start or from an instant on, unless the agent reports before.
Source: KubeFleet's `clustereligibilitychecker`.
"""

from math import inf

from gardenbus.common.api.conditions import TRUE
from gardenbus.common.api.fleet.member_clusters import HEALTHY, JOINED, MemberCluster
from gardenbus.common.api.short_cache import short_cache
from gardenbus.common.api.views import condition_in
from gardenbus.common.ports.clock import parse_timestamp

HEARTBEAT_TIMEOUT_SECONDS = 300.0
"""Maximum age of the last heartbeat."""

HEALTH_TIMEOUT_SECONDS = 300.0
"""Tolerated duration of an unhealthy state."""

TimedReasons = tuple[tuple[float, str], ...]
"""Reasons for ineligibility, each with the instant (unix seconds) after which it holds; the first that holds counts."""


def timed_reasons(cluster: MemberCluster) -> TimedReasons:
    """Return the reasons against a cluster, present and future, in the order of the checks."""
    if cluster.is_deleting:
        return ((-inf, "it is leaving the fleet"),)
    agent = cluster.agent
    if agent is None:
        return ((-inf, "its member agent has not reported yet"),)
    stale = (
        instant(agent.last_received_heartbeat) + HEARTBEAT_TIMEOUT_SECONDS,
        "its heartbeat is older than 5 minutes",
    )
    joined = condition_in(agent.conditions, JOINED)
    if joined is None or joined.status != TRUE:
        return (stale, (-inf, "it has not joined the fleet"))
    healthy = condition_in(agent.conditions, HEALTHY)
    if healthy is None:
        return (stale, (-inf, "its health is not known"))
    if healthy.status != TRUE:
        return (
            stale,
            (instant(healthy.last_transition_time) + HEALTH_TIMEOUT_SECONDS, "it is unhealthy for more than 5 minutes"),
        )
    return (stale,)


def ineligibility_reason(cluster: MemberCluster, now: float) -> str | None:
    """Return why a cluster is not eligible at `now` (unix seconds); None when it is."""
    return reason_at(timed_reasons(cluster), now)


def reason_at(reasons: TimedReasons, now: float) -> str | None:
    """Return the first reason that holds at `now`."""
    return next((reason for after, reason in reasons if now > after), None)


def next_change(reasons: TimedReasons, now: float) -> float:
    """Return the next instant after which another reason holds; infinite if there is none."""
    return min((after for after, _ in reasons if after >= now), default=inf)


@short_cache(4096)
def instant(text: str) -> float:
    """Return the unix seconds of a timestamp; -infinity for one that is missing or unreadable."""
    moment = parse_timestamp(text)
    return -inf if moment is None else moment.timestamp()
