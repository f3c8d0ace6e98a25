"""What a request leads to carries the trace that the request came with."""

from structlog.testing import capture_logs

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.tracing import TRACEPARENT
from gardenbus.relay.ports.outbox import ObjectEntry, QueueEntry
from tests.contract.apiserver.conftest import Apiserver
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.spans import FROM_A_CLIENT, TRACE_ID, recorded

TRACED = {TRACEPARENT: FROM_A_CLIENT}


async def traces(apiserver: Apiserver, name: str) -> set[str]:
    """What goes along with the news of a shoot, and with the work that it makes."""
    return {
        entries.trace
        for entries in await apiserver.kit.entries()
        if (isinstance(entries, ObjectEntry) and entries.key.name == name)
        or (isinstance(entries, QueueEntry) and entries.tail.endswith(f".{name}"))
    }


async def test_each_durable_request_has_its_trace_however_many_are_stored_together(apiserver: Apiserver) -> None:
    others = FROM_A_CLIENT.replace(TRACE_ID, "0" * 31 + "1")
    await apiserver.publish("apply", a_shoot("first"), TRACED)
    await apiserver.publish("apply", a_shoot("second"), {TRACEPARENT: others})
    await apiserver.publish("apply", a_shoot("third"))
    await apiserver.publish("apply", a_shoot("fourth"), {TRACEPARENT: "not one"})
    await apiserver.until_handled()
    assert await traces(apiserver, "first") == {FROM_A_CLIENT}
    assert await traces(apiserver, "second") == {others}
    assert await traces(apiserver, "third") == await traces(apiserver, "fourth") == {""}


async def test_creating_changing_and_deleting_are_spans_and_the_news_goes_on_below_them(apiserver: Apiserver) -> None:
    with recorded() as recorder:
        await apiserver.publish("apply", a_shoot(), TRACED)
        await apiserver.until_handled()
        assert await traces(apiserver, "apollo") == {recorder.named("garden.apply").traceparent}
        labelled = a_shoot(metadata={"labels": {"a": "b"}})
        await apiserver.publish("apply", labelled, TRACED)
        await apiserver.until_handled()
        await apiserver.publish("delete", {"kind": "Shoot", "namespace": "garden-dev", "name": "apollo"}, TRACED)
        await apiserver.until_handled()
    assert recorder.names() == ["garden.apply", "garden.apply", "garden.delete"]
    assert {span.parent for span in recorder.spans} == {FROM_A_CLIENT}
    assert recorder.open() == []
    assert [span.attributes.get("outcome") for span in recorder.spans[:2]] == ["created", "configured"]
    assert recorder.spans[0].at is not None


async def test_where_traces_are_on_a_request_without_one_begins_its_own(apiserver: Apiserver) -> None:
    with recorded() as recorder:
        await apiserver.publish("apply", a_shoot())
        await apiserver.until_handled()
        await apiserver.request("patch.shoot.garden-dev.apollo", {"metadata": {"labels": {"a": "b"}}})
        await apiserver.request("get.shoot.garden-dev.apollo")
    assert [(span.name, span.parent) for span in recorder.spans] == [("garden.apply", ""), ("garden.api.patch", "")]
    assert recorder.open() == []


async def test_what_is_refused_ends_its_span_with_the_reason(apiserver: Apiserver) -> None:
    with recorded() as recorder, capture_logs() as logs:
        await apiserver.publish("apply", a_shoot(spec={"seedName": "nobody"}), TRACED)
        await apiserver.until_handled()
        await apiserver.rejection("patch.shoot.garden-dev.nobody", {"metadata": {"labels": {"a": "b"}}})
    assert recorder.open() == []
    assert [(span.name, bool(span.failed)) for span in recorder.spans] == [
        ("garden.apply", True),
        ("garden.api.patch", True),
    ]
    (line,) = [line for line in logs if line["event"] == "message.rejected"]
    assert line["trace_id"] == TRACE_ID


async def test_a_claim_takes_the_trace_along_and_progress_does_not(apiserver: Apiserver) -> None:
    key = ObjectKey("shoot", "garden-dev", "apollo")
    for document in (a_project(), a_cloudprofile(), a_seed()):
        await apiserver.request("apply", document)
    await apiserver.request("apply", a_shoot(spec={"seedName": "aws-eu1"}))
    uid = (await apiserver.now(key)).uid
    await apiserver.kit.fresh_entries()
    headers = {**TRACED, "Gardenbus-Uid": uid}
    with recorded() as recorder:
        await apiserver.publish(f"report.aws-eu1.{key.tail}", {"status": {"seedName": "aws-eu1"}}, headers)
        await apiserver.until_handled()
        claim = recorder.named("apiserver.report")
        assert await traces(apiserver, "apollo") == {claim.traceparent}
        await apiserver.kit.fresh_entries()
        await apiserver.publish(f"report.aws-eu1.{key.tail}", {"status": {"technicalID": "x"}}, headers)
        await apiserver.until_handled()
        assert await traces(apiserver, "apollo") == {""}
    assert [span.parent for span in recorder.spans] == [FROM_A_CLIENT, FROM_A_CLIENT]
    assert recorder.open() == []
