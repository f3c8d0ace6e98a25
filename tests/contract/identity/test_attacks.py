"""Attacks that a bus without identities lets through, each tried by everybody outside the services on real servers."""

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import Login, login_credentials, read_credentials
from gardenbus.common.adapters.nats.messages import RawMessage, encode_headers, publish_command
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.identity.bootstrap_tokens import Token, new_token_secret
from gardenbus.common.api.identity.permissions import STREAMS
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import new_signing_request
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Unavailable
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import new_key, new_request
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.guarded_landscape import CLOCK, GuardedLandscape, guarded_landscape
from tests.support.permission_walk import OUTSIDERS

pytestmark = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning",  # the client leaves sockets of rejected connections to the collector
    "ignore:loop is closed:ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)

ZEUS = ObjectKey("shoot", "garden-dev", "zeus")
DEAR: Document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dear", "namespace": "garden"}}
SECRET: Document = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "hidden", "namespace": "garden"},
    "data": {"password": "c2VjcmV0"},
}
LATER = {"Nats-Schedule": "@at 2020-01-01T00:00:00Z", "Nats-Schedule-Target": "garden.queue.managedseedset.garden.x"}
VERSION = {"Gardenbus-Version": "99999999999", "Gardenbus-Uid": "u", "Gardenbus-Verb": "modified"}
FOLLOW = {"stream_name": "OBJECTS", "config": {"name": "thief", "deliver_policy": "all", "ack_policy": "none"}}


class Forged(NamedTuple):
    """A message that somebody else's row grants, or nobody's."""

    subject: str
    body: bytes = b""
    headers: Mapping[str, str] = {}


FORGED: Mapping[str, tuple[Forged, ...]] = {
    "acts as anybody": (
        *(Forged(f"garden.as.{user}.api.apply", encode(DEAR)) for user in ("admin", "root", "operator", "apiserver")),
        Forged("garden.as.root.api.delete.configmap.garden.dear"),
        Forged("garden.as.root.apply", encode(DEAR)),
        Forged("garden.apply", encode(DEAR)),
        Forged("garden.delete", encode(DEAR)),
    ),
    "reads all Secrets": (
        Forged("garden.api.list.secret"),
        Forged("garden.as.root.api.list.secret.garden"),
        *(
            Forged(f"{api}.{call}", encode(FOLLOW))
            for api in ("$JS.API", "IN.API")
            for call in ("CONSUMER.CREATE.OBJECTS.thief", "CONSUMER.CREATE.OBJECTS.thief.garden.changed.secret.>")
        ),
        *(
            Forged(f"{api}.{call}", encode({"last_by_subj": "garden.changed.secret.garden.hidden"}))
            for api in ("$JS.API", "IN.API")
            for call in ("STREAM.MSG.GET.OBJECTS", "DIRECT.GET.OBJECTS", "DIRECT.GET.OBJECTS.garden.changed.secret.>")
        ),
    ),
    "empties and removes streams": tuple(
        Forged(f"{api}.STREAM.{verb}.{stream}")
        for api in ("$JS.API", "IN.API")
        for verb in ("PURGE", "DELETE")
        for stream in ("REJECTED", "EVENTS", "BINDINGS")
    ),
    "forges announcements": (
        Forged("garden.changed.shoot.garden-dev.zeus", b"{}", VERSION),
        Forged("garden.binding.aws-dublin.garden-dev.zeus", b"", VERSION),
        Forged("garden.view.aws-dublin.seed._.aws-dublin", b"", VERSION),
        Forged("garden.event.shoot.garden-dev.zeus", b"{}"),
    ),
    "speaks for another seed": (
        Forged("garden.report.aws-dublin.shoot.garden-dev.zeus", b'{"status":{"lastOperation":{"state":"Failed"}}}'),
        Forged("garden.lease.aws-dublin", b'{"spec":{"holderIdentity":"evil"}}'),
    ),
    "puts work into others' queues": (
        Forged("garden.later.scheduling.mine.garden-dev.zeus", b"", LATER),
        Forged("garden.queue.scheduling.mine.garden-dev.zeus"),
        Forged("garden.queue.managedseedset.garden.victim"),
    ),
    "is nobody in particular": tuple(
        Forged(f"garden.as.{user}.apply", encode(DEAR)) for user in ("*", ">", "x" * 3000)
    ),
}


TOKEN = Token("4f2a91", "0123456789abcdef")


@pytest.fixture
async def landscape(tmp_path: Path) -> AsyncIterator[GuardedLandscape]:
    """A seed with a shoot, and what nobody outside is to reach."""
    async with guarded_landscape(tmp_path / "landscape") as landscape:
        zeus = a_shoot(ZEUS.name, spec={"seedName": "aws-dublin"})
        token = new_token_secret(TOKEN, expires=CLOCK.now() + timedelta(days=1), bound_to=None, description="")
        for document in (a_project(), a_cloudprofile(), a_seed("aws-dublin"), zeus, DEAR, SECRET, token):
            await landscape.operator.request("apply", document)
        yield landscape


async def _come_in_by_token(landscape: GuardedLandscape, principal: Principal) -> Connection:
    async def accepted() -> Connection:
        try:
            return await landscape.connect(login_credentials(Login(principal.user, TOKEN.secret)), principal.user)
        except Unavailable as error:  # the identity service has not heard of the token yet
            raise AssertionError(error.message) from error

    return await eventually(accepted)


async def _come_in(landscape: GuardedLandscape, principal: Principal) -> Connection:
    if principal.role == "bootstrap":
        return await _come_in_by_token(landscape, principal)
    issued = landscape.keys.authority.client(principal, CLOCK.now())
    file = landscape.directory / f"{principal.token}.pem"
    secret_files.write(file, issued.certificate + issued.key)
    return await landscape.connect(read_credentials(file, ""), principal.user)


async def _operator(landscape: GuardedLandscape) -> Connection:
    return await landscape.connect(login_credentials(Login("operator", "the operator's")), "operator")


async def _stored(landscape: GuardedLandscape, operator: Connection) -> Any:
    """Objects by uid and version, and how far each stream has come."""
    streams = dict[str, Any]()
    for stream in STREAMS:
        raw = await operator.request_raw(f"$JS.API.STREAM.INFO.{stream}", b"", timeout_seconds=HANG_SECONDS)
        state = msgspec.json.decode(raw.body)["state"]
        streams[stream] = (state["messages"], state["last_seq"])
    objects = await landscape.all_stored()
    return streams, {key: (each.uid, each.version) for key, each in objects.items()}


async def _settled(landscape: GuardedLandscape, operator: Connection) -> Any:
    """What is stored, once the shoot's binding is announced and nothing moves."""
    before: list[Any] = [None]

    async def quiet() -> Any:
        now = await _stored(landscape, operator)
        before[0], last = now, before[0]
        assert now == last
        assert now[0]["BINDINGS"][0] > 0
        return now

    return await eventually(quiet, every=0.3)


async def test_whoever_is_outside_stores_nothing_and_is_answered_nothing_of_what_is_not_theirs(
    landscape: GuardedLandscape,
) -> None:
    operator = await _operator(landscape)
    before = await _settled(landscape, operator)
    for principal in OUTSIDERS:
        thief, responses = await _come_in(landscape, principal), list[RawMessage]()
        inbox = f"{principal.inbox}.loot"
        await thief.listen(inbox, responses.append)
        for what, messages in FORGED.items():
            for forged in messages:
                header = encode_headers(forged.headers) if forged.headers else b""
                await thief.send([publish_command(forged.subject, forged.body, header, reply=inbox)])
            await thief.flush_fully()
            assert (what, thief.losses, thief.is_connected) == (what, 0, True), principal
        await operator.flush_fully()
        assert await _stored(landscape, operator) == before, principal
        assert responses == [], principal
    log = (landscape.nats.directory / "server.log").read_text()
    assert log.count("Publish Violation") == len(OUTSIDERS) * sum(map(len, FORGED.values()))


async def test_they_are_refused_who_they_are_not_and_answered_who_they_are(landscape: GuardedLandscape) -> None:
    """A person without a role comes in, is known by name, and reads no Secret."""
    ann = await _come_in(landscape, Principal("user", "ann"))
    raw = await ann.request_raw("garden.as.ann.api.whoami", b"", timeout_seconds=HANG_SECONDS)
    assert msgspec.json.decode(raw.body)["result"]["user"] == "ann"
    for tail in ("list.secret", "list.secret.garden", "get.secret.garden.hidden", "delete.configmap.garden.dear"):
        response = msgspec.json.decode(
            (await ann.request_raw(f"garden.as.ann.api.{tail}", b"", timeout_seconds=HANG_SECONDS)).body
        )
        assert response["error"]["code"] == 403, tail
    assert await landscape.stored(ObjectKey("configmap", "garden", "dear"))


async def test_not_even_the_operator_asks_as_a_user_who_cannot_be(landscape: GuardedLandscape) -> None:
    operator = await _operator(landscape)
    note = encode({**DEAR, "metadata": {"name": "impossible", "namespace": "garden"}})
    await operator.send([publish_command(f"garden.as.{user}.apply", note) for user in ("*", "x" * 3000)])
    for user in ("*", "x" * 3000):
        raw = await operator.request_raw(f"garden.as.{user}.api.apply", note, timeout_seconds=HANG_SECONDS)
        response = msgspec.json.decode(raw.body)
        assert (response["error"]["code"], "is no user" in response["error"]["message"]) == (400, True), response

    async def rejected() -> None:
        raw = await operator.request_raw("$JS.API.STREAM.INFO.REJECTED", b"", timeout_seconds=HANG_SECONDS)
        assert msgspec.json.decode(raw.body)["state"]["messages"] == 2

    await eventually(rejected)
    assert not await landscape.stored(ObjectKey("configmap", "garden", "impossible"))


async def test_without_credentials_there_is_no_way_in(landscape: GuardedLandscape) -> None:
    with pytest.raises(Unavailable):
        await landscape.connect(login_credentials(Login("ann", "guessed")), "ann")
    with pytest.raises(Unavailable):
        await landscape.connect(login_credentials(Login("operator", "guessed")), "operator")


async def test_requests_for_certificates_fill_no_store(landscape: GuardedLandscape) -> None:
    """Each would be kept: they are small, and neither many at once nor many that live."""
    cork, key = Principal("gardenlet", "aws-cork"), new_key()
    thief = await _come_in(landscape, cork)
    subject = f"garden.as.{cork.token}.api.csr.create"

    async def code(name: str, pem: bytes) -> int:
        body = encode(new_signing_request(name, pem))
        response = msgspec.json.decode((await thief.request_raw(subject, body, timeout_seconds=HANG_SECONDS)).body)
        return 200 if response["ok"] else response["error"]["code"]

    codes = [await code("large", bytes(40_000)), *[await code(f"many-{n}", new_request(cork, key)) for n in range(30)]]
    assert codes[:2] == [400, 200]
    assert codes[-1] == 429
    assert codes.count(200) < 30
    assert not await landscape.stored(ObjectKey("certificatesigningrequest", "", "large"))
    assert await landscape.stored(ObjectKey("certificatesigningrequest", "", "many-0"))
