"""Writes that have to be on replicas: those of one turn of the loop leave as one request, with `WAIT` behind them.

So a write costs one round trip. `WAIT` is about the connection on which it comes: one request never spans two. `PING`
stands behind it, for no replica has a write before the master has tried to extend its file (connection.py).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from gardenbus.common.adapters.redis.multiplexed_connection import Command
from gardenbus.common.errors import Unavailable

Execute = Callable[[Sequence[Command]], Awaitable[list[Any]]]


class Written(NamedTuple):
    """Responses to commands, errors among them, and what hinders them from counting (None: they count)."""

    replies: Sequence[Any]
    problem: Unavailable | None


class _PendingWrite(NamedTuple):
    """Commands, and the future of what became of them."""

    commands: Sequence[Command]
    future: "asyncio.Future[Written]"


class ReplicatedWrites:
    """See the module. `execute` sends a request, `following` are the commands behind it, `accept` takes replies."""

    def __init__(
        self,
        execute: Execute,
        following: Callable[[], Sequence[Command]],
        accept: Callable[[Sequence[Any]], Awaitable[None]],
    ) -> None:
        self._execute = execute
        self._following = following
        self._accept = accept
        self._pending: list[_PendingWrite] = []
        self._sending: set[asyncio.Task[None]] = set()

    async def write(self, commands: Sequence[Command]) -> Written:
        """Send commands with the others of this turn. Raises Unavailable where nothing is known of them."""
        future: asyncio.Future[Written] = asyncio.get_running_loop().create_future()
        self._pending.append(_PendingWrite(commands, future))
        if len(self._pending) == 1:
            sending = asyncio.create_task(self._send())
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)
        return await future

    async def _send(self) -> None:
        pending, self._pending = [each for each in self._pending if not each.future.done()], []
        if not pending:
            return
        commands = [command for each in pending for command in each.commands]
        try:
            replies = await self._execute([*commands, *self._following()])
            problem = await self._problem(replies[len(commands) :])
        except Exception as error:  # noqa: BLE001 - it belongs to those who wait, whose tasks would end as if cancelled
            for each in pending:
                _fail(each.future, error)
            return
        except asyncio.CancelledError:
            for each in pending:
                each.future.cancel()
            raise
        start = 0
        for each in pending:
            end = start + len(each.commands)
            if not each.future.done():
                each.future.set_result(Written(replies[start:end], problem))
            start = end

    async def _problem(self, replies: Sequence[Any]) -> Unavailable | None:
        try:
            await self._accept(replies)
        except Unavailable as error:
            return error
        return None


def _fail(future: "asyncio.Future[Written]", error: Exception) -> None:
    """Each caller gets an Unavailable of its own: they raise it at different places."""
    if not future.done():
        future.set_exception(Unavailable(error.message) if isinstance(error, Unavailable) else error)
        future.exception()  # nobody is blamed for not waiting any more
