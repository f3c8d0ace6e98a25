"""What the scheduler does as a part of traces.

queue.wait ──► scheduler.schedule ──┬─► scheduler.decide
                                    └─► scheduler.bind ──► (the announcement of the bind)
"""

from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Work
from gardenbus.common.resources.keys import ObjectKey


def taken(work: Work, key: ObjectKey) -> tracing.Span:
    """Work was taken from its queue; not traced unless it came with a trace."""
    parent = work.message.headers.get(tracing.TRACEPARENT)
    if not parent or not tracing.is_on():
        return tracing.NOT_TRACED
    about = {"gardenbus.object": key.tail, "gardenbus.deliveries": work.deliveries}
    wait = tracing.begin("queue.wait", parent, at=work.message.at, attributes=about)
    wait.end()
    return tracing.begin("scheduler.schedule", wait.traceparent, attributes=about)
