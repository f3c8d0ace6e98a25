"""Network between actors and servers: every call is a request in flight until the schedule delivers it.

Two choice points a call: when the server carries it out, and when its response arrives. With faults, a request or its
response is lost (the caller is told Unavailable, and the outcome is unknown to it), a request arrives after its caller
has given it up, and one that may be repeated arrives twice. Requests overtake each other.
"""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, cast

from gardenbus.common.errors import Unavailable
from tests.simulation.actor import Actor

LOST, RESPONSE_LOST, LATE, TWICE = 0.012, 0.012, 0.012, 0.02
"""Probabilities of the faults of a request, where faults are on."""

SLOW_RESPONSE = 0.35
"""Probability that other things happen between a server's work and its response."""


class Request:
    """A call in flight, or (with a result) its response."""

    __slots__ = ("actor", "future", "is_repeatable", "label", "outcome", "server", "work")

    def __init__(
        self, actor: Actor, server: str, label: str, work: Callable[[], Any], *, is_repeatable: bool = False
    ) -> None:
        self.actor, self.server, self.label, self.work = actor, server, label, work
        self.is_repeatable = is_repeatable
        self.future: asyncio.Future[Any] | None = None
        self.outcome: tuple[Any, BaseException | None] | None = None

    def finish(self, result: Any, error: BaseException | None) -> None:
        """Wake the caller, if it still waits."""
        if self.future is None or self.future.done():
            return
        if error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)


class Network:
    """See the module."""

    def __init__(self, random: Random, loop: asyncio.AbstractEventLoop) -> None:
        self._random = random
        self._loop = loop
        self.in_flight: list[Request] = []
        self.has_faults = True
        self.after_work: Callable[[Request], None] = lambda _request: None

    async def call(
        self, actor: Actor, server: str, label: str, work: Callable[[], Any], *, is_repeatable: bool = False
    ) -> Any:
        """Have a server do something, and return the result."""
        request = self.post(actor, server, label, work, is_repeatable=is_repeatable)
        request.future = self._loop.create_future()
        return await request.future

    def post(
        self, actor: Actor, server: str, label: str, work: Callable[[], Any], *, is_repeatable: bool = False
    ) -> Request:
        """Have a server do something, and wait for nothing."""
        if not actor.is_alive:
            raise asyncio.CancelledError
        request = Request(actor, server, label, work, is_repeatable=is_repeatable)
        self.in_flight.append(request)
        return request

    def deliver(self) -> Request:
        """Let one of the requests and responses in flight arrive."""
        in_flight = self.in_flight
        index = self._random.randrange(len(in_flight))
        request = in_flight[index]
        last = in_flight.pop()
        if request is not last:
            in_flight[index] = last
        if request.outcome is not None:
            request.finish(*request.outcome)
        else:
            self._arrive(request)
        return request

    def _arrive(self, request: Request) -> None:
        draw = self._random.random() if self.has_faults else 1.0
        if draw < LOST:
            request.finish(None, Unavailable("the request was lost"))
            return
        if draw < LOST + LATE and request.future is not None:
            request.finish(None, Unavailable("the server did not respond in time"))
            request.future = None
            self.in_flight.append(request)
            return
        result, error = self._work(request)
        if draw < LOST + LATE + RESPONSE_LOST:
            request.finish(None, Unavailable("the response was lost"))
            return
        if request.is_repeatable and draw < LOST + LATE + RESPONSE_LOST + TWICE:
            self.in_flight.append(Request(request.actor, request.server, request.label + " (again)", request.work))
        if request.future is not None and self._random.random() < SLOW_RESPONSE:
            request.outcome = (result, error)
            self.in_flight.append(request)
        else:
            request.finish(result, error)

    def _work(self, request: Request) -> tuple[Any, BaseException | None]:
        try:
            result = at_once(request.work())
        except Exception as error:  # noqa: BLE001 - whatever the server raises is its response
            self.after_work(request)
            return None, error
        self.after_work(request)
        return result, None

    def drop(self, server: str) -> None:
        """A server restarts: what was in flight to it is lost."""
        kept: list[Request] = []
        dropped: list[Request] = []
        for request in self.in_flight:
            (dropped if request.server == server else kept).append(request)
        self.in_flight[:] = kept
        for request in dropped:
            request.finish(None, Unavailable("the connection was lost"))

    def abandon(self, actor: Actor) -> None:
        """An actor has died: its requests may still arrive, nobody waits for the responses."""
        kept: list[Request] = []
        for request in self.in_flight:
            if request.actor is actor:
                request.future = None
                if request.outcome is not None or self._random.random() < 0.5:
                    continue
            kept.append(request)
        self.in_flight[:] = kept


def at_once(work: Any) -> Any:
    """The result of a coroutine of a twin, which never waits; anything else as it is."""
    if not isinstance(work, Coroutine):
        return work
    coroutine = cast("Coroutine[Any, Any, Any]", work)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a twin waits in the middle of a call")
