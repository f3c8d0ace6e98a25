from datetime import UTC, datetime

from structlog.testing import capture_logs

from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.ports.tracing import TRACEPARENT
from gardenbus.relay.domain.announcements import announcements
from gardenbus.relay.ports.outbox import ObjectEntry, OutboxPage, QueueEntry
from gardenbus.relay.tracing import log_announced, with_spans
from tests.support.spans import FROM_A_CLIENT, TRACE_ID, recorded

KEY = ObjectKey("shoot", "garden-dev", "apollo")


def a_page(trace: str) -> OutboxPage:
    gone = ObjectEntry("1700000000500-0", KEY, 7, "uid-1", "deleted", True, (), 3, trace)
    return OutboxPage([gone, QueueEntry("1700000000500-1", "scheduling.s.garden-dev.apollo", trace)], {}, {})


def headers(page: OutboxPage) -> list[str | None]:
    messages = announcements(page, Subjects(), announced_unblock_index=0)
    return [message.headers.get(TRACEPARENT) for message in (*messages.changed, *messages.bindings, *messages.loose)]


def test_a_traced_entry_is_announced_below_a_span_that_began_when_it_was_written() -> None:
    with recorded() as recorder:
        page, spans = with_spans(a_page(FROM_A_CLIENT))
    assert [span.parent for span in recorder.spans] == [FROM_A_CLIENT, FROM_A_CLIENT]
    assert recorder.spans[0].at == datetime.fromtimestamp(1700000000.5, UTC)
    assert headers(page) == [span.traceparent for span in spans]


def test_where_nothing_is_recorded_the_header_is_that_of_the_write() -> None:
    page, spans = with_spans(a_page(FROM_A_CLIENT))
    assert (headers(page), list(spans)) == ([FROM_A_CLIENT, FROM_A_CLIENT], [])


def test_what_is_not_traced_has_no_header_and_no_span() -> None:
    with recorded() as recorder:
        page, _spans = with_spans(a_page(""))
    assert (headers(page), recorder.spans) == ([None, None], [])


def test_a_traced_change_is_told_and_no_other() -> None:
    with capture_logs() as logs:
        log_announced(a_page(""))
        log_announced(a_page(FROM_A_CLIENT))
    (line,) = logs
    assert (line["event"], line["object"], line["trace_id"]) == ("change.announced", str(KEY), TRACE_ID)
