"""Spans of the scheduler; a message that came without a trace begins none.

queue.wait ──► scheduler.schedule ──┬─► scheduler.decide      (once a round)
                                    └─► scheduler.bind ──► (the announcement of the bind)

An unschedulable shoot ends its `scheduler.schedule`. The trace goes on with the next attempt: its timer carries it, and
the store keeps it with the shoot, for when a cluster event unblocks it.
"""

import contextlib
from collections.abc import Generator, Sequence

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import QueueMessage
from gardenbus.scheduler.domain.pending_shoots import AssignedShoot, ReceivedShoot


def begin_attempt(queued: QueueMessage, key: ObjectKey) -> tracing.Span:
    """The span of an attempt to schedule a shoot, after that of its wait in the queue; a hint has waited in none."""
    parent = tracing.received(queued.message.headers)
    if not parent:
        return tracing.NOT_TRACED
    about = {"gardenbus.object": key.tail, "gardenbus.deliveries": queued.deliveries}
    if not queued.deliveries:
        return tracing.begin("scheduler.schedule", parent, attributes=about)
    wait = tracing.begin("queue.wait", parent, at=queued.message.at, attributes=about)
    wait.end()
    return tracing.begin("scheduler.schedule", wait.traceparent, attributes=about)


def begin_decision(attempt: tracing.Span) -> tracing.Span:
    """The span of one decision."""
    return attempt if attempt is tracing.NOT_TRACED else tracing.begin("scheduler.decide", attempt.traceparent)


def begin_bind(attempt: tracing.Span, seed: str) -> tracing.Span:
    """The span of a bind; whatever follows from the bind is below it."""
    if attempt is tracing.NOT_TRACED:
        return attempt
    return tracing.begin("scheduler.bind", attempt.traceparent, attributes={"gardenbus.seed": seed})


@contextlib.contextmanager
def spans_ended(
    in_flight: Sequence[ReceivedShoot | AssignedShoot], *, failed: str = "interrupted"
) -> Generator[None, None, None]:
    """End the spans that the block leaves open, whatever ended it: a span that is not ended is not recorded."""
    try:
        yield
    finally:
        for each in in_flight:
            if each.span is not tracing.NOT_TRACED:
                each.span.end(failed=failed)
