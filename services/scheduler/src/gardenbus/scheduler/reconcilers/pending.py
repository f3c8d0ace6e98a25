"""One shoot in a scheduler's hand, from the work in its queue to what the store is asked to do with it."""

from dataclasses import dataclass
from typing import NamedTuple

from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Work
from gardenbus.common.ports.store import Binding, Gains, Parking
from gardenbus.common.resources.document import StoredObject
from gardenbus.common.resources.keys import Header, ObjectKey
from gardenbus.common.resources.settling import may_fill_in, spec_on_seed
from gardenbus.common.resources.shoots import Shoot
from gardenbus.scheduler.reconcilers import spans
from gardenbus.scheduling.landscape import Landscape
from gardenbus.scheduling.outcome import Placement, Refusal
from gardenbus.scheduling.recording import record_of
from gardenbus.scheduling.request import SchedulingRequest, descriptor, waiting_class


@dataclass(slots=True, eq=False)
class PendingShoot:
    """One shoot in hand since `taken_at` (monotonic). `stored` is None until it has been read (again).

    `hosted` are the seeds that the store found to be hosted by this very shoot: no others are chosen for it.
    """

    work: Work
    key: ObjectKey
    taken_at: float
    stored: StoredObject | None = None
    shoot: Shoot | None = None
    request: SchedulingRequest | None = None
    hosted: frozenset[str] = frozenset()
    span: tracing.Span = tracing.NOT_TRACED
    binding: tracing.Span = tracing.NOT_TRACED

    @property
    def failures(self) -> int:
        """How often a decision on it has ended in an exception."""
        text = self.work.message.headers.get(Header.ATTEMPT, "")
        return int(text) if text.isdigit() else 0


class Placed(NamedTuple):
    """A shoot with the seed that was found for it."""

    pending: PendingShoot
    placement: Placement
    binding: Binding


class Refused(NamedTuple):
    """A shoot that none of `candidates` seeds takes."""

    pending: PendingShoot
    refusal: Refusal
    candidates: int


def taken(work: Work, began: float) -> PendingShoot:
    """A shoot as its work comes from the queue."""
    key = _key_of(work)
    return PendingShoot(work, key, began, span=spans.taken(work, key))


def is_placed_or_leaving(stored: StoredObject) -> bool:
    """Whether no scheduler has anything to do with a shoot any more."""
    return bool(stored.parts.seed_name) or stored.is_deleting


def _key_of(work: Work) -> ObjectKey:
    """`<prefix>.queue.scheduling.<scheduler>.<ns>.<name>`; none of the parts before the name holds a dot."""
    _before, _, tail = work.message.subject.partition(".queue.scheduling.")
    _scheduler, namespace, name = tail.split(".", 2)
    return ObjectKey("shoot", namespace, name)


def binding_of(pending: PendingShoot, placement: Placement, landscape: Landscape) -> Binding:
    """What the store is asked for, with what the seed fills in."""
    assert pending.stored is not None, "what is bound has been decided on"
    assert pending.shoot is not None, "what is bound has been decided on"
    seed = landscape.seeds_by_name[placement.seed].seed
    project = landscape.project_of(pending.key.namespace)
    if pending.span is not tracing.NOT_TRACED:
        pending.binding = spans.binding(pending.span, placement.seed)
    return Binding(
        namespace=pending.key.namespace,
        name=pending.key.name,
        uid=pending.stored.uid,
        generation=pending.stored.generation,
        seed=placement.seed,
        gate=placement.gate,
        spec=spec_on_seed(pending.stored.document(), seed, project.metadata.name if project is not None else None)
        if may_fill_in(pending.shoot, seed)
        else None,
        grounds=record_of(placement),
        trace=pending.binding.traceparent,
    )


def parking_of(refused: Refused, scheduler_name: str, seen: Gains) -> Parking:
    """What the store is to keep of a refusal that stood on what was gained until `seen`."""
    pending, refusal = refused.pending, refused.refusal
    assert pending.stored is not None, "what is parked has been decided on"
    assert pending.request is not None, "what is parked has been decided on"
    return Parking(
        namespace=pending.key.namespace,
        name=pending.key.name,
        uid=pending.stored.uid,
        generation=pending.stored.generation,
        scheduler_name=scheduler_name,
        waiting_class=waiting_class(pending.request),
        descriptor=descriptor(pending.request),
        seen=seen,
        message=f"Failed to schedule Shoot: {refusal.message}",
        trace=pending.span.traceparent,
    )
