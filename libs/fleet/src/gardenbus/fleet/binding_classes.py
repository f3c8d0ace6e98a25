"""The bindings of a placement at the start of a cycle, each in exactly one class.

| class | meaning |
|---|---|
| deleting | has a deletion timestamp: its finalizer is removed |
| unscheduled | was marked Unscheduled before; may be adopted again |
| dangling | its cluster has left or is leaving: is marked Unscheduled |
| obsolete | of an earlier policy: is adopted or marked Unscheduled |
| scheduled, bound | of the current policy |

The first matching class counts. An unhealthy, tainted or relabelled cluster is no reason to lose a binding.
Source: KubeFleet's `classifyBindings`.
"""

from collections.abc import Iterable

import msgspec

from gardenbus.common.api.fleet.placement_parts import (
    BOUND,
    PREVIOUS_STATE,
    SCHEDULED,
    UNSCHEDULED,
    BindingState,
    ClusterDecision,
    ResourceBinding,
)
from gardenbus.fleet.cycle_result import Pick, Rebinding, UnexpectedState
from gardenbus.fleet.fleet import Fleet


class BindingRecord:
    """A binding during a cycle: as stored, and as it is going to be."""

    __slots__ = ("binding", "cluster", "decision", "previous", "snapshot", "state")

    def __init__(self, binding: ResourceBinding) -> None:
        self.binding: ResourceBinding | None = binding
        self.cluster = binding.spec.target_cluster
        self.state = binding.spec.state
        self.snapshot = binding.spec.scheduling_policy_snapshot_name
        self.decision = binding.spec.cluster_decision
        self.previous = binding.metadata.annotations.get(PREVIOUS_STATE)

    @classmethod
    def new(cls, cluster: str, snapshot: str, decision: ClusterDecision) -> "BindingRecord":
        """A binding that does not exist yet."""
        record = cls.__new__(cls)
        record.binding = None
        record.cluster, record.snapshot, record.decision = cluster, snapshot, decision
        record.state, record.previous = SCHEDULED, None
        return record

    def mark_unscheduled(self) -> None:
        """Mark it Unscheduled, and remember its previous state."""
        self.previous, self.state = self.state, UNSCHEDULED

    def adopt(self, snapshot: str, decision: ClusterDecision) -> None:
        """Move it to a policy; an Unscheduled one returns to its previous state.

        Raises UnexpectedState when the previous state is not recorded.
        """
        if self.state == UNSCHEDULED:
            if self.previous not in (SCHEDULED, BOUND):
                name = self.binding.name if self.binding else self.cluster
                raise UnexpectedState(f"binding {name} is Unscheduled, and its annotation does not state what it was")
            self.state, self.previous = self.previous, None
        self.snapshot, self.decision = snapshot, decision


class BindingClasses(msgspec.Struct):
    """Bindings by class, each by name."""

    deleting: list[BindingRecord] = []
    unscheduled: list[BindingRecord] = []
    dangling: list[BindingRecord] = []
    obsolete: list[BindingRecord] = []
    scheduled: list[BindingRecord] = []
    bound: list[BindingRecord] = []


def classify(bindings: Iterable[ResourceBinding], snapshot: str, fleet: Fleet) -> BindingClasses:
    """Put each binding into its class, relative to the policy snapshot of a name."""
    classes = BindingClasses()
    for binding in sorted(bindings, key=lambda one: one.name):
        record = BindingRecord(binding)
        if binding.is_deleting:
            classes.deleting.append(record)
        elif record.state == UNSCHEDULED:
            classes.unscheduled.append(record)
        elif (cluster := fleet.get(record.cluster)) is None or cluster.is_deleting:
            classes.dangling.append(record)
        elif record.snapshot != snapshot:
            classes.obsolete.append(record)
        elif record.state == SCHEDULED:
            classes.scheduled.append(record)
        elif record.state == BOUND:
            classes.bound.append(record)
    return classes


def creations(records: Iterable[BindingRecord]) -> tuple[Pick, ...]:
    """Return the bindings to create."""
    return tuple(
        Pick(record.cluster, record.decision)
        for record in records
        if record.binding is None and record.state != UNSCHEDULED
    )


def changes(records: Iterable[BindingRecord]) -> tuple[Rebinding, ...]:
    """Return the bindings to adopt."""
    return tuple(_rebinding(record) for record in records if _is_adopted(record))


def given_up(records: Iterable[BindingRecord]) -> tuple[str, ...]:
    """Return the names of the bindings to mark Unscheduled."""
    return tuple(
        record.binding.name
        for record in records
        if record.binding is not None and record.state == UNSCHEDULED != record.binding.spec.state
    )


def _is_adopted(record: BindingRecord) -> bool:
    if record.binding is None or record.state == UNSCHEDULED:
        return False
    spec = record.binding.spec
    written = (spec.state, spec.scheduling_policy_snapshot_name, spec.cluster_decision)
    return written != (record.state, record.snapshot, record.decision)


def _rebinding(record: BindingRecord) -> Rebinding:
    assert record.binding is not None
    spec = record.binding.spec
    state: BindingState | None = None
    if record.state != spec.state:
        state = "Bound" if record.state == BOUND else "Scheduled"
    return Rebinding(record.binding.name, record.snapshot, record.decision, state, spec.state == UNSCHEDULED)
