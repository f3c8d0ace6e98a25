"""A Redis primary with two replicas and three Sentinels, as real processes on the loopback."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from redis import Redis
from redis.exceptions import RedisError

from tests.support.servers import Server, start_redis, start_sentinel

MASTER = "garden"


@dataclass
class RedisReplicas:
    """The servers; which of the three is the primary changes."""

    servers: Sequence[Server]
    sentinels: Sequence[Server]

    @property
    def url(self) -> str:
        """URL that names the Sentinels."""
        return f"redis+sentinel://{','.join(f'127.0.0.1:{each.port}' for each in self.sentinels)}/{MASTER}"

    @property
    def listed_url(self) -> str:
        """URL that names the servers."""
        return f"redis://{','.join(f'127.0.0.1:{each.port}' for each in self.servers)}/0"

    def primary(self) -> Server:
        """The server that the first Sentinel which answers calls the master."""
        for sentinel in self.sentinels:
            try:
                found: Any = requested(sentinel, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)
            except RedisError:
                continue
            return next(each for each in self.servers if each.port == int(found[1]))
        raise AssertionError("no Sentinel answers")

    def replicas(self) -> Sequence[Server]:
        """The other two."""
        primary = self.primary()
        return [each for each in self.servers if each is not primary]

    def are_complete(self) -> bool:
        """Whether the primary has two replicas, and each Sentinel knows all others."""
        primary = self.primary()
        if primary.process is None:
            return False
        role: Any = requested(primary, "ROLE")
        return role[0] == b"master" and len(role[2]) == 2 and all(self._knows_all(each) for each in self.sentinels)

    def _knows_all(self, sentinel: Server) -> bool:
        state = requested(sentinel, "SENTINEL", "MASTER", MASTER)
        counts = [int(state[state.index(name) + 1]) for name in (b"num-slaves", b"num-other-sentinels")]
        return counts == [2, 2]


def requested(server: Server, *command: str) -> Any:
    """Response of one server, of whatever role."""
    with Redis(port=server.port, socket_timeout=2, protocol=2) as client:
        client.response_callbacks.clear()
        return cast("Any", client).execute_command(*command)


def start_redis_replicas(
    stack: ExitStack,
    directory: Path,
    *,
    min_replicas: int = 1,
    appendfsync: str = "always",
    of_primary: Mapping[str, str] | None = None,
) -> RedisReplicas:
    """Start all six; the stack ends them. `of_primary` has settings that the first primary alone has."""
    more = {"min-replicas-to-write": str(min_replicas), "repl-diskless-sync-delay": "0", "repl-timeout": "5"}
    primary = start_redis(directory / "redis-0", appendfsync=appendfsync, more=more | dict(of_primary or {}))
    stack.callback(primary.kill)
    servers = [primary]
    for number in (1, 2):
        following = more | {"replicaof": f"127.0.0.1 {primary.port}"}
        servers.append(start_redis(directory / f"redis-{number}", appendfsync=appendfsync, more=following))
        stack.callback(servers[-1].kill)
    sentinels: list[Server] = []
    for number in range(3):
        sentinels.append(start_sentinel(directory / f"sentinel-{number}", MASTER, primary.port))
        stack.callback(sentinels[-1].kill)
    return RedisReplicas(servers, sentinels)
