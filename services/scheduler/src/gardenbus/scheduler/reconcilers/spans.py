"""What the scheduler does as a part of traces; of what came without one nothing here is asked.

queue.wait ──► scheduler.schedule ──┬─► scheduler.decide      (once a round)
                                    └─► scheduler.bind ──► (the announcement of the bind)

A shoot that is parked ends its `scheduler.schedule`. The trace goes on with the next attempt: its timer carries it, and
the store keeps it with the shoot that waits, for when a gain wakes it.
"""

from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Work
from gardenbus.common.resources.keys import ObjectKey


def taken(work: Work, key: ObjectKey) -> tracing.Span:
    """Work was taken from its queue; not traced unless it came with a trace."""
    parent = tracing.received(work.message.headers)
    if not parent:
        return tracing.NOT_TRACED
    about = {"gardenbus.object": key.tail, "gardenbus.deliveries": work.deliveries}
    wait = tracing.begin("queue.wait", parent, at=work.message.at, attributes=about)
    wait.end()
    return tracing.begin("scheduler.schedule", wait.traceparent, attributes=about)


def deciding(scheduling: tracing.Span) -> tracing.Span:
    """A shoot is decided on."""
    return tracing.begin("scheduler.decide", scheduling.traceparent)


def binding(scheduling: tracing.Span, seed: str) -> tracing.Span:
    """A shoot is to be bound; what follows from that is below this span."""
    return tracing.begin("scheduler.bind", scheduling.traceparent, attributes={"gardenbus.seed": seed})
