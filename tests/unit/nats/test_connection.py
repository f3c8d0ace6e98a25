"""A connection that is cancelled while it opens does not open, though the client swallows that."""

import asyncio
import contextlib
from typing import Any

import pytest
from nats.aio.client import Client

from gardenbus.common.adapters.nats.connection import Connection
from tests.support.eventually import HANG_SECONDS


async def _swallowing(_client: Client, *_servers: Any, **_options: Any) -> None:
    """What Python 3.11's wait_for does when what it waits for has come in the same moment."""
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(60)


async def test_the_group_that_it_opens_in_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Client, "connect", _swallowing)
    monkeypatch.setattr(Connection, "until_connected", _swallowing)

    async def agent() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(asyncio.sleep(3600))
            await Connection().open("nats://127.0.0.1:4222", "agent", on_reconnect=lambda: None)

    task = asyncio.create_task(agent())
    await asyncio.sleep(0.01)
    task.cancel()
    ended, _ = await asyncio.wait((task,), timeout=HANG_SECONDS)
    assert ended
    assert task.cancelled()


async def test_one_that_was_cancelled_before_may_open(monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing_once(connection: Client, *_servers: Any, **_options: Any) -> None:
        await connection._error_cb(ConnectionRefusedError())  # pyright: ignore[reportPrivateUsage]

    async def opened(connection: Connection) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        monkeypatch.setattr(connection, "_error_cb", connection._log_error)  # pyright: ignore[reportPrivateUsage]
        await connection.open("nats://127.0.0.1:4222", "agent", on_reconnect=lambda: None)

    async def subscribed(*_arguments: Any, **_options: Any) -> None: ...

    monkeypatch.setattr(Client, "connect", failing_once)
    monkeypatch.setattr(Connection, "until_connected", subscribed)
    monkeypatch.setattr(Connection, "subscribe", subscribed)
    task = asyncio.create_task(opened(Connection()))
    await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.wait_for(task, HANG_SECONDS)
