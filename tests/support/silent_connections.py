"""A process whose connections request much and read nothing; its arguments: URL, file of credentials, seed.

A process of its own, as it would take the time of a test's event loop. It ends when it is terminated.
"""

import asyncio
import contextlib
import sys
from pathlib import Path
from typing import cast

import msgspec

from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.credentials import read_credentials
from gardenbus.common.adapters.nats.messages import publish_command
from gardenbus.common.adapters.nats.own_follower import BATCH
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import GardenbusError

CONNECTIONS = 50
TOGETHER = 20


class _SilentConnection(Connection):
    def stop_reading(self) -> None:
        """Read no more, until the next connection to the server."""
        writer = cast("asyncio.StreamWriter", getattr(self._transport, "_io_writer", None))
        cast("asyncio.Transport", writer.transport).pause_reading()


async def _request_without_reading(url: str, file: Path, seed: str) -> None:
    prefix = Principal("gardenlet", seed).inbox
    bindings = Subjects().bindings_of(seed)
    consumer = {"stream_name": "BINDINGS", "config": {"name": seed, "filter_subject": bindings}}
    requests = {
        f"IN.API.DIRECT.GET.BINDINGS.{Subjects().binding(seed, 'garden-dev', 'z0')}": b"",
        f"IN.API.DIRECT.GET.LEASES.{Subjects().lease(seed)}": b"",
        f"IN.API.CONSUMER.DELETE.BINDINGS.{seed}": b"",
        f"IN.API.CONSUMER.CREATE.BINDINGS.{seed}.{bindings}": msgspec.json.encode(consumer),
        f"IN.API.CONSUMER.MSG.NEXT.BINDINGS.{seed}": msgspec.json.encode({"batch": BATCH, "expires": 10**10}),
    }
    commands = [
        publish_command(subject, body, reply=f"{prefix}.silent.{each}")
        for each in range(TOGETHER)
        for subject, body in requests.items()
    ]
    while True:
        connection = _SilentConnection()
        try:
            async with asyncio.timeout(10):
                await connection.open(url, "silent", credentials=read_credentials(file, ""), on_reconnect=lambda: None)
                await connection.listen(f"{prefix}.silent.>", lambda _: None)
                await connection.flush_fully()
                connection.stop_reading()
                while True:
                    await connection.send(commands)
                    await asyncio.sleep(0.05)
        except (GardenbusError, OSError, TimeoutError):
            await asyncio.sleep(0.05)
        finally:
            with contextlib.suppress(GardenbusError, OSError):
                await connection.close()


async def _main(url: str, file: Path, seed: str) -> None:
    await asyncio.gather(*(_request_without_reading(url, file, seed) for _ in range(CONNECTIONS)))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], Path(sys.argv[2]), sys.argv[3]))
