"""The bindings of a placement as a cycle sees them, each in exactly one class.

| class | what it is |
|---|---|
| deleting | deletion was asked for: the scheduler lets go of it |
| unscheduled | was given up before; it can still come back |
| dangling | its cluster has left or is leaving: to be given up |
| obsolete | of an earlier policy: to be taken over or given up |
| scheduled, bound | of this policy |

The first class that fits counts. An unhealthy, tainted or relabelled cluster is no reason to lose a binding.
Source: KubeFleet's `classifyBindings`.
"""

from collections.abc import Iterable

import msgspec

from gardenbus.common.resources.placement_parts import (
    BOUND,
    PREVIOUS_STATE,
    SCHEDULED,
    UNSCHEDULED,
    BindingState,
    ClusterDecision,
    ResourceBinding,
)
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.outcome import Pick, Rebinding, UnexpectedState


class Record:
    """A binding in the course of a cycle: as it is stored, and as it shall be."""

    __slots__ = ("binding", "cluster", "decision", "previous", "snapshot", "state")

    def __init__(self, binding: ResourceBinding) -> None:
        self.binding: ResourceBinding | None = binding
        self.cluster = binding.spec.target_cluster
        self.state = binding.spec.state
        self.snapshot = binding.spec.scheduling_policy_snapshot_name
        self.decision = binding.spec.cluster_decision
        self.previous = binding.metadata.annotations.get(PREVIOUS_STATE)

    @classmethod
    def new(cls, cluster: str, snapshot: str, decision: ClusterDecision) -> "Record":
        """A binding that is not there yet."""
        record = cls.__new__(cls)
        record.binding = None
        record.cluster, record.snapshot, record.decision = cluster, snapshot, decision
        record.state, record.previous = SCHEDULED, None
        return record

    def give_up(self) -> None:
        """Mark it Unscheduled, and remember what it was."""
        self.previous, self.state = self.state, UNSCHEDULED

    def take_over(self, snapshot: str, decision: ClusterDecision) -> None:
        """Make it one of a policy; one that was given up becomes again what it was.

        Raises UnexpectedState when what it was is not known.
        """
        if self.state == UNSCHEDULED:
            if self.previous not in (SCHEDULED, BOUND):
                name = self.binding.name if self.binding else self.cluster
                raise UnexpectedState(f"binding {name} is Unscheduled, and its annotation does not say what it was")
            self.state, self.previous = self.previous, None
        self.snapshot, self.decision = snapshot, decision


class Classes(msgspec.Struct):
    """Bindings by class, each by name."""

    deleting: list[Record] = []
    unscheduled: list[Record] = []
    dangling: list[Record] = []
    obsolete: list[Record] = []
    scheduled: list[Record] = []
    bound: list[Record] = []


def classify(bindings: Iterable[ResourceBinding], snapshot: str, fleet: Fleet) -> Classes:
    """Put each binding into its class, for the policy snapshot of a name."""
    classes = Classes()
    for binding in sorted(bindings, key=lambda one: one.name):
        record = Record(binding)
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


def creations(records: Iterable[Record]) -> tuple[Pick, ...]:
    """Those that are to be created."""
    return tuple(
        Pick(record.cluster, record.decision)
        for record in records
        if record.binding is None and record.state != UNSCHEDULED
    )


def changes(records: Iterable[Record]) -> tuple[Rebinding, ...]:
    """Those that are to be taken over."""
    return tuple(_rebinding(record) for record in records if _is_taken_over(record))


def given_up(records: Iterable[Record]) -> tuple[str, ...]:
    """The names of those that are to be marked Unscheduled."""
    return tuple(
        record.binding.name
        for record in records
        if record.binding is not None and record.state == UNSCHEDULED != record.binding.spec.state
    )


def _is_taken_over(record: Record) -> bool:
    if record.binding is None or record.state == UNSCHEDULED:
        return False
    spec = record.binding.spec
    written = (spec.state, spec.scheduling_policy_snapshot_name, spec.cluster_decision)
    return written != (record.state, record.snapshot, record.decision)


def _rebinding(record: Record) -> Rebinding:
    assert record.binding is not None
    spec = record.binding.spec
    state: BindingState | None = None
    if record.state != spec.state:
        state = "Bound" if record.state == BOUND else "Scheduled"
    return Rebinding(record.binding.name, record.snapshot, record.decision, state, spec.state == UNSCHEDULED)
