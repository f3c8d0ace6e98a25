"""A replica of a service as a process of its own, to be killed in the middle of its work."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from tests.support.servers import Server


@asynccontextmanager
async def a_replica(
    service: str, nats: Server, redis: Server, **settings: str
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Run `gardenbus.<service>` on two servers; what is left of it at the end is killed.

    `settings` are variables of its environment, as `GARDENBUS_PREFIX`.
    """
    environ = {
        **os.environ,
        "GARDENBUS_NATS_URL": nats.url,
        "GARDENBUS_REDIS_URL": redis.url,
        "GARDENBUS_HEALTH_PORT": "0",
        "GARDENBUS_HEALTH_HOST": "127.0.0.1",
        "GARDENBUS_LOG_LEVEL": "error",
        **settings,
    }
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", f"gardenbus.{service}", env=environ)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
