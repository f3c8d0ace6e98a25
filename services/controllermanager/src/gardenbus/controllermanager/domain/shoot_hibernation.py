"""Decides when a shoot goes to sleep and wakes up by its schedules.

The last edge that was passed counts, if it is not older than the trigger deadline, and if no edge was acted upon since:
what a person switches after an edge stays until the next one.

Source: Gardener's `pkg/controllermanager/controller/shoot/hibernation`.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.hibernation import edges_of, latest_edge, next_edge_at
from gardenbus.common.ports.clock import parse_timestamp, timestamp
from gardenbus.controllermanager.domain.failed_shoots import has_failed

TRIGGER_TIME = "lastHibernationTriggerTime"
HIBERNATED = ("Hibernated", "Hibernating cluster due to schedule")
AWAKE = ("WokenUp", "Waking up cluster due to schedule")
"""Reasons and messages of the Events."""

OLDEST_EDGE = timedelta(days=7)


class NoSchedule(NamedTuple):
    """Nothing to do until the shoot changes; `reason` says why."""

    reason: str


class AwaitEdge(NamedTuple):
    """Nothing to do before the next edge."""

    next_at: datetime


class SwitchHibernation(NamedTuple):
    """An edge was passed: the shoot goes to sleep (`hibernates`), or wakes up."""

    hibernates: bool
    edge_at: datetime


HibernationDecision = NoSchedule | AwaitEdge | SwitchHibernation


def decide_hibernation(shoot: Document, now: datetime, trigger_deadline: timedelta | None) -> HibernationDecision:
    """Decide about a shoot; without a deadline, an edge of the last week counts."""
    if section(shoot, "metadata").get("deletionTimestamp"):
        return NoSchedule("it is being deleted")
    try:
        edges = edges_of(section(shoot, "spec"))
    except ValueError as error:
        return NoSchedule(f"a schedule cannot be read: {error}")
    next_at = next_edge_at(edges, now)
    if next_at is None:
        return NoSchedule("it has no schedules")
    passed = None if has_failed(shoot) else latest_edge(edges, _since(shoot, now, trigger_deadline), now)
    return AwaitEdge(next_at) if passed is None else SwitchHibernation(passed.hibernates, passed.at)


def with_trigger_time(shoot: Document, now: datetime) -> Document:
    """The shoot with the time of the switch in its status."""
    return {**shoot, "status": {**section(shoot, "status"), TRIGGER_TIME: timestamp(now)}}


def _since(shoot: Document, now: datetime, trigger_deadline: timedelta | None) -> datetime:
    """The instant after which an edge counts."""
    triggered_at = parse_timestamp(section(shoot, "status").get(TRIGGER_TIME))
    created_at = parse_timestamp(section(shoot, "metadata").get("creationTimestamp"))
    oldest = now - (OLDEST_EDGE if trigger_deadline is None else min(trigger_deadline, OLDEST_EDGE))
    return max(oldest, triggered_at or created_at or oldest)
