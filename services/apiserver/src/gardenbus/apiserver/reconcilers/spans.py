"""What the apiserver does as a part of traces; where nothing is recorded, what came without one is asked nothing.

garden.apply, garden.delete, garden.api.<verb> ──► (the announcement of the write)
apiserver.report ──► (the announcement, where the report gives the shoot into a gardenlet's hands)

A request that came without a trace begins one, where traces are on; a durable one did when it arrived on the bus.
"""

from collections.abc import Mapping, Sequence

from gardenbus.apiserver.reconcilers.report_messages import Report
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Delivered
from gardenbus.common.resources.document import section
from gardenbus.common.resources.keys import ObjectKey

ANSWERED_VERBS = frozenset({"apply", "patch", "delete", "bind", "scale", "retry"})
"""Requests below `garden.api.` that lead to something."""


def requested(message: Delivered, verb: str, key: ObjectKey, parent: str) -> tracing.Span:
    """One document of a durable request is carried out."""
    about = {"gardenbus.object": key.tail, "gardenbus.sequence": message.sequence}
    return tracing.begin(f"garden.{verb}", parent, at=message.at, is_first=True, attributes=about)


def asked(verb: str, headers: Mapping[str, str]) -> tracing.Span:
    """A request below `garden.api.` is answered; what only reads is not traced."""
    if verb not in ANSWERED_VERBS:
        return tracing.NOT_TRACED
    parent = tracing.received(headers)
    if not parent and not tracing.is_on():
        return tracing.NOT_TRACED
    return tracing.begin(f"garden.api.{verb}", parent, is_first=True)


def reported(reports: Sequence[Report]) -> tracing.Span:
    """Statuses of one object are taken: a part of the trace that the last of them came with."""
    for report in reversed(reports):
        parent = tracing.received(report.work.message.headers)
        if parent:
            about = {"gardenbus.object": report.key.tail, "gardenbus.seed": report.seed}
            return tracing.begin("apiserver.report", parent, at=report.work.message.at, attributes=about)
    return tracing.NOT_TRACED


def followed_by_work(reports: Sequence[Report], span: tracing.Span) -> str:
    """What the news of such a write carries: the trace, where a gardenlet goes on (a claim, a handover), else ""."""
    hands_over = any("seedName" in section(report.body, "status") for report in reports)
    return span.traceparent if hands_over else ""
