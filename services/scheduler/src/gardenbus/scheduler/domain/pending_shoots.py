"""A pending shoot in flight, from the queue to the store: bound, or marked unschedulable."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gardenbus.common.api.document import StoredObject
from gardenbus.common.api.garden.binding_defaults import needs_seed_defaults, with_seed_defaults
from gardenbus.common.api.garden.scheduling_order import in_turn
from gardenbus.common.api.garden.scheduling_requirements import PRIORITIZED, RESOLVED, resolved_requirements
from gardenbus.common.api.garden.shoot_groups import NO_GROUP_RULES, GroupRules
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.keys import Header, ObjectKey, queued_shoot
from gardenbus.common.api.numbers import whole_number
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import QueueMessage
from gardenbus.common.ports.store import SeedBinding, SeenGroups, UnblockIndexes, UnschedulableShoot
from gardenbus.scheduler.domain.explain.decision_record import encode_record
from gardenbus.scheduler.domain.left_out_seeds import SILENT, LeftOut
from gardenbus.scheduling.equivalence_classes import SchedulingRequest, descriptor, equivalence_class, request_of
from gardenbus.scheduling.results import Assignment, Unschedulable
from gardenbus.scheduling.snapshot import Landscape
from gardenbus.scheduling.user_filters import FilterFailed

MOST_OF_AN_ERROR = 500
"""Characters of an exception in a status."""

NO_GROUPS: SeenGroups = {}

_RESOLVED = RESOLVED.encode()


@dataclass(slots=True, eq=False)
class PendingShoot:
    """A shoot in flight since `received_at` (monotonic). `stored` is None until it has been read (again).

    `left_out` are seeds that the store does not let it onto, and `bar` keeps it from all of them; `seen` are the
    cluster events that the store had before it said so for its recovery.
    """

    queued: QueueMessage
    key: ObjectKey
    received_at: float
    stored: StoredObject | None = None
    shoot: Shoot | None = None
    request: SchedulingRequest | None = None
    left_out: LeftOut = field(default_factory=dict[str, str])
    bar: Unschedulable | None = None
    seen: UnblockIndexes | None = None
    span: tracing.Span = tracing.NOT_TRACED
    binding: tracing.Span = tracing.NOT_TRACED

    def decide_anew(self) -> None:
        """Forget what a recovery of the store has kept it from: something has happened since."""
        self.bar = self.seen = None
        self.left_out = {seed: rule for seed, rule in self.left_out.items() if rule != SILENT}

    @property
    def failures(self) -> int:
        """Decisions on it that have ended in an exception."""
        return whole_number(self.queued.message.headers.get(Header.ATTEMPT))


class AssignedShoot(NamedTuple):
    """A shoot with the seed that it is assigned to."""

    pending: PendingShoot
    assignment: Assignment
    binding: SeedBinding


class UnassignedShoot(NamedTuple):
    """A shoot that none of `candidates` seeds fits."""

    pending: PendingShoot
    result: Unschedulable
    candidates: int
    groups: SeenGroups = NO_GROUPS


def is_obsolete(stored: StoredObject | None) -> bool:
    """True when there is nothing left to schedule: the shoot is gone, has a seed, or is being deleted."""
    return stored is None or bool(stored.parts.seed_name) or stored.is_deleting


def key_of(queued: QueueMessage) -> ObjectKey:
    """The shoot that a message of the queue is about; of another message one that does not exist."""
    shoot = queued_shoot(queued.message.subject)
    return shoot.key if shoot is not None else ObjectKey("shoot", "", "")


def in_order(undecided: Sequence[PendingShoot], *, takes_turns: bool) -> Sequence[PendingShoot]:
    """Shoots of a batch in the order in which they are decided: by priority, and if so projects in turn."""
    return in_turn(undecided, priority=_priority_of, project=lambda each: each.key.namespace, takes_turns=takes_turns)


def _priority_of(pending: PendingShoot) -> int:
    stored = pending.stored
    if stored is None or PRIORITIZED not in stored.parts.meta:
        return 0
    return resolved_requirements(stored.annotations).priority


def group_rules_of(pending: PendingShoot) -> GroupRules:
    """The rules between shoots that concern a shoot; few have any."""
    stored = pending.stored
    if stored is None or _RESOLVED not in stored.parts.meta:
        return NO_GROUP_RULES
    return resolved_requirements(stored.annotations).group_rules


def binding_of(pending: PendingShoot, assignment: Assignment, landscape: Landscape, groups: SeenGroups) -> SeedBinding:
    """The binding to be written, with the fields that the seed defaults."""
    assert pending.stored is not None, "what is bound has been decided on"
    assert pending.shoot is not None, "what is bound has been decided on"
    seed = landscape.seeds_by_name[assignment.seed].seed
    project = landscape.project_of(pending.key.namespace)
    return SeedBinding(
        namespace=pending.key.namespace,
        name=pending.key.name,
        uid=pending.stored.uid,
        generation=pending.stored.generation,
        seed=assignment.seed,
        scheduling_generation=assignment.scheduling_generation,
        spec=with_seed_defaults(pending.stored.document(), seed, project.metadata.name if project is not None else None)
        if needs_seed_defaults(pending.shoot, seed)
        else None,
        decision_record=encode_record(assignment, pending.shoot.scheduler_name),
        trace=pending.binding.traceparent,
        groups=groups,
    )


def failed_decision(error: Exception) -> Unschedulable:
    """The result for a shoot on which an exception kept a scheduler from deciding."""
    text = str(error) if isinstance(error, FilterFailed) else f"{type(error).__name__}: {error}".rstrip(": ")
    return Unschedulable("exception", f"the decision failed, and is tried again: {text[:MOST_OF_AN_ERROR]}")


def can_be_described(pending: PendingShoot) -> bool:
    """True where a shoot has a request, made without users' filters if one of those has failed on it."""
    if pending.request is None and pending.shoot is not None:
        pending.request = request_of(pending.shoot)
    return pending.request is not None


def unschedulable_shoot_of(
    unassigned: UnassignedShoot, scheduler_name: str, seen: UnblockIndexes
) -> UnschedulableShoot:
    """The record of an unschedulable shoot; its result is based on the cluster events up to `seen`."""
    pending, result = unassigned.pending, unassigned.result
    assert pending.stored is not None, "an unschedulable shoot has been decided on"
    assert pending.request is not None, "an unschedulable shoot has been decided on"
    return UnschedulableShoot(
        namespace=pending.key.namespace,
        name=pending.key.name,
        uid=pending.stored.uid,
        generation=pending.stored.generation,
        scheduler_name=scheduler_name,
        equivalence_class=equivalence_class(pending.request),
        descriptor=descriptor(pending.request),
        seen=pending.seen or seen,
        message=f"Failed to schedule Shoot: {result.message}",
        trace=pending.span.traceparent,
        groups=unassigned.groups,
    )
