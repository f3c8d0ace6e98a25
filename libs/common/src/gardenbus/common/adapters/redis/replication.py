"""Acknowledgement of writes by replicas, and the epoch that identifies the response of an older master.

A write counts when every replica that a failover could promote has it, and at least as many as are required. So each
write is followed by `WAIT` for all replicas. The reason of one that does not acknowledge is read from itself:

| it is …                                 | the write …                                                             |
|-----------------------------------------|-------------------------------------------------------------------------|
| a replica that follows its master       | does not count: it may be promoted without it                           |
| a replica that joins                    | may count: Sentinel prefers those that have more                        |
| a master, with an opening older than    | may count; that one's store is closed for good                          |
| ours                                    |                                                                         |
| a master, with our opening (one of both | may count if all Sentinels respond, call ours the master, and know of   |
| was promoted, and is not opened yet)    | no failover under way                                                   |
| a master otherwise                      | does not count: ours is the older one, and is left                      |
| out of reach                            | may count if a majority of the Sentinels (or of the listed servers)     |
|                                         | responds, and knows of no failover under way                            |

A write that does not count is Unavailable: it may have been carried out, and whoever sent it sends it again. Until then
others see it. `WAIT` is about the writes of one connection, so a `SET` stands before it: what was found, too, such as
that there is nothing to do any more, counts only when replicas have all that it was found in.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import structlog
from redis.asyncio.connection import ConnectionPool

from gardenbus.common.adapters.redis.addresses import ServerAddress
from gardenbus.common.adapters.redis.direct import query
from gardenbus.common.adapters.redis.master import MasterFinder, Servers, is_master
from gardenbus.common.adapters.redis.multiplexed_connection import Command
from gardenbus.common.adapters.redis.openings import opening_number
from gardenbus.common.errors import Unavailable

WAIT_MILLISECONDS = 500
"""Longest wait of one `WAIT`; other callers on the connection wait with it."""

EXCUSED_SECONDS = 3.0
"""For so long replicas that were found out of reach count as that."""

EXCUSED_AGAIN_SECONDS = 1.0
"""Age at which they are looked for again."""

FIND_AGAIN_SECONDS = 10.0
"""Age at which the other servers are looked for again while all is well: there may be more of them."""

UNREPLICATED_SECONDS = 2.0
"""Interval at which another master is looked for where no write has to be on a replica."""

_NEVER = -1e9
Replicas = frozenset[tuple[bytes, bytes]]

_log = structlog.stdlib.get_logger()


class Deposed(Unavailable):
    """The server is not the master, or an older one: another one has to be connected to."""


class Replication:
    """See the module. Without a finder there is one server, whose replicas are only counted."""

    def __init__(
        self,
        pool: ConnectionPool,
        finder: MasterFinder | None,
        *,
        required: int,
        opening_key: str,
        confirmed_key: str,
        retiring: Callable[[int], Sequence[Command]],
    ) -> None:
        self.required = required
        self.finds_master = finder is not None
        self.epoch = -1
        self._pool = pool
        self._finder = finder
        self._opening_key = opening_key
        self._confirmed_key = confirmed_key
        self._retiring = retiring
        self._servers: Servers | None = None
        self._found_at = _NEVER
        self._excused = 0
        self._excused_at = _NEVER
        self._connected: Replicas = frozenset()
        self._older: set[ServerAddress] = set()
        self._probing: asyncio.Task[None] | None = None
        self._deposed: Deposed | None = None

    async def locate(self) -> ServerAddress | None:
        """Address of the master; None for that of the pool. Raises Unavailable."""
        if self._finder is None:
            return None
        found = await self._finder.find()
        if self._servers is None or found.master != self._servers.master:
            self._older.clear()
            _log.info("redis.master_found", address=str(found.master), others=sorted(map(str, found.others)))
        self._servers, self._found_at = found, asyncio.get_running_loop().time()
        return found.master

    async def close(self) -> None:
        """End what is under way."""
        if self._probing is not None:
            self._probing.cancel()
            await asyncio.wait((self._probing,))
        if self._finder is not None:
            await self._finder.close()

    async def sentinels(self) -> Mapping[ServerAddress, bool]:
        """Each Sentinel, and whether it can take part in a failover."""
        return await self._finder.sentinels() if self._finder is not None else {}

    # ------------------------------------------------------------------------------------------ epoch

    def opening_command(self) -> Command:
        """Command whose response `check_opening` takes."""
        return ("GET", self._opening_key)

    def check_opening(self, opening: Any) -> None:
        """Remember the epoch of a response. Raises Deposed where a later one was seen before."""
        number = opening_number(opening)
        if number > self.epoch:
            self.epoch = number
        elif 0 <= number < self.epoch:
            raise Deposed(f"this Redis was master until {number}, and another one is since {self.epoch}")

    # ------------------------------------------------------------------------------------------ acknowledgement

    def commands(self) -> Sequence[Command]:
        """Commands that follow a write; `accept` takes the responses to them."""
        following: Sequence[Command] = (("ROLE",), self.opening_command(), ("PING",))
        if not self.required:
            return following
        return [("SET", self._confirmed_key, ""), ("WAIT", self._wanted(), WAIT_MILLISECONDS), *following]

    async def accept(self, replies: Sequence[Any]) -> None:
        """Return if what was written before counts. Raises Unavailable, or Deposed."""
        *written, role, opening, _ = replies
        if (deposed := self._deposed) is not None:
            self._deposed = None
            raise deposed
        if not is_master(role):
            raise Deposed("this Redis is a replica by now")
        self.check_opening(opening)
        if written:
            await self._accept(int(written[-1]), _connected(role))
        elif self._age() >= UNREPLICATED_SECONDS:
            self._probe_soon()

    async def _accept(self, have: int, connected: Replicas) -> None:
        if connected != self._connected:  # one of those that were excused may have come, or become master
            self._connected, self._excused_at = connected, _NEVER
        if len(connected) > len(self.others):  # Sentinel has not seen all of them yet
            self._probe_soon()
        if have < self.required:
            await self._probe()  # which may find that another one is master
            raise Unavailable(f"{have} of {self.required} Redis replicas have it: it counts when all of them do")
        lacking = max(len(self.others), len(connected)) - have
        if lacking <= 0:
            if asyncio.get_running_loop().time() - self._found_at > FIND_AGAIN_SECONDS:
                self._probe_soon()
            return
        if self._age() >= EXCUSED_SECONDS:
            await self._probe()
        elif self._age() >= EXCUSED_AGAIN_SECONDS:
            self._probe_soon()
        if lacking > self._excused:
            self._excused_at = _NEVER
            raise Unavailable(f"{lacking} Redis replicas that may become master do not have it yet")

    async def probe_others(self) -> None:
        """Probe all other servers, and close those that were master before. Raises Deposed."""
        if self._finder is not None:
            await self._probe()

    @property
    def others(self) -> frozenset[ServerAddress]:
        """All servers but the master, as found last."""
        return self._servers.others if self._servers is not None else frozenset()

    def other_master(self) -> Deposed | None:
        """Say whether another master was found since the last question; looks for one. For one that cannot write."""
        deposed, self._deposed = self._deposed, None
        if deposed is None and self._finder is not None:
            self._probe_soon()
        return deposed

    def _wanted(self) -> int:
        excused = self._excused if self._age() < EXCUSED_SECONDS else 0
        return max(self.required, len(self.others) - excused)

    def _age(self) -> float:
        return asyncio.get_running_loop().time() - self._excused_at

    def _probe_soon(self) -> None:
        is_recent = asyncio.get_running_loop().time() - self._found_at < EXCUSED_AGAIN_SECONDS
        if not is_recent and (self._probing is None or self._probing.done()):
            self._probing = asyncio.create_task(self._probe())
            self._probing.add_done_callback(self._note)

    def _note(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and isinstance(error := task.exception(), Deposed):
            self._deposed = error  # the next write learns it

    async def _probe(self) -> None:
        """Count the replicas that may lack a write. Raises Deposed."""
        if self._finder is None or self._servers is None:
            return
        master = self._servers.master
        found = await self._finder.find()
        if found.master != master:
            raise Deposed(f"the Redis master is {found.master} by now")
        self._servers, self._found_at = found, asyncio.get_running_loop().time()
        questions = [("ROLE",), ("GET", self._opening_key)]
        others = sorted(found.others)
        responses = await asyncio.gather(*(query(self._pool, other, questions) for other in others))
        excused = 0
        for other, response in zip(others, responses, strict=True):
            excused += found.is_settled if response is None else await self._is_excused(other, response, found)
        self._excused, self._excused_at = excused, asyncio.get_running_loop().time()

    async def _is_excused(self, other: ServerAddress, response: Sequence[Any], found: Servers) -> bool:
        role, opening = response
        if not is_master(role):
            state = cast("list[Any]", role)[3:4] if isinstance(role, list) else []
            return state != [b"connected"]
        number = opening_number(opening)
        if number == self.epoch and found.is_unanimous:
            return True
        if not 0 <= number < self.epoch:
            raise Deposed(f"the Redis at {other} is master too, and not an older one")
        closed = await query(self._pool, other, [_as_text(command) for command in self._retiring(self.epoch)])
        if other not in self._older:
            self._older.add(other)
            _log.warning("redis.older_master", address=str(other), closed=str(closed))
        return True


def _connected(role: Any) -> Replicas:
    """Replicas with a connection, of a master's response to ROLE."""
    return frozenset((replica[0], replica[1]) for replica in role[2])


def _as_text(command: Command) -> list[str | bytes]:
    return [part if isinstance(part, bytes) else str(part) for part in command]
