"""Which of several Redis servers is the master, and which others there are.

Sentinels are asked all at once, and the one with the highest configuration epoch is believed: a Sentinel that was
cut off names the master of before. Of listed servers, it is the one that calls itself so and has the latest opening.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from redis.asyncio.connection import Connection, ConnectionPool, SSLConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from gardenbus.common.adapters.redis.addresses import Address, RedisAddresses
from gardenbus.common.adapters.redis.direct import QUESTION_SECONDS, ask
from gardenbus.common.adapters.redis.openings import opening_number
from gardenbus.common.errors import Unavailable


class Servers(NamedTuple):
    """The servers, as found."""

    master: Address
    others: frozenset[Address]
    """All that are replicas, or should be."""
    is_settled: bool
    """True if a majority of those asked answered, and none knows of a failover under way."""
    is_unanimous: bool = False
    """True if all of the Sentinels say so."""


class MasterFinder(Protocol):
    """Finds the master."""

    async def find(self) -> Servers:
        """Look for it now. Raises Unavailable while there is none that is known of."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class ListedServers:
    """See the module. `pool` knows user, password and TLS."""

    def __init__(self, servers: Sequence[Address], pool: ConnectionPool, opening_key: str) -> None:
        self._servers = servers
        self._pool = pool
        self._opening_key = opening_key

    async def find(self) -> Servers:
        """Ask each server."""
        questions = [("ROLE",), ("GET", self._opening_key)]
        answers = await asyncio.gather(*(ask(self._pool, server, questions) for server in self._servers))
        masters = {
            server: opening_number(answer[1])
            for server, answer in zip(self._servers, answers, strict=True)
            if answer is not None and is_master(answer[0])
        }
        if not masters:
            raise Unavailable(f"Redis is out of reach: none of {_listed(self._servers)} is a master")
        master = max(masters, key=lambda server: masters[server])
        answered = sum(answer is not None for answer in answers)
        return Servers(master, frozenset(self._servers) - {master}, answered * 2 > len(self._servers))

    async def close(self) -> None:
        """Nothing is kept open."""


class Sentinels:
    """See the module."""

    def __init__(self, addresses: RedisAddresses, options: Mapping[str, Any]) -> None:
        self._sentinels = addresses.sentinels
        self._service = addresses.service
        has_tls = addresses.url.startswith("rediss")
        login: dict[str, Any] = {
            "username": addresses.sentinel_username or None,
            "password": addresses.sentinel_password,
        }
        self._pool = ConnectionPool(
            SSLConnection if has_tls else Connection,
            **(login if addresses.sentinel_password else {}),
            **options,
            protocol=2,
            socket_timeout=QUESTION_SECONDS,
            socket_connect_timeout=QUESTION_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )

    async def find(self) -> Servers:
        """Ask each Sentinel."""
        questions = [("SENTINEL", "MASTER", self._service), ("SENTINEL", "REPLICAS", self._service)]
        answers = await asyncio.gather(*(ask(self._pool, sentinel, questions) for sentinel in self._sentinels))
        known = [answer for answer in answers if answer is not None and isinstance(answer[0], list)]
        if not known:
            raise Unavailable(
                f"Redis is out of reach: no Sentinel of {_listed(self._sentinels)} knows of a master {self._service!r}"
            )
        masters = [_texts(answer[0]) for answer in known]
        newest = max(masters, key=lambda state: int(state["config-epoch"]))
        master = _address(newest)
        others = {
            _address(_texts(state))
            for answer in known
            if isinstance(answer[1], list)
            for state in cast("list[Any]", answer[1])
        }
        others |= {_address(state) for state in masters}
        is_calm = not any({"failover_in_progress", "o_down"} & set(state["flags"].split(",")) for state in masters)
        agree = all(state["config-epoch"] == newest["config-epoch"] for state in masters)
        is_settled = is_calm and agree and len(known) * 2 > len(self._sentinels)
        is_unanimous = is_settled and len(known) == len(self._sentinels)
        return Servers(master, frozenset(others) - {master}, is_settled, is_unanimous)

    async def close(self) -> None:
        """Close the pool."""
        await self._pool.aclose()


def is_master(role: Any) -> bool:
    """True if a response to ROLE is a master's."""
    return isinstance(role, list) and role != [] and cast("list[Any]", role)[0] == b"master"


def _texts(flat: Any) -> dict[str, str]:
    fields = [each.decode() for each in cast("list[bytes]", flat)]
    return dict(zip(fields[::2], fields[1::2], strict=True))


def _address(state: Mapping[str, str]) -> Address:
    return Address(state["ip"], int(state["port"]))


def _listed(addresses: Sequence[Address]) -> str:
    return ", ".join(map(str, addresses))
