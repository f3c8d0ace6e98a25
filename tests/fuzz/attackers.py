"""Attackers of a landscape, in a process of their own: what they take of a processor holds up no other client."""

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from gardenbus.common.api.identity.principals import Principal
from tests.fuzz.attacks import Attacks
from tests.fuzz.messages import Sent, messages_of
from tests.fuzz.process import sendable, stored_world
from tests.fuzz.raw_client import RawClient
from tests.support.landscape import trust_of

ATTACKERS: Sequence[Principal] = (
    Principal("user", "nobody-special"),
    Principal("user", "ann"),
    Principal("gardenlet", "aws-cork"),
    Principal("member-agent", "paris"),
    Principal("scheduler", "mine"),
    Principal("extension", "aws-cork"),
    Principal("plugin", "carbon"),
)
"""One of each sort: a person without a role and one with one in a Project, and all programs from outside."""

IN_FLIGHT = 40
"""Requests of a connection that wait for their responses at a time: more than its user may have."""


class Login(NamedTuple):
    """User and password of a credential."""

    user: str
    password: str


class Attack(NamedTuple):
    """Where it goes, with which credentials (by principal's user), over how many connections, until when."""

    url: str
    directory: Path
    logins: Mapping[str, Login]
    connections: int
    seed: int
    until: float


class Attacker:
    """One connection with a credential, on which attacks are sent as fast as they are taken."""

    def __init__(self, principal: Principal, attacks: Attacks) -> None:
        self._principal = principal
        self._attacks = attacks
        self._waiting = 0
        self.sent = 0

    async def work(self, attack: Attack) -> None:
        """Attack to an instant of the clock; a connection that the server ends is an end, too."""
        client = await RawClient.connect(
            attack.url,
            self._responded,
            login=attack.logins[self._principal.user],
            inbox=self._principal.inbox.encode() + b".",
            trust=trust_of(attack.directory),
        )
        while time.monotonic() < attack.until and not client.is_closed:
            sent: Sent = self._attacks.next()
            if sent.is_request:
                self._waiting += 1
            with contextlib.suppress(ConnectionError):
                await client.send(sent.message, self.sent if sent.is_request else None)
            self.sent += 1
            await asyncio.sleep(0.05 if self._waiting > IN_FLIGHT else 0)
        await client.close()

    def _responded(self, _number: int, _body: bytes) -> None:
        self._waiting -= 1


async def in_own_process(attack: Attack) -> int:
    """Attack from another process; how many messages were sent."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, _attack, attack)


def _attack(attack: Attack) -> int:
    return asyncio.run(_attack_on_connections(attack))


async def _attack_on_connections(attack: Attack) -> int:
    world, stored = stored_world()
    templates = [*sendable(world), *(each for each in stored if each.document.get("status"))]
    attackers: list[Attacker] = []
    for number in range(attack.connections):
        principal = ATTACKERS[number % len(ATTACKERS)]
        messages = messages_of(templates, attack.seed + number)
        attackers.append(Attacker(principal, Attacks(principal, messages, attack.seed + number)))
    ended = await asyncio.gather(*(each.work(attack) for each in attackers), return_exceptions=True)
    for each in ended:
        if isinstance(each, Exception) and not isinstance(each, OSError | EOFError):
            raise each
    return sum(each.sent for each in attackers)
