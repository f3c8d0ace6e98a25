"""Queries that concurrent callers share, with a result that is never older than their call."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class SharedQuery(Generic[Result]):
    """A query that runs once at a time: whoever calls meanwhile shares the one that begins after it."""

    def __init__(self, query: Callable[[], Awaitable[Result]]) -> None:
        self._query = query
        self._running: asyncio.Task[Result] | None = None
        self._next: asyncio.Task[Result] | None = None

    async def get(self) -> Result:
        """The result, as of now or later. Raises what the query raises."""
        if self._next is None:
            self._next = asyncio.create_task(self._query_after(self._running), name="shared query")
        return await asyncio.shield(self._next)

    async def _query_after(self, running: "asyncio.Task[Result] | None") -> Result:
        if running is not None:
            await asyncio.wait({running})
        self._running, self._next = self._next, None
        return await self._query()
