"""The stream of changes as server-sent events, which resumes after an interruption."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine
from typing import NamedTuple

from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from gardenbus.common.ports.clock import Clock
from gardenbus.dashboard.web.acting import session_of
from gardenbus.dashboard.web.body_limit import RequestEntityTooLarge
from gardenbus.dashboard.web.change_feed import ChangeBatch, ChangeFeed, FeedListener
from gardenbus.dashboard.web.open_pages import OpenPages
from gardenbus.dashboard.web.sessions import Session

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),  # a buffering proxy would delay the changes
]


class StreamRules(NamedTuple):
    """Ends of a stream, and the count of those that are open."""

    pages: OpenPages
    projects: Collection[str]
    """Of those who see this part of the landscape."""
    until_rights_change: Callable[[str], Coroutine[object, object, None]]
    until_ended: Callable[[Session], Coroutine[object, object, None]]


class ChangeStream:
    """Serves `/api/changes`."""

    def __init__(self, changes: ChangeFeed, clock: Clock, rules: StreamRules) -> None:
        self._changes = changes
        self._clock = clock
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one browser until it leaves, does not read, its session or its rights end, or the process stops.

        Raises OverBudget, TooManyRequests.
        """
        request = Request(scope)
        with self._rules.pages.page(session_of(request).user, self._rules.projects):
            await self._serve(request, receive, send)

    async def _serve(self, request: Request, receive: Receive, send: Send) -> None:
        last = request.headers.get("last-event-id") or request.query_params.get("last") or ""
        listener = self._changes.listen(last)
        ends: set[asyncio.Task[object]] = {
            asyncio.create_task(self._send(listener, send), name="send changes"),
            asyncio.create_task(_until_disconnected(receive), name="browser gone"),
            asyncio.create_task(listener.cut.wait(), name="listener cut"),
        }
        session = session_of(request)
        if session.user:
            ends.add(asyncio.create_task(self._rules.until_rights_change(session.user), name="rights"))
            ends.add(asyncio.create_task(self._rules.until_ended(session), name="session ended"))
        if expires := session.expires:
            ends.add(asyncio.create_task(self._clock.sleep(expires - self._clock.now().timestamp()), name="session"))
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._changes.leave(listener)
            for task in ends:
                task.cancel()
            await asyncio.wait(ends)
        if listener.began:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.1):  # a browser that does not read will not read this either
                    await send(_part(b"", more=False))

    async def _send(self, listener: FeedListener, send: Send) -> None:
        listener.began = True
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        word = b"resumed" if listener.resumed else b"reload"
        hello = b'retry: 1000\nevent: hello\nid: %b-%d\ndata: {"start":"%b"}\n\n'
        number = listener.backlog[0].number - 1 if listener.backlog else self._changes.number
        await send(_part(hello % (self._changes.epoch.encode(), number, word)))
        async for batch in _batches_of(listener):
            await send(_part(framed(batch, self._changes.epoch)))


def framed(batch: ChangeBatch, epoch: str) -> bytes:
    """A batch as a server-sent event; JSON has no newlines in it."""
    place = b"id: %b-%d\n" % (epoch.encode(), batch.number) if batch.number else b""
    return b"event: %b\n%bdata: %b\n\n" % (batch.name.encode(), place, batch.body)


async def _batches_of(listener: FeedListener) -> AsyncGenerator[ChangeBatch]:
    for batch in listener.backlog:
        yield batch
    while True:
        yield await listener.batches.get()


async def _until_disconnected(receive: Receive) -> None:
    with contextlib.suppress(RequestEntityTooLarge):
        while (await receive())["type"] != "http.disconnect":
            pass


def _part(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": body, "more_body": more}
