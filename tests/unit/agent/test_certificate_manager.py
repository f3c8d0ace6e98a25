"""An agent's certificate: bootstrapped by a token, renewed before it ends, in virtual time."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gardenbus.agent.certificate_manager import CertificateManager
from gardenbus.agent.certificate_requests import CREDENTIALS, REQUEST, TOKEN, CertificateRequests, Send
from gardenbus.common.api.identity.bootstrap_tokens import Token
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import Conflict, Forbidden, Unavailable
from gardenbus.credentials.certificates import issued_at, read_certificate, read_key
from tests.support.eventually import HANG_SECONDS
from tests.support.signing import Signing

CORK = Principal("gardenlet", "aws-cork")


class Agent:
    """A gardenlet's directory, and requests that are decided about as soon as they are sent."""

    def __init__(self, signing: Signing, directory: Path) -> None:
        self.signing = signing
        self.directory = directory
        self.names: list[str] = []
        self.is_decided = True
        self.is_away = False
        directory.mkdir()

    def manager(self, draw: Callable[[], float] = lambda: 0.5) -> CertificateManager:
        return CertificateManager(CORK, self.directory, self.signing.clock, draw=draw)

    def requests(self) -> CertificateRequests:
        return CertificateRequests(CORK, self.directory, self.signing.clock)

    def send_as(self, user: str) -> Send:
        async def send(tail: str, body: object) -> Any:
            if self.is_away:
                raise Unavailable("nobody answers")
            response = await self.signing.respond(user, tail, body)
            if not response["ok"]:
                kind = Conflict if response["error"]["code"] == 409 else Forbidden
                raise kind(response["error"]["message"])
            if tail == "csr.create":
                name = response["result"]["metadata"]["name"]
                self.names.append(name)
                if self.is_decided:
                    await self.signing.decided(name)
            return response["result"]

        return send

    @contextlib.asynccontextmanager
    async def connect(self, token: Token) -> AsyncGenerator[Send]:
        yield self.send_as(f"bootstrap:{token.id}")

    async def give_token(self, **about: Any) -> str:
        token = await self.signing.token(**about)
        (self.directory / TOKEN).write_text(token + "\n")
        return token

    def files(self) -> set[str]:
        return {each.name for each in self.directory.iterdir()} - {"certificate.lock"}

    @property
    def life(self) -> tuple[datetime, datetime]:
        certificate = read_certificate((self.directory / CREDENTIALS).read_bytes())
        return issued_at(certificate), certificate.not_valid_after_utc


@pytest.fixture
async def agent(tmp_path: Path) -> Agent:
    """A gardenlet without anything."""
    signing = Signing(tmp_path)
    await signing.start()
    return Agent(signing, tmp_path / "aws-cork")


async def test_a_token_becomes_a_certificate_and_is_forgotten(agent: Agent) -> None:
    await agent.give_token(seed="aws-cork")
    manager = agent.manager()
    assert manager.needs_bootstrap
    await manager.bootstrap(agent.connect)
    assert not manager.needs_bootstrap
    assert agent.files() == {CREDENTIALS}
    content = (agent.directory / CREDENTIALS).read_bytes()
    assert read_certificate(content).public_key() == read_key(content).public_key()
    assert (agent.directory / CREDENTIALS).stat().st_mode & 0o777 == 0o600


async def test_without_a_token_nothing_is_asked_for(agent: Agent) -> None:
    manager = agent.manager()
    await manager.bootstrap(agent.connect)
    assert (agent.names, agent.files(), manager.expires_at) == ([], set(), None)


async def test_a_gardenlet_that_dies_before_its_answer_takes_it_up_again(agent: Agent) -> None:
    token = await agent.give_token(seed="aws-cork")
    agent.is_decided = False
    sent = asyncio.create_task(agent.requests().obtain(agent.send_as(f"bootstrap:{token[:6]}")))
    while not agent.names:
        await asyncio.sleep(0)
    sent.cancel()
    await asyncio.gather(sent, return_exceptions=True)
    assert REQUEST in agent.files()
    await agent.signing.decided(agent.names[0])
    await agent.manager().bootstrap(agent.connect)
    assert len(set(agent.names)) == 1
    assert agent.files() == {CREDENTIALS}


async def test_a_request_that_nobody_answers_is_replaced_by_one_of_a_new_key(agent: Agent) -> None:
    agent.is_decided = False
    began = agent.signing.clock.now()

    async def send(tail: str, body: object) -> Any:
        agent.is_decided = agent.signing.clock.now() - began >= timedelta(minutes=15)
        return await agent.send_as("seed:aws-cork")(tail, body)

    await agent.requests().obtain(send)
    first, second = agent.names
    assert first != second
    assert agent.signing.clock.now() - began < timedelta(minutes=16)


async def test_a_denied_request_says_why_and_its_key_is_not_used_again(agent: Agent) -> None:
    with pytest.raises(Forbidden, match="NotOwnName: seed:aws-dublin requests"):
        await agent.requests().obtain(agent.send_as("seed:aws-dublin"))
    assert REQUEST not in agent.files()


async def test_a_token_that_was_used_brings_nothing_until_there_is_another(agent: Agent) -> None:
    spent = await agent.give_token(seed="aws-cork")
    await agent.manager().bootstrap(agent.connect)
    (agent.directory / CREDENTIALS).unlink()
    (agent.directory / TOKEN).write_text(spent)
    bootstrapping = asyncio.create_task(agent.manager().bootstrap(agent.connect))
    while len(agent.names) < 4:
        await asyncio.sleep(0)
    assert not bootstrapping.done()
    await agent.give_token(seed="aws-cork")
    await asyncio.wait_for(bootstrapping, HANG_SECONDS)
    assert agent.files() == {CREDENTIALS}


async def test_a_certificate_that_ended_is_replaced_by_a_new_token(agent: Agent) -> None:
    await agent.give_token(seed="aws-cork")
    manager = agent.manager()
    await manager.bootstrap(agent.connect)
    agent.signing.clock.advance(31 * 86_400)
    assert not manager.is_due(is_demanded=False)
    assert not manager.needs_bootstrap
    await agent.give_token(seed="aws-cork")
    assert manager.needs_bootstrap
    await manager.bootstrap(agent.connect)
    assert agent.life[1] > agent.signing.clock.now()


async def test_a_token_that_came_after_the_certificate_replaces_it(agent: Agent) -> None:
    await agent.give_token(seed="aws-cork")
    manager = agent.manager()
    await manager.bootstrap(agent.connect)
    spent = (agent.directory / CREDENTIALS).stat().st_mtime_ns - 1
    token = await agent.give_token(seed="aws-cork")
    os.utime(agent.directory / TOKEN, ns=(spent, spent))
    assert not manager.needs_bootstrap
    (agent.directory / TOKEN).write_text(token)
    assert manager.needs_bootstrap


@pytest.mark.parametrize("draw", [0.0, 0.3, 0.999])
async def test_each_certificate_is_renewed_within_70_and_90_percent_of_its_life(agent: Agent, draw: float) -> None:
    await agent.give_token(seed="aws-cork")
    manager = agent.manager(lambda: draw)
    await manager.bootstrap(agent.connect)
    running = asyncio.create_task(manager.run(agent.send_as("seed:aws-cork")))
    for _ in range(3):
        begins, ends = agent.life
        agent.signing.clock.advance((ends - begins).total_seconds() * 0.699)
        await asyncio.sleep(0.01)
        assert agent.life == (begins, ends)
        agent.signing.clock.advance((ends - begins).total_seconds() * 0.21)
        while agent.life == (begins, ends):
            await asyncio.sleep(0)
        assert agent.life[0] < ends
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(set(agent.names)) == 4


async def test_a_renewal_that_is_demanded_comes_at_once_and_once(agent: Agent) -> None:
    await agent.give_token(seed="aws-cork")
    manager = agent.manager()
    await manager.bootstrap(agent.connect)
    agent.signing.clock.advance(60)
    is_demanded = True
    running = asyncio.create_task(manager.run(agent.send_as("seed:aws-cork"), lambda: is_demanded))
    while len(agent.names) < 2:
        await asyncio.sleep(0)
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(agent.names) == 2
    is_demanded = False
    for _ in range(50):
        await asyncio.sleep(0)
    is_demanded = True
    while len(agent.names) < 3:
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_the_certificate_stays_while_nobody_answers(agent: Agent) -> None:
    await agent.give_token(seed="aws-cork")
    manager = agent.manager()
    await manager.bootstrap(agent.connect)
    life = agent.life
    agent.is_away = True
    running = asyncio.create_task(manager.run(agent.send_as("seed:aws-cork")))
    agent.signing.clock.advance(25 * 86_400)
    for _ in range(50):
        await asyncio.sleep(0)
    assert agent.life == life
    agent.is_away = False
    while agent.life == life:
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_one_of_two_processes_asks(agent: Agent) -> None:
    await agent.give_token(seed="aws-cork")
    agent.is_decided = False
    first, second = (asyncio.create_task(agent.manager().bootstrap(agent.connect)) for _ in range(2))
    while not agent.names:
        await asyncio.sleep(0)
    await agent.signing.decided(agent.names[0])
    agent.is_decided = True
    await asyncio.wait_for(asyncio.gather(first, second), HANG_SECONDS)
    assert len(set(agent.names)) == 1
