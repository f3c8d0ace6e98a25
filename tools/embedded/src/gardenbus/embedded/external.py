"""Servers that `up` uses but does not start: checks of their addresses and of their reachability."""

import asyncio
import os
from urllib.parse import unquote, urlsplit

from gardenbus.cli.client.reachability import check_reachable
from gardenbus.common.adapters.addresses import without_password, without_user
from gardenbus.common.adapters.redis.addresses import parse_redis_url
from gardenbus.common.errors import Unavailable

PROBE_SECONDS = 3.0
NATS_PORT = 4222
REDIS_PORT = 6379


async def probe_servers(nats_url: str | None, redis_url: str | None) -> None:
    """Raise Unavailable, naming the server, when one of those given is unreachable; of several one is enough."""
    if nats_url is not None:
        await check_reachable(nats_url)
        addresses = [address if "://" in address else f"nats://{address}" for address in nats_url.split(",")]
        troubles = await asyncio.gather(*(_trouble(address, NATS_PORT, b"") for address in addresses))
        if all(troubles):
            raise Unavailable(f"no NATS at {without_user(nats_url)}: {troubles[0]}")
    if redis_url is not None:
        found = parse_redis_url(redis_url)
        several = [f"{urlsplit(found.url).scheme}://{each}" for each in (*found.servers, *found.sentinels)]
        troubles = await asyncio.gather(*(_trouble(url, REDIS_PORT, b"PING\r\n") for url in several or [redis_url]))
        if all(troubles):
            raise Unavailable(f"no Redis at {without_password(redis_url)}: {troubles[0]}")


async def _trouble(url: str, default_port: int, hello: bytes) -> str:
    """Reason why a server is unreachable, or "". A plain server must respond; an encrypted one must accept."""
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            if parts.scheme == "unix":
                reader, writer = await asyncio.open_unix_connection(unquote(parts.path))
            else:
                reader, writer = await asyncio.open_connection(parts.hostname, parts.port or default_port)
            try:
                if parts.scheme in ("nats", "redis", "unix"):
                    writer.write(hello)
                    return "" if await reader.readline() else "it closes the connection"
            finally:
                writer.close()
    except TimeoutError:
        return f"no response within {PROBE_SECONDS:g} s"
    except OSError as error:
        return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
    return ""
