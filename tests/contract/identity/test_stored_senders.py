"""Stored messages name their sender by their subject alone: each supported server removes the header from them.

docs/identities.md says so. Other versions of the server than the installed one are brought by `.ci/nats-servers`.
"""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from gardenbus.apiserver.domain.request_subjects import parse_report_subject, parse_request_subject
from gardenbus.apiserver.domain.senders import check_sender
from gardenbus.common.adapters.nats import jetstream
from gardenbus.common.adapters.nats.messages import RawMessage, decode_headers, encode_headers, publish_command
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Header, ObjectKey
from gardenbus.common.api.restored_requests import REQUEST_INFO
from gardenbus.common.errors import Impersonation
from gardenbus.common.ports.bus import StreamMessage
from tests.support.eventually import eventually
from tests.support.identities import SUBJECTS, Guarded, guarded
from tests.support.servers import nats_servers

ANN, CORK = Principal("user", "ann"), Principal("gardenlet", "aws-cork")
ZEUS = ObjectKey("shoot", "garden-dev", "zeus")
OWN = {
    "REQUESTS": (ANN, SUBJECTS.as_user("ann", "apply"), SUBJECTS.from_outside("ann", "apply")),
    "REPORTS": (CORK, SUBJECTS.report("aws-cork", ZEUS), SUBJECTS.report("aws-cork", ZEUS)),
    "LEASES": (CORK, SUBJECTS.lease("aws-cork"), SUBJECTS.lease("aws-cork")),
}
"""By stream: who publishes from outside, on which subject, and on which it is stored."""

FORGED = b'Nats-Request-Info: {"acc":"GARDEN","user":"operator"}\r\n'
SHAPES: Mapping[str, bytes] = {
    "sound": b"NATS/1.0\r\nX: a\r\n\r\n",
    "forged": b"NATS/1.0\r\n" + FORGED + b"\r\n",
    "forged, without the final line end": b"NATS/1.0\r\n" + FORGED + b"X: abc",
    "without the final line end": b"NATS/1.0\r\nX: abc",
    "forged behind a mention": b"NATS/1.0\r\nX: Nats-Request-Info\r\n" + FORGED + b"\r\n",
    "the same without the final line end": b"NATS/1.0\r\nX: Nats-Request-Info\r\n" + FORGED + b"X: abc",
    "the first line alone": b"NATS/1.0\r\n",
}
NEVER_STATED = ("sound", "forged")
"""Header blocks of clients that harm nobody, or only try to: nothing of a sender is left of them in a stream."""


@pytest.fixture(params=nats_servers().items(), ids=lambda each: each[0])
async def landscape(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Guarded]:
    """A guarded server of one version, with its streams."""
    async with guarded(tmp_path / "landscape", program=request.param[1]) as landscape:
        credentials = landscape.credentials(Principal("service", "relay"))
        async with jetstream.connect(landscape.server.url, "relay", credentials=credentials):
            yield landscape


def _is_of(headers: Mapping[str, str], user: str) -> bool:
    """True unless a message is rejected as an impersonation."""
    try:
        check_sender(headers, user)
    except Impersonation:
        return False
    return True


async def test_no_stored_message_states_its_sender_but_by_its_subject(landscape: Guarded) -> None:
    operator = landscape.credentials(Principal("operator", "operator"))
    async with jetstream.connect(landscape.server.url, "operator", credentials=operator) as bus:
        for stream, (principal, subject, stored_subject) in OWN.items():
            outsider = await landscape.connect(principal)
            for shape, block in SHAPES.items():
                last = await bus.last(stream, stored_subject)
                await outsider.send([publish_command(subject, b"{}", block)])
                stored = await _next(bus, stream, stored_subject, after=last)
                if shape in NEVER_STATED:
                    assert REQUEST_INFO not in stored.headers, (stream, shape, stored.headers)
                if REQUEST_INFO in stored.headers:  # hidden where the server does not find it to remove it
                    assert not _is_of(stored.headers, principal.user), (stream, shape, stored.headers)


async def test_a_request_from_outside_never_arrives_as_an_insiders(landscape: Guarded) -> None:
    apiserver, ann = await landscape.connect(Principal("service", "apiserver")), await landscape.connect(ANN)
    received: list[RawMessage] = []
    for subject in ("garden.api.>", "garden.as.*.api.>", "garden.out.*.api.>"):
        await apiserver.listen(subject, received.append)
    await apiserver.flush_fully()
    for shape, block in SHAPES.items():
        received.clear()
        await ann.send([publish_command("garden.as.ann.api.whoami", b"", block)])

        async def arrived() -> None:
            assert received

        await eventually(arrived)
        (message,) = received
        sender = parse_request_subject(message.subject, SUBJECTS)
        assert (sender.user, sender.is_insider) == ("ann", False), shape
        headers = decode_headers(message.header)
        assert REQUEST_INFO in headers, (shape, message.header)
        assert _is_of(headers, "ann") is (shape in NEVER_STATED), (shape, message.header)
        assert not _is_of(headers, "operator"), (shape, message.header)


async def test_a_report_is_of_the_seed_that_its_subject_names_and_nobody_elses(landscape: Guarded) -> None:
    operator = landscape.credentials(Principal("operator", "operator"))
    cork = await landscape.connect(CORK)
    async with jetstream.connect(landscape.server.url, "operator", credentials=operator) as bus:
        header = encode_headers({Header.FENCING_TOKEN: "1.1"})
        for seed in ("aws-dublin", "aws-cork"):
            await cork.send([publish_command(SUBJECTS.report(seed, ZEUS), b"{}", header)])
        stored = await _next(bus, "REPORTS", SUBJECTS.report("aws-cork", ZEUS), after=None)
        assert parse_report_subject(stored.subject, SUBJECTS) == ("aws-cork", ZEUS)
        assert await bus.last("REPORTS", SUBJECTS.report("aws-dublin", ZEUS)) is None


async def _next(
    bus: jetstream.JetStreamBus, stream: str, subject: str, *, after: StreamMessage | None
) -> StreamMessage:
    """The last message of a subject, once there is one after another."""

    async def stored() -> StreamMessage:
        last = await bus.last(stream, subject)
        assert last is not None
        assert after is None or last.sequence > after.sequence
        return last

    return await eventually(stored)
