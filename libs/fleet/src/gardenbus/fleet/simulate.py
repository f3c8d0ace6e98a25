"""Placements decided on paper: what a live service would come to with the same clusters and bindings."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, NamedTuple, TypeVar, cast

from gardenbus.common.errors import InvalidResource
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.member_clusters import MemberCluster
from gardenbus.common.resources.placement_parts import (
    IS_LATEST_LABEL,
    NUMBER_OF_CLUSTERS,
    PLACEMENT_GENERATION,
    PolicySnapshot,
    PolicySnapshotSpec,
    ResourceBinding,
    of,
)
from gardenbus.common.resources.placements import KINDS, PARENT_LABEL, Placement
from gardenbus.common.resources.views import Metadata, View, read_view
from gardenbus.fleet.cycle import decide
from gardenbus.fleet.decisions import ALL
from gardenbus.fleet.eligibility import instant
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.outcome import Cycle, UnexpectedState
from gardenbus.fleet.requirements import requirements_of

V = TypeVar("V", bound=View)


def simulate(documents: Iterable[Document], now: float | None = None) -> list[dict[str, Any]]:
    """Decide every placement among manifests (Lists are opened), in the order given, each on its own.

    The clusters' eligibility is judged at `now` (unix seconds), or at the newest heartbeat among them. Bindings are
    those that stand; with policy snapshots among the manifests, bindings of an earlier policy are known as such,
    otherwise the newest snapshot that bindings name is the current one.

    Answers `{"placement", "fulfilled", "decisions": [{"cluster", "selected", "affinityScore", "topologySpreadScore",
    "reason"}]}` each: first those chosen, in order, then the others. Scores are None where nothing was ranked. What
    cannot be decided has an `error` besides. A cluster that cannot be read is as if it were not there.
    """
    opened = list(opened_lists(documents))
    clusters = list(_views(opened, "MemberCluster", MemberCluster))
    heartbeats = (instant(cluster.agent.last_received_heartbeat) for cluster in clusters if cluster.agent)
    moment = now if now is not None else max(heartbeats, default=0.0)
    fleet = Fleet.of(clusters, 0.0 if moment == -inf else moment)
    return [
        _simulated(document, opened, fleet, fleet.standing.now)
        for document in opened
        if str(document["kind"]).lower() in KINDS
    ]


def opened_lists(documents: Iterable[Document]) -> Iterator[Document]:
    """The manifests, those inside of Lists one by one; what is no manifest is left out."""
    for document in documents:
        if not isinstance(document.get("kind"), str):
            continue
        if document["kind"].endswith("List") and isinstance(document.get("items"), list):
            entries = cast("list[Any]", document["items"])
            yield from opened_lists(cast("Document", entry) for entry in entries if isinstance(entry, dict))
        else:
            yield document


class Standing(NamedTuple):
    """A placement with what stands of it: the current policy snapshot and its bindings."""

    placement: Placement
    snapshot: PolicySnapshot
    bindings: list[ResourceBinding]


def standing_of(placement: Placement, documents: Sequence[Document]) -> Standing:
    """What stands of a placement among manifests; a snapshot that is missing is made up."""
    kinds = of(placement.key.kind)
    bindings = [one for one in _views(documents, kinds.binding, ResourceBinding) if _is_of(one.metadata, placement)]
    snapshots = [
        one for one in _views(documents, kinds.policy_snapshot, PolicySnapshot) if _is_of(one.metadata, placement)
    ]
    return Standing(placement, _snapshot(placement, snapshots, bindings), bindings)


def _simulated(document: Document, documents: Sequence[Document], fleet: Fleet, now: float) -> dict[str, Any]:
    namespace, name = (str(section(document, "metadata").get(field) or "") for field in ("namespace", "name"))
    label = f"{namespace}/{name}" if namespace else name
    try:
        standing = standing_of(Placement.from_document(document), documents)
        cycle = decide(standing.placement, standing.snapshot, fleet, standing.bindings, now, ALL)
    except (InvalidResource, UnexpectedState) as error:
        return {"placement": label, "fulfilled": False, "decisions": [], "error": error.message}
    return {"placement": label, "fulfilled": cycle.fulfilled, "decisions": _told(cycle)}


def _told(cycle: Cycle) -> list[dict[str, Any]]:
    return [
        {
            "cluster": decision.cluster_name,
            "selected": decision.selected,
            "affinityScore": decision.cluster_score.affinity_score if decision.cluster_score else None,
            "topologySpreadScore": decision.cluster_score.priority_score if decision.cluster_score else None,
            "reason": decision.reason,
        }
        for decision in cycle.decisions
    ]


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
