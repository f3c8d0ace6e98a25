"""The whole permission table is walked on a real server: what it grants goes, and whatever else is refused."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.messages import RawMessage, publish_command
from gardenbus.common.api.identity.accounts import crossings
from gardenbus.common.api.identity.permissions import OUTSIDE_REPLIES, STREAMS, covers, permissions_of
from gardenbus.common.api.identity.principals import Principal
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.identities import SUBJECTS, Guarded, guarded
from tests.support.permission_walk import OUTSIDERS, PRINCIPALS, rejections, unlike_the_table
from tests.support.permissions_by_hand import BY_HAND, by_hand


@pytest.fixture
async def walked(tmp_path: Path) -> AsyncIterator[Guarded]:
    """A guarded server with its streams, as the relay makes them."""
    async with guarded(tmp_path) as landscape:
        credentials = landscape.credentials(Principal("service", "relay"))
        async with jetstream.connect(landscape.server.url, "relay", credentials=credentials):
            yield landscape


BETWEEN_OUTSIDERS = (SUBJECTS.extensions_of("aws-cork"), "_INBOX.seed:aws-cork.>")
"""A gardenlet and who answers for its backend `nats`: both are outside."""


async def test_everybody_gets_their_row_and_nothing_else(tmp_path: Path) -> None:
    async with guarded(tmp_path) as landscape:
        url = landscape.server.url
        walked = [(who.user, await unlike_the_table(url, landscape.credentials(who), who)) for who in PRINCIPALS]
    assert [(user, found) for user, found in walked if found] == []


@pytest.mark.parametrize("principal", BY_HAND, ids=lambda who: who.user)
async def test_what_matters_is_granted_and_refused_as_it_is_written_by_hand(
    principal: Principal, walked: Guarded
) -> None:
    expected = list(by_hand(principal))
    subjects = [each.subject for each in expected]
    rejected = await rejections(walked.server.url, walked.credentials(principal), principal, subjects)
    wrong = [each for each in expected if each.is_granted == ((each.verb, each.subject.lower()) in rejected)]
    assert wrong == []
    assert len(expected) > 5


REPLIES = (
    *("garden.apply", "garden.delete", "garden.as.root.apply", "garden.as.root.api.delete.configmap.garden.dear"),
    *("garden.api.delete.configmap.garden.dear", "garden.report.aws-dublin.shoot.dev.a", "garden.lease.aws-dublin"),
    *("garden.changed.shoot.dev.a", "garden.binding.aws-dublin.dev.a", "garden.view.aws-dublin.seed._.aws-dublin"),
    *("garden.event.shoot.dev.a", "garden.queue.garbage.dev.a", "garden.later.scheduling.x.dev.a", "garden.rejected"),
    *("garden.scheduler.default-scheduler.explain", "garden.seed.aws-dublin.x", "garden.lease._canary"),
    *(f"$JS.API.STREAM.{verb}.{stream}" for verb in ("PURGE", "DELETE", "INFO") for stream in STREAMS),
    *("$JS.API.CONSUMER.DELETE.REQUESTS.apiserver", "$JS.API.CONSUMER.MSG.NEXT.REQUESTS.apiserver", "$JS.FC.x"),
    *("$JS.ACK.REQUESTS.apiserver.1.1.1.1.0", "$SYS.REQ.SERVER.PING", "$SYS.REQ.USER.AUTH", "_INBOX.relay.x"),
    *("_INBOX.operator.x", "_INBOX.apiserver.x", "_R_.x", "$SRV.PING"),
)
"""Reply subjects by which somebody else would be made to act, or be told what nobody asked them."""


async def test_no_reply_subject_reaches_anything_in_the_services_account(walked: Guarded) -> None:
    """Everybody outside asks on all that is theirs, each time with all of these: what arrives has the server's own."""
    operator = await walked.connect(Principal("operator", "operator"))
    received, made = list[RawMessage](), list[RawMessage]()
    await operator.listen("garden.>", received.append)
    for inside in ("_INBOX.>", "$SRV.>"):
        await operator.listen(inside, made.append)
    apiserver = await walked.connect(Principal("service", "apiserver"))
    responses = list[bytes]()

    def response(message: RawMessage) -> None:
        if message.reply:
            responses.append(publish_command(message.reply, b"{}"))

    await apiserver.listen("garden.out.*.api.>", response)
    await operator.flush_fully()
    made.clear()
    for principal in OUTSIDERS:
        outsider = await walked.connect(principal)
        requested = _permitted_requests(principal)
        await outsider.send([publish_command(subject, b"", reply=reply) for subject in requested for reply in REPLIES])
        await outsider.flush_fully()
        await apiserver.flush_fully()
        await apiserver.send(responses)
        await apiserver.flush_fully()
        await operator.flush_fully()
        assert not [message.subject for message in received if message.subject.startswith("garden.as.")], principal
        crossed = {_as_sent(message.subject) for message in received}
        assert crossed <= set(requested), (principal, crossed - set(requested))
        assert bool(crossed) == any(subject.startswith("garden.") for subject in requested), principal
        assert {message.reply[:4] for message in received if message.reply} <= {"_R_."}, principal
        assert not [message.subject for message in made if message.subject.startswith("_INBOX.")], principal
        received.clear()
    assert responses
    for stream in STREAMS:
        raw = await operator.request_raw(f"$JS.API.STREAM.INFO.{stream}", b"", timeout_seconds=HANG_SECONDS)
        state = json.loads(raw.body)["state"]
        assert (stream, state["messages"]) == (stream, 0) or stream in {"LEASES", "REPORTS", "REQUESTS"}


def _as_sent(subject: str) -> str:
    """A subject in the services' account as whoever is outside has sent on it."""
    consumer = SUBJECTS.consumer("")
    return subject.replace("garden.out.", "garden.as.").replace(consumer, "IN.API.CONSUMER.CREATE.")


def _permitted_requests(principal: Principal) -> list[str]:
    """A subject of each grant that leads to the services or to JetStream."""
    granted = permissions_of(principal, SUBJECTS).publish
    own = [each for each in granted if each not in (OUTSIDE_REPLIES, *BETWEEN_OUTSIDERS)]
    return [subject.replace(">", "x.y.z").replace("*", "x") for subject in own]


def test_nothing_crosses_between_the_accounts_that_no_row_grants() -> None:
    rows = [permissions_of(who, SUBJECTS) for who in OUTSIDERS]
    for crossing in crossings(SUBJECTS):
        local = crossing.local or crossing.subject
        beginning = local.split("*", maxsplit=1)[0].split(">", maxsplit=1)[0]
        subjects = [each for row in rows for each in (row.publish if crossing.inward else row.subscribe)]
        assert any(each.startswith(beginning) for each in subjects), f"nobody uses {local}"


@pytest.mark.parametrize("principal", OUTSIDERS, ids=lambda who: who.user)
def test_nobody_outside_has_a_grant_that_no_crossing_carries(principal: Principal) -> None:
    inward = [each.local or each.subject for each in crossings(SUBJECTS) if each.inward]
    for subject in permissions_of(principal, SUBJECTS).publish:
        if subject == OUTSIDE_REPLIES:  # the server makes these, and carries each to whom it made it for
            continue
        if subject in BETWEEN_OUTSIDERS:
            continue
        probe = subject.replace(">", "x.y").replace("*", "x")
        assert covers(inward, probe), f"{subject} leads nowhere"


DELIVERED_TO = (
    *("garden.apply", "garden.as.root.apply", "garden.out.root.apply", "garden.report.aws-dublin.shoot.dev.a"),
    *("garden.lease.aws-dublin", "garden.queue.garbage.dev.a", "garden.changed.shoot.dev.a", "garden.rejected.apply.x"),
    *("garden.binding.aws-dublin.dev.a", "garden.event.shoot.dev.a", "garden.api.whoami", "_INBOX.seed:aws-cork.x"),
)
"""Subjects of each stream, of a service, and one's own inbox."""


async def test_the_server_itself_takes_any_subject_to_deliver_to_and_stores_its_heartbeats_there(
    walked: Guarded,
) -> None:
    """Why nobody outside makes a consumer: no permission is about where it delivers."""
    operator = await walked.connect(Principal("operator", "operator"))
    config = {"name": "f", "deliver_subject": "garden.apply", "idle_heartbeat": 100_000_000, "ack_policy": "none"}
    body = json.dumps({"stream_name": "EVENTS", "config": config}).encode()
    created = await operator.request_raw("$JS.API.CONSUMER.CREATE.EVENTS.f", body, timeout_seconds=HANG_SECONDS)
    assert json.loads(created.body)["config"]["deliver_subject"] == "garden.apply"

    async def stored() -> None:
        raw = await operator.request_raw("$JS.API.STREAM.INFO.REQUESTS", b"", timeout_seconds=HANG_SECONDS)
        assert json.loads(raw.body)["state"]["messages"] > 0

    await eventually(stored)


@pytest.mark.parametrize("principal", OUTSIDERS, ids=lambda who: who.user)
async def test_nobody_outside_has_a_consumer_that_delivers_anywhere(principal: Principal, walked: Guarded) -> None:
    """Each grant by which something is created is tried with each subject; what was made is a pull consumer."""
    outsider = await walked.connect(principal)
    operator = await walked.connect(Principal("operator", "operator"))
    grants = [each for each in permissions_of(principal, SUBJECTS).publish if ".CREATE." in each]
    assert bool(grants) == (principal.role in ("gardenlet", "member-agent"))
    for subject in grants:
        stream, name = subject.removeprefix("IN.API.CONSUMER.CREATE.").split(".")[:2]
        pull = {"name": name, "filter_subject": subject.partition(f"{name}.")[2], "ack_policy": "none"}
        for more in ({"deliver_subject": each, "idle_heartbeat": 10**8} for each in DELIVERED_TO):
            for extra in (more, {**more, "deliver_group": "x"}, {**more, "flow_control": True}):
                response = await _created(outsider, subject, {**pull, **extra})
                assert "deliver_" in response["error"]["description"], extra
        for field in ("durable_name", "backoff", "sample_freq", "rate_limit_bps", "pause_until", "filter_subjects"):
            assert field in (await _created(outsider, subject, {**pull, field: "x"}))["error"]["description"]
        assert "deliver_subject" not in (await _created(outsider, subject, pull))["config"]
        raw = await operator.request_raw(f"$JS.API.CONSUMER.LIST.{stream}", b"", timeout_seconds=HANG_SECONDS)
        assert [each["name"] for each in json.loads(raw.body)["consumers"] if "deliver_subject" in each["config"]] == []


async def _created(outsider: Connection, subject: str, config: Mapping[str, object]) -> dict[str, Any]:
    stream = subject.removeprefix("IN.API.CONSUMER.CREATE.").partition(".")[0]
    body = json.dumps({"stream_name": stream, "config": config}).encode()
    return json.loads((await outsider.request_raw(subject, body, timeout_seconds=HANG_SECONDS)).body)


def test_no_crossing_leads_to_where_the_server_makes_or_changes_anything() -> None:
    """Nobody outside reaches JetStream's own creation of consumers and streams, by whatever name or version of it."""
    probes = [
        f"$JS.API.{endpoint}.{stream}{tail}"
        for endpoint in ("CONSUMER.CREATE", "CONSUMER.DURABLE.CREATE", "STREAM.CREATE", "STREAM.UPDATE", "STREAM.PURGE")
        for stream in STREAMS
        for tail in ("", ".x", ".x.garden.binding.aws-cork.>", ".x.garden.changed.>")
    ]
    carried = [crossing.subject for crossing in crossings(SUBJECTS) if crossing.inward]
    assert [each for each in probes if covers(carried, each)] == []
