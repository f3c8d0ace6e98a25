"""A pending shoot in flight, a frozen record for each step: received → read → decidable → assigned, or unassigned."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

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
from gardenbus.scheduling.equivalence_classes import (
    SchedulingRequest,
    descriptor,
    equivalence_class,
    pending_shoot,
    request_of,
)
from gardenbus.scheduling.results import Assignment, Unschedulable
from gardenbus.scheduling.snapshot import Landscape
from gardenbus.scheduling.user_filters import FilterFailed, SeedFilter

MOST_OF_AN_ERROR = 500
"""Characters of an exception in a status."""

NO_GROUPS: SeenGroups = {}

_RESOLVED = RESOLVED.encode()


class Exclusions(NamedTuple):
    """Seeds that the store does not let a shoot onto: those `left_out`, or, for the reason of a `bar`, all of them.

    `seen` are the cluster events that the store had before it named those of its recovery.
    """

    left_out: LeftOut = {}
    bar: Unschedulable | None = None
    seen: UnblockIndexes | None = None

    @property
    def after_event(self) -> "Exclusions":
        """The same without what a recovery of the store has caused: something has happened since."""
        return Exclusions({seed: rule for seed, rule in self.left_out.items() if rule != SILENT})


NO_EXCLUSIONS = Exclusions()


class ReceivedShoot(msgspec.Struct, frozen=True, eq=False):
    """A shoot that a message of the queue is about, or a hint; in flight since `received_at` (monotonic)."""

    queued: QueueMessage
    key: ObjectKey
    received_at: float
    span: tracing.Span
    exclusions: Exclusions

    @property
    def failures(self) -> int:
        """Decisions on it that have ended in an exception."""
        return whole_number(self.queued.message.headers.get(Header.ATTEMPT))


class ReadShoot(ReceivedShoot, frozen=True, eq=False):
    """The same as it is stored."""

    stored: StoredObject


class DecidableShoot(ReadShoot, frozen=True, eq=False):
    """The same with the request that is decided on."""

    shoot: Shoot
    request: SchedulingRequest


class AssignedShoot(NamedTuple):
    """A shoot with the seed that it is assigned to."""

    pending: DecidableShoot
    assignment: Assignment
    binding: SeedBinding
    span: tracing.Span


class UnassignedShoot(NamedTuple):
    """A shoot that none of `candidates` seeds fits."""

    pending: DecidableShoot
    result: Unschedulable
    candidates: int
    groups: SeenGroups = NO_GROUPS


class FailedShoot(NamedTuple):
    """A shoot on which an exception kept a scheduler from deciding; `unassigned` unless it cannot be described."""

    pending: ReadShoot
    unassigned: UnassignedShoot | None


def received_again(pending: ReceivedShoot) -> ReceivedShoot:
    """A shoot that has changed since it was read."""
    return ReceivedShoot(pending.queued, pending.key, pending.received_at, pending.span, pending.exclusions)


def read_shoot(pending: ReceivedShoot, stored: StoredObject | None) -> ReadShoot | None:
    """The shoot as it is stored; None when nothing is left to schedule: it is gone, has a seed, or is being deleted."""
    if stored is None or stored.parts.seed_name or stored.is_deleting:
        return None
    return ReadShoot(pending.queued, pending.key, pending.received_at, pending.span, pending.exclusions, stored)


def decidable_shoot(
    pending: ReadShoot, filters: Sequence[SeedFilter] = (), *, reads_purpose: bool = False
) -> DecidableShoot:
    """The shoot with its request; raises InvalidResource, and whatever users' own filters raise."""
    if isinstance(pending, DecidableShoot):
        return pending
    stored = pending.stored
    shoot = pending_shoot(stored)
    request = request_of(shoot, stored.document() if filters else None, filters, reads_purpose=reads_purpose)
    received_at, span, exclusions = pending.received_at, pending.span, pending.exclusions
    return DecidableShoot(pending.queued, pending.key, received_at, span, exclusions, stored, shoot, request)


def failed_shoot(pending: ReadShoot, error: Exception, candidates: int) -> FailedShoot:
    """The shoot with the reason in an exception, and the request that it has without users' filters."""
    text = str(error) if isinstance(error, FilterFailed) else f"{type(error).__name__}: {error}".rstrip(": ")
    reason = Unschedulable("exception", f"the decision failed, and is tried again: {text[:MOST_OF_AN_ERROR]}")
    try:
        return FailedShoot(pending, UnassignedShoot(decidable_shoot(pending), reason, candidates))
    except Exception:  # noqa: BLE001  it was this that failed: nothing can be written about a shoot that cannot be read
        return FailedShoot(pending, None)


def key_of(queued: QueueMessage) -> ObjectKey:
    """The shoot that a message of the queue is about; of another message one that does not exist."""
    shoot = queued_shoot(queued.message.subject)
    return shoot.key if shoot is not None else ObjectKey("shoot", "", "")


def in_order(undecided: Sequence[ReadShoot], *, takes_turns: bool) -> Sequence[ReadShoot]:
    """Shoots of a batch in the order in which they are decided: by priority, and if so projects in turn."""
    return in_turn(undecided, priority=_priority_of, project=lambda each: each.key.namespace, takes_turns=takes_turns)


def _priority_of(pending: ReadShoot) -> int:
    if PRIORITIZED not in pending.stored.parts.meta:
        return 0
    return resolved_requirements(pending.stored.annotations).priority


def group_rules_of(pending: ReadShoot) -> GroupRules:
    """The rules between shoots that concern a shoot; few have any."""
    if _RESOLVED not in pending.stored.parts.meta:
        return NO_GROUP_RULES
    return resolved_requirements(pending.stored.annotations).group_rules


def assigned_shoot(
    pending: DecidableShoot, assignment: Assignment, landscape: Landscape, groups: SeenGroups, span: tracing.Span
) -> AssignedShoot:
    """The shoot with the binding to be written, in a span, and the fields that the seed defaults."""
    seed = landscape.seeds_by_name[assignment.seed].seed
    project = landscape.project_of(pending.key.namespace)
    binding = SeedBinding(
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
        trace=span.traceparent,
        groups=groups,
    )
    return AssignedShoot(pending, assignment, binding, span)


def unschedulable_shoot_of(
    unassigned: UnassignedShoot, scheduler_name: str, seen: UnblockIndexes
) -> UnschedulableShoot:
    """The record of an unschedulable shoot; its result is based on the cluster events up to `seen`."""
    pending, result = unassigned.pending, unassigned.result
    return UnschedulableShoot(
        namespace=pending.key.namespace,
        name=pending.key.name,
        uid=pending.stored.uid,
        generation=pending.stored.generation,
        scheduler_name=scheduler_name,
        equivalence_class=equivalence_class(pending.request),
        descriptor=descriptor(pending.request),
        seen=pending.exclusions.seen or seen,
        message=f"Failed to schedule Shoot: {result.message}",
        trace=pending.span.traceparent,
        groups=unassigned.groups,
    )
