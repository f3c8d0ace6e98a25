"""Totals of a placement's bindings, its decisions, and the health of clusters. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from gardenbus.common.api.conditions import TRUE
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.fleet.placement_parts import BOUND, SCHEDULED
from gardenbus.common.api.fleet.rows import BindingRow, ClusterRow
from gardenbus.common.api.garden.rows import text

HEARTBEAT_TIMEOUT = timedelta(minutes=5)
"""Age of the last heartbeat from which on a cluster is not eligible."""


class PlacementProgress(msgspec.Struct, frozen=True):
    """Numbers of a placement's clusters, by progress."""

    selected: int = 0
    bound: int = 0
    available: int = 0


def count_bindings(bindings: Iterable[BindingRow]) -> PlacementProgress:
    """Count bindings by progress; deleting ones are left out."""
    there = [row for row in bindings if not row.is_deleting and row.state in (SCHEDULED, BOUND)]
    return PlacementProgress(
        len(there), sum(row.state == BOUND for row in there), sum(row.is_available for row in there)
    )


def decisions_of(snapshot: Document) -> list[Document]:
    """Return a policy snapshot's decisions, each with both scores (null where nothing was ranked)."""
    return [
        {
            "cluster": text(each.get("clusterName")),
            "selected": each.get("selected") is True,
            "affinityScore": _score(each, "affinityScore"),
            "topologySpreadScore": _score(each, "priorityScore"),
            "reason": text(each.get("reason")),
        }
        for each in mappings(section(snapshot, "status").get("targetClusters"))
    ]


def is_cluster_healthy(row: ClusterRow, now: datetime) -> bool:
    """Report whether a cluster has joined, is healthy, and had a heartbeat within five minutes."""
    try:
        last_heartbeat_at = datetime.fromisoformat(row.heartbeat)
    except ValueError:
        return False
    is_recent = last_heartbeat_at.tzinfo is not None and now - last_heartbeat_at <= HEARTBEAT_TIMEOUT
    return is_recent and not row.is_deleting and row.joined == TRUE and row.healthy == TRUE


def _score(decision: Document, name: str) -> int | None:
    score = section(decision, "clusterScore").get(name)
    return score if isinstance(score, int) else None
