"""What the relay does as a part of traces: each traced entry of the outbox waits, and is announced."""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec
import structlog

from gardenbus.common.ports import tracing
from gardenbus.common.ports.outbox import News, ObjectNews, OutboxPage, WorkNews

_log = structlog.stdlib.get_logger()

ANNOUNCE = "relay.announce"


def with_spans(page: OutboxPage) -> tuple[OutboxPage, Sequence[tracing.Span]]:
    """The page, its traced entries below spans that began when they were written; these end with the announcement."""
    if not tracing.is_on() or not any(_trace(news) for news in page.news):
        return page, ()
    spans: list[tracing.Span] = []
    replaced: list[News] = []
    for news in page.news:
        if isinstance(news, ObjectNews | WorkNews) and news.trace:
            what = (
                {"gardenbus.object": news.key.tail} if isinstance(news, ObjectNews) else {"gardenbus.work": news.tail}
            )
            span = tracing.begin(ANNOUNCE, news.trace, at=_written_at(news.entry), attributes=what)
            spans.append(span)
            replaced.append(msgspec.structs.replace(news, trace=span.traceparent))
        else:
            replaced.append(news)
    return msgspec.structs.replace(page, news=replaced), spans


def tell_followed(page: OutboxPage) -> None:
    """Say of each traced change that it was announced; one that nobody follows is not worth a line."""
    for news in page.news:
        if isinstance(news, ObjectNews) and news.trace:
            _log.info("change.announced", object=str(news.key), version=news.version, **tracing.fields(news.trace))


def _trace(news: News) -> str:
    return news.trace if isinstance(news, ObjectNews | WorkNews) else ""


def _written_at(entry: str) -> datetime:
    """When an entry was written: its id begins with the milliseconds."""
    return datetime.fromtimestamp(int(entry.partition("-")[0]) / 1000, UTC)
