"""Spans of the relay: each traced entry of the outbox, from its write until it is announced."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import structlog

from gardenbus.common.ports import tracing
from gardenbus.relay.ports.outbox import ObjectEntry, OutboxEntry, OutboxPage, QueueEntry

_log = structlog.stdlib.get_logger()

ANNOUNCE = "relay.announce"


def with_spans(page: OutboxPage) -> tuple[OutboxPage, Sequence[tracing.Span]]:
    """The page, its traced entries below spans that began when they were written; these end with the announcement."""
    if not tracing.is_on():
        return page, ()
    spans: list[tracing.Span] = []
    replaced: list[OutboxEntry] = []
    for entries in page.entries:
        if isinstance(entries, ObjectEntry | QueueEntry) and entries.trace:
            attributes = (
                {"gardenbus.object": entries.key.tail}
                if isinstance(entries, ObjectEntry)
                else {"gardenbus.work": entries.tail}
            )
            written_at = datetime.fromtimestamp(int(entries.entry.partition("-")[0]) / 1000, UTC)
            span = tracing.begin(ANNOUNCE, entries.trace, at=written_at, attributes=attributes)
            spans.append(span)
            replaced.append(msgspec.structs.replace(entries, trace=span.traceparent))
        else:
            replaced.append(entries)
    return msgspec.structs.replace(page, entries=replaced), spans


def log_announced(page: OutboxPage) -> None:
    """Log each traced change as announced; others are not worth a line."""
    for entries in page.entries:
        if isinstance(entries, ObjectEntry) and entries.trace:
            _log.info(
                "change.announced", object=str(entries.key), version=entries.version, **tracing.fields(entries.trace)
            )
