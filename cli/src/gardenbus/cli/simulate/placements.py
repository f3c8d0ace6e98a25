"""Dry run of placements: the decisions that a live service would make with the same clusters and bindings."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple, TypeVar

from gardenbus.common.api.document import Document, opened_lists, section
from gardenbus.common.api.fleet.member_clusters import MemberCluster
from gardenbus.common.api.fleet.placement_parts import (
    IS_LATEST_LABEL,
    NUMBER_OF_CLUSTERS,
    PLACEMENT_GENERATION,
    PolicySnapshot,
    PolicySnapshotSpec,
    ResourceBinding,
    of,
)
from gardenbus.common.api.fleet.placements import KINDS, PARENT_LABEL, Placement
from gardenbus.common.api.fleet.rows import decision_rows
from gardenbus.common.api.views import Metadata, TypedView, read_view
from gardenbus.common.errors import InvalidResource
from gardenbus.fleet.cycle import decide
from gardenbus.fleet.cycle_result import UnexpectedState
from gardenbus.fleet.decisions import ALL
from gardenbus.fleet.eligibility import instant
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.requirements import requirements_of

V = TypeVar("V", bound=TypedView)


def simulate(documents: Iterable[Document], now: float | None = None) -> list[dict[str, Any]]:
    """Decide every placement among manifests (Lists are opened), in the order given, each on its own.

    Eligibility is assessed at `now` (unix seconds), or at the newest heartbeat. Existing bindings count; with policy
    snapshots among the manifests, they identify bindings of an earlier policy, otherwise the newest snapshot that
    bindings name is the current one.

    Returns `{"placement", "fulfilled", "decisions": [{"cluster", "selected", "affinityScore", "topologySpreadScore",
    "reason"}]}` each: the chosen in order, then the others. Scores are None where nothing was ranked. A failed decision
    has an `error` besides. A cluster that cannot be parsed is left out.
    """
    opened = list(opened_lists(documents))
    clusters = list(_views(opened, "MemberCluster", MemberCluster))
    heartbeats = (instant(cluster.agent.last_received_heartbeat) for cluster in clusters if cluster.agent)
    moment = now if now is not None else max(heartbeats, default=0.0)
    fleet = Fleet.of(clusters, 0.0 if moment == -inf else moment)
    return [
        _simulate_one(document, opened, fleet, fleet.eligibility.now)
        for document in opened
        if str(document["kind"]).lower() in KINDS
    ]


class PlacementManifests(NamedTuple):
    """A placement with its current policy snapshot and its bindings."""

    placement: Placement
    snapshot: PolicySnapshot
    bindings: list[ResourceBinding]


def placement_manifests(placement: Placement, documents: Sequence[Document]) -> PlacementManifests:
    """Collect the parts of a placement among manifests; a missing snapshot is made up."""
    kinds = of(placement.key.kind)
    bindings = [one for one in _views(documents, kinds.binding, ResourceBinding) if _is_of(one.metadata, placement)]
    snapshots = [
        one for one in _views(documents, kinds.policy_snapshot, PolicySnapshot) if _is_of(one.metadata, placement)
    ]
    return PlacementManifests(placement, _snapshot(placement, snapshots, bindings), bindings)


def _simulate_one(document: Document, documents: Sequence[Document], fleet: Fleet, now: float) -> dict[str, Any]:
    namespace, name = (str(section(document, "metadata").get(field) or "") for field in ("namespace", "name"))
    label = f"{namespace}/{name}" if namespace else name
    try:
        eligibility = placement_manifests(Placement.from_document(document), documents)
        cycle = decide(eligibility.placement, eligibility.snapshot, fleet, eligibility.bindings, now, ALL)
    except (InvalidResource, UnexpectedState) as error:
        return {"placement": label, "fulfilled": False, "decisions": [], "error": error.message}
    return {"placement": label, "fulfilled": cycle.fulfilled, "decisions": decision_rows(cycle.decisions)}


def _snapshot(
    placement: Placement, snapshots: Sequence[PolicySnapshot], bindings: Sequence[ResourceBinding]
) -> PolicySnapshot:
    policy = placement.policy
    annotations = {PLACEMENT_GENERATION: str(placement.metadata.generation)}
    if policy.number_of_clusters is not None:
        annotations[NUMBER_OF_CLUSTERS] = str(policy.number_of_clusters)
    metadata = Metadata(
        name=_snapshot_name(placement, snapshots, bindings),
        namespace=placement.metadata.namespace,
        annotations=annotations,
    )
    return PolicySnapshot(metadata, PolicySnapshotSpec(policy))


def _snapshot_name(
    placement: Placement, snapshots: Sequence[PolicySnapshot], bindings: Sequence[ResourceBinding]
) -> str:
    if not snapshots:
        named = {binding.spec.scheduling_policy_snapshot_name for binding in bindings} - {""}
        return max(named, key=_index, default=f"{placement.metadata.name}-0")
    latest = max(
        snapshots,
        key=lambda one: (one.metadata.labels.get(IS_LATEST_LABEL) == "true", _index(one.metadata.name)),
    )
    if requirements_of(latest.spec.policy) == requirements_of(placement.spec.policy):
        return latest.metadata.name
    newest, _ = max(_index(one.metadata.name) for one in snapshots)
    return f"{placement.metadata.name}-{newest + 1}"


def _index(name: str) -> tuple[int, str]:
    last = name.rpartition("-")[2]
    return (int(last) if last.isascii() and last.isdigit() else -1, name)


def _is_of(metadata: Metadata, placement: Placement) -> bool:
    return (
        metadata.labels.get(PARENT_LABEL) == placement.metadata.name
        and metadata.namespace == placement.metadata.namespace
    )


def _views(documents: Iterable[Document], kind: str, view: type[V]) -> Iterator[V]:
    for document in documents:
        if document["kind"] == kind:
            try:
                yield read_view(document, view)
            except InvalidResource:
                continue
