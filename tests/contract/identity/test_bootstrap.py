"""A gardenlet with nothing but a token comes in, is renewed, and is out when it is revoked: on real servers."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gardenbus.agent.certificate_manager import CertificateManager
from gardenbus.agent.certificate_requests import CREDENTIALS, TOKEN, CertificateRequests, Send
from gardenbus.common.adapters.nats.credentials import Login, login_credentials, read_credentials
from gardenbus.common.api.identity.bootstrap_tokens import Token, parse_token
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.identity.signing_requests import new_signing_request
from gardenbus.common.errors import Forbidden, Unavailable
from gardenbus.common.runtime.clock import SystemClock
from gardenbus.credentials.certificates import new_key, new_request, read_certificate, serial_of
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.guarded_landscape import GuardedLandscape, guarded_landscape

CORK = Principal("gardenlet", "aws-cork")
CLOCK = SystemClock()


@pytest.fixture
async def landscape(tmp_path: Path) -> AsyncIterator[GuardedLandscape]:
    """The services on guarded servers, two replicas of the identity service."""
    async with guarded_landscape(tmp_path / "landscape", replicas=2) as landscape:
        yield landscape


class Agent:
    """A gardenlet's directory."""

    def __init__(self, landscape: GuardedLandscape, principal: Principal = CORK) -> None:
        self.landscape = landscape
        self.directory = landscape.directory / f"agent-{principal.name}-{time.monotonic_ns()}"
        self.directory.mkdir()
        self.manager = CertificateManager(principal, self.directory, CLOCK)
        self.principal = principal

    @contextlib.asynccontextmanager
    async def with_token(self, token: Token) -> AsyncGenerator[Send]:
        login = Login(f"bootstrap:{token.id}", token.secret)
        async with self.landscape.send_as(login_credentials(login), login.user) as send:
            yield send

    async def bootstrap(self, **about: str) -> str:
        token = (await self.landscape.operator.request("token.create", about))["token"]
        (self.directory / TOKEN).write_text(token)
        await self.manager.bootstrap(self.with_token)
        return token

    @property
    def file(self) -> Path:
        return self.directory / CREDENTIALS

    @property
    def serial(self) -> str:
        return serial_of(read_certificate(self.file.read_bytes()))


async def test_a_gardenlet_comes_up_by_its_token_and_renews_itself(landscape: GuardedLandscape) -> None:
    agent = Agent(landscape)
    token = await agent.bootstrap(seed="aws-cork")
    assert {each.name for each in agent.directory.iterdir()} == {CREDENTIALS, "certificate.lock"}
    first = agent.serial
    async with landscape.send_as(read_credentials(agent.file, ""), "seed:aws-cork") as send:
        await CertificateRequests(CORK, agent.directory, CLOCK).obtain(send)
    assert agent.serial != first
    await landscape.connect(read_credentials(agent.file, ""), "seed:aws-cork")
    again = Agent(landscape)
    async with again.with_token(parse_token(token)) as send:
        with pytest.raises(Forbidden, match="TokenUsed"):
            await CertificateRequests(CORK, again.directory, CLOCK).obtain(send)


async def test_a_token_is_for_nothing_but_a_request(landscape: GuardedLandscape) -> None:
    token = parse_token((await landscape.operator.request("token.create", {"seed": "aws-cork"}))["token"])
    agent = Agent(landscape)

    async def rejected() -> None:
        try:
            async with agent.with_token(token) as send:
                for tail, body in (("list.secret", {}), ("token.create", {}), ("csr.approve", {"name": "x"})):
                    with pytest.raises(Unavailable, match="no response"):
                        await send(tail, body)
        except Unavailable as error:  # the identity service has not heard of the token yet
            raise AssertionError(error.message) from error

    await eventually(rejected)


@pytest.mark.parametrize("token", ["4f2a91.0123456789abcdef", "4f2a91.fedcba9876543210"])
async def test_a_token_that_there_is_not_lets_nobody_in(landscape: GuardedLandscape, token: str) -> None:
    with pytest.raises(Unavailable):
        async with Agent(landscape).with_token(parse_token(token)):
            pass


async def test_a_replayed_request_is_denied(landscape: GuardedLandscape) -> None:
    agent = Agent(landscape)
    await agent.bootstrap(seed="aws-cork")
    pem = new_request(CORK, new_key())
    async with landscape.send_as(read_credentials(agent.file, ""), "seed:aws-cork") as send:
        await send("csr.create", new_signing_request("first", pem))

        async def issued() -> None:
            assert (await send("csr.get", {"name": "first"}))["status"]["certificate"]

        await eventually(issued)
        await send("csr.create", new_signing_request("second", pem))

        async def denied() -> None:
            (condition,) = (await send("csr.get", {"name": "second"}))["status"]["conditions"]
            assert (condition["type"], condition["reason"]) == ("Denied", "Replayed")

        await eventually(denied)


async def _revoke(landscape: GuardedLandscape, name: str) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "revoked-credentials", "namespace": "garden"},
    }
    await landscape.operator.request("apply", {**manifest, "data": {name: f"{now} stolen"}})


@pytest.mark.parametrize("by", ["user", "serial"])
async def test_who_is_revoked_is_out_within_two_seconds(landscape: GuardedLandscape, by: str) -> None:
    agent, other = Agent(landscape), Agent(landscape, Principal("gardenlet", "aws-dublin"))
    await agent.bootstrap(seed="aws-cork")
    await other.bootstrap(seed="aws-dublin")
    connection = await landscape.connect(read_credentials(agent.file, ""), "seed:aws-cork")
    untouched = await landscape.connect(read_credentials(other.file, ""), "seed:aws-dublin")
    closed = asyncio.Event()
    connection.when_lost(closed.set)
    await _revoke(landscape, "seed:aws-cork" if by == "user" else agent.serial)
    await asyncio.wait_for(closed.wait(), HANG_SECONDS)  # from the answer to the command on
    with pytest.raises(Unavailable):
        await landscape.connect(read_credentials(agent.file, ""), "seed:aws-cork")
    await untouched.flush_fully()
    assert untouched.losses == 0


async def test_who_was_revoked_comes_back_by_a_new_token(landscape: GuardedLandscape) -> None:
    agent = Agent(landscape)
    await agent.bootstrap(seed="aws-cork")
    await _revoke(landscape, agent.serial)

    async def is_rejected() -> None:
        try:
            await landscape.connect(read_credentials(agent.file, ""), "seed:aws-cork")
        except Unavailable:
            return
        raise AssertionError("it is still let in")

    await eventually(is_rejected)
    await agent.bootstrap(seed="aws-cork")
    await landscape.connect(read_credentials(agent.file, ""), "seed:aws-cork")


async def test_a_certificate_of_a_short_life_ends_the_session(tmp_path: Path) -> None:
    async with guarded_landscape(tmp_path / "landscape", certificate_seconds=60) as landscape:
        agent = Agent(landscape)
        await agent.bootstrap(seed="aws-cork")
        ends = agent.manager.expires_at
        assert ends is not None
        assert ends - CLOCK.now() <= timedelta(seconds=60)


async def test_a_person_is_let_in_once_an_operator_has_approved(landscape: GuardedLandscape) -> None:
    ann, key = Principal("user", "ann"), new_key()
    await landscape.operator.request("csr.create", new_signing_request("ann", new_request(ann, key)))
    waiting = await landscape.operator.request("csr.get", {"name": "ann"})
    assert "status" not in waiting
    await landscape.operator.request("csr.approve", {"name": "ann"})

    async def issued() -> None:
        assert (await landscape.operator.request("csr.get", {"name": "ann"}))["status"].get("certificate")

    await eventually(issued)
    assert waiting["spec"]["username"] == "operator"
