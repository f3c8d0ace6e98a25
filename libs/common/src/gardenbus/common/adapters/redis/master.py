"""Finders of the master among several Redis servers.

Sentinels are queried all at once, and the one with the highest configuration epoch is believed: a Sentinel that was
cut off names the master of before. Of listed servers, it is the one that calls itself so and has the latest opening.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from redis.asyncio.connection import ConnectionPool
from redis.exceptions import AuthenticationError, NoPermissionError

from gardenbus.common.adapters.redis.access import RedisAccess, sentinel_login
from gardenbus.common.adapters.redis.addresses import RedisAddresses, ServerAddress
from gardenbus.common.adapters.redis.direct import QUESTION_SECONDS, query
from gardenbus.common.adapters.redis.openings import opening_number
from gardenbus.common.errors import Unavailable


class Servers(NamedTuple):
    """The servers, as found."""

    master: ServerAddress
    others: frozenset[ServerAddress]
    """All that are replicas, or should be."""
    is_settled: bool
    """True if a majority of those queried responded, and none knows of a failover under way."""
    is_unanimous: bool = False
    """True if all of the Sentinels say so."""


class MasterFinder(Protocol):
    """Finds the master."""

    async def find(self) -> Servers:
        """Look for it now. Raises Unavailable while there is none that is known."""
        ...

    async def sentinels(self) -> Mapping[ServerAddress, bool]:
        """Each Sentinel, and whether it responds and knows the master's name; empty where there is none."""
        ...

    async def close(self) -> None:
        """Close connections."""
        ...


class ListedServers:
    """See the module. `pool` knows user, password and TLS."""

    def __init__(self, servers: Sequence[ServerAddress], pool: ConnectionPool, opening_key: str) -> None:
        self._servers = servers
        self._pool = pool
        self._opening_key = opening_key

    async def find(self) -> Servers:
        """Query each server."""
        questions = [("ROLE",), ("GET", self._opening_key)]
        responses = await asyncio.gather(*(query(self._pool, server, questions) for server in self._servers))
        masters = {
            server: opening_number(response[1])
            for server, response in zip(self._servers, responses, strict=True)
            if response is not None and is_master(response[0])
        }
        if not masters:
            if problem := _silence(self._servers, responses):
                raise Unavailable(f"Redis is unreachable: {problem}")
            raise Unavailable(f"Redis is unreachable: none of {_listed(self._servers)} is a master")
        master = max(masters, key=lambda server: masters[server])
        responded = sum(response is not None for response in responses)
        return Servers(master, frozenset(self._servers) - {master}, responded * 2 > len(self._servers))

    async def sentinels(self) -> Mapping[ServerAddress, bool]:
        """None."""
        return {}

    async def close(self) -> None:
        """Nothing is kept open."""


class Sentinels:
    """See the module."""

    def __init__(self, addresses: RedisAddresses, pool: ConnectionPool, access: RedisAccess) -> None:
        self._sentinels = addresses.sentinels
        self._service = addresses.service
        options: dict[str, Any] = dict(pool.connection_kwargs)
        if not addresses.has_same_login:
            for name in ("username", "password", "credential_provider"):
                options.pop(name, None)
        options |= sentinel_login(addresses, access)
        options |= {"db": 0, "socket_timeout": QUESTION_SECONDS, "socket_connect_timeout": QUESTION_SECONDS}
        self._pool = ConnectionPool(pool.connection_class, **options)

    async def find(self) -> Servers:
        """Query each Sentinel."""
        questions = [("SENTINEL", "MASTER", self._service), ("SENTINEL", "REPLICAS", self._service)]
        responses = await asyncio.gather(
            *(query(self._pool, sentinel, questions, with_rejection=True) for sentinel in self._sentinels)
        )
        found = [response for response in responses if response is not None and isinstance(response[0], list)]
        if not found:
            if problem := _silence(self._sentinels, responses, "Sentinel"):
                raise self._no_master([each[0] for each in responses if each], f"{problem}: their master is not found")
            raise self._no_master(
                [each[0] for each in responses if each],
                f"no Sentinel of {_listed(self._sentinels)} knows of a master {self._service!r}",
            )
        masters = [_texts(response[0]) for response in found]
        newest = max(masters, key=lambda state: int(state["config-epoch"]))
        master = _address(newest)
        others = {
            _address(_texts(state))
            for response in found
            if isinstance(response[1], list)
            for state in cast("list[Any]", response[1])
        }
        others |= {_address(state) for state in masters}
        is_calm = not any({"failover_in_progress", "o_down"} & set(state["flags"].split(",")) for state in masters)
        agree = all(state["config-epoch"] == newest["config-epoch"] for state in masters)
        is_settled = is_calm and agree and len(found) * 2 > len(self._sentinels)
        is_unanimous = is_settled and len(found) == len(self._sentinels)
        return Servers(master, frozenset(others) - {master}, is_settled, is_unanimous)

    def _no_master(self, errors: Sequence[Any], reason: str) -> Unavailable:
        names = _listed(self._sentinels)
        for error in errors:
            if isinstance(error, (AuthenticationError, NoPermissionError)):
                return Unavailable(
                    f"Redis is unreachable: the Sentinels {names} reject the login ({error}); in GARDENBUS_REDIS_URL "
                    "sentinel_login=same is that of the servers, sentinel_username=… another one"
                )
        return Unavailable(f"Redis is unreachable: {reason}")

    async def sentinels(self) -> Mapping[ServerAddress, bool]:
        """Query each for the master."""
        question = [("SENTINEL", "MASTER", self._service)]  # which services' users may send
        responses = await asyncio.gather(*(query(self._pool, sentinel, question) for sentinel in self._sentinels))
        return {
            sentinel: response is not None and isinstance(response[0], list)
            for sentinel, response in zip(self._sentinels, responses, strict=True)
        }

    async def close(self) -> None:
        """Close the pool."""
        await self._pool.aclose()


def is_master(role: Any) -> bool:
    """True if a response to ROLE is a master's."""
    return isinstance(role, list) and role != [] and cast("list[Any]", role)[0] == b"master"


def _silence(servers: Sequence[ServerAddress], responses: Sequence[Any], role: str = "server") -> str:
    """Those that did not respond in time, which tells nothing of what they know; "" where all did."""
    silent = [server for server, response in zip(servers, responses, strict=True) if response is None]
    if not silent:
        return ""
    others = "" if len(silent) == len(servers) else f"; the other {len(servers) - len(silent)} name no master"
    return f"no response within {QUESTION_SECONDS:g} s of the {role}s {_listed(silent)}{others}"


def _texts(flat: Any) -> dict[str, str]:
    fields = [each.decode() for each in cast("list[bytes]", flat)]
    return dict(zip(fields[::2], fields[1::2], strict=True))


def _address(state: Mapping[str, str]) -> ServerAddress:
    return ServerAddress(state["ip"], int(state["port"]))


def _listed(addresses: Sequence[ServerAddress]) -> str:
    return ", ".join(map(str, addresses))
