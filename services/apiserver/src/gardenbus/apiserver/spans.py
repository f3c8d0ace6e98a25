"""Spans of the apiserver in traces.

garden.apply, garden.delete, garden.api.<verb> ──► (the announcement of the write)
apiserver.report ──► (the announcement, where the report gives the shoot into a gardenlet's hands)

A request without a trace begins one, where traces are on; a durable one did when it arrived on the bus.
"""

from collections.abc import Mapping, Sequence

from gardenbus.apiserver.domain.report_messages import Report
from gardenbus.common.api.document import section
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import StreamMessage

TRACED_VERBS = frozenset({"apply", "patch", "delete", "bind", "scale", "retry"})
"""Requests below `garden.api.` that lead to something."""


def durable_request(message: StreamMessage, verb: str, key: ObjectKey, parent: str) -> tracing.Span:
    """One document of a durable request is carried out."""
    about = {"gardenbus.object": key.tail, "gardenbus.sequence": message.sequence}
    return tracing.begin(f"garden.{verb}", parent, at=message.at, is_first=True, attributes=about)


def api_request(verb: str, headers: Mapping[str, str]) -> tracing.Span:
    """Span of a request below `garden.api.`; queries have none."""
    if verb not in TRACED_VERBS:
        return tracing.NOT_TRACED
    parent = tracing.received(headers)
    if not parent and not tracing.is_on():
        return tracing.NOT_TRACED
    return tracing.begin(f"garden.api.{verb}", parent, is_first=True)


def status_report(reports: Sequence[Report]) -> tracing.Span:
    """Span of merged statuses of one object: a part of the trace of the last of them."""
    for report in reversed(reports):
        parent = tracing.received(report.queued.message.headers)
        if parent:
            about = {"gardenbus.object": report.key.tail, "gardenbus.seed": report.seed}
            return tracing.begin("apiserver.report", parent, at=report.queued.message.at, attributes=about)
    return tracing.NOT_TRACED


def traceparent_for_gardenlet(reports: Sequence[Report], span: tracing.Span) -> str:
    """Trace context of the events of such a write, where a gardenlet goes on (a claim, a handover), else ""."""
    is_handover = any("seedName" in section(report.body, "status") for report in reports)
    return span.traceparent if is_handover else ""
