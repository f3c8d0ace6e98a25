"""Network between actors and servers: every call is a request in flight until the schedule delivers it.

Two choice points a call: when the server carries it out, and when its response arrives. With faults, a request or its
response is lost (the caller is told Unavailable, and the outcome is unknown to it), a request arrives after its caller
has given it up, and one that may be repeated arrives twice. Requests overtake each other.
"""

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from types import CoroutineType
from typing import Any, cast

from gardenbus.common.errors import Unavailable
from tests.simulation.actor import Actor

KINDS = ("lost", "late", "response lost", "twice")
RATES = (0.01, 0.02, 0.05)
"""Faults of a request, and with which probability each kind of them happens where it does."""

SLOW_RESPONSE = 0.35
"""Probability that other things happen between a server's work and its response."""


RANKED, UNRANKED, RANK_CHANGES = 0.5, 0.3, 0.03
"""Probabilities: a schedule has fast and slow actors; there, any request comes next all the same; the fastest becomes
the slowest. (Burckhardt et al., A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs, ASPLOS 2010.)"""


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
        self._kinds: list[str] = []
        self._rate = 0.0
        self._ranks: dict[str, float] | None = None
        self.after_work: Callable[[Request], None] = lambda _request: None

    # ------------------------------------------------------------------------------------------ choosing

    def begin(self, *, has_faults: bool) -> None:
        """A schedule begins: draw which of the faults it has, and whether some actors are faster than others."""
        random = self._random
        self._kinds = random.sample(KINDS, random.randint(1, len(KINDS))) if has_faults else []
        self._rate = random.choice(RATES)
        self._ranks = {} if random.random() < RANKED else None

    def end(self) -> None:
        """Nothing bad happens any more, and all are equally fast."""
        self._kinds, self._ranks = [], None

    def _chosen(self) -> int:
        """Which request comes next: any, or one of the actor with the highest rank, which changes now and then."""
        in_flight, random, ranks = self.in_flight, self._random, self._ranks
        if ranks is None or random.random() < UNRANKED:
            return random.randrange(len(in_flight))
        names = {request.actor.name: None for request in in_flight}
        for name in names:
            if name not in ranks:
                ranks[name] = random.random()
        fastest = max(names, key=ranks.__getitem__)
        if random.random() < RANK_CHANGES:
            ranks[fastest] = random.random() - 1.0
        return next(index for index, request in enumerate(in_flight) if request.actor.name == fastest)

    # ------------------------------------------------------------------------------------------ carrying out

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
        index = self._chosen()
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
        fault = self._fault()
        if fault == "lost":
            request.finish(None, Unavailable("the request was lost"))
            return
        if fault == "late" and request.future is not None:
            request.finish(None, Unavailable("the server did not respond in time"))
            request.future = None
            self.in_flight.append(request)
            return
        result, error = self._work(request)
        if fault == "response lost":
            request.finish(None, Unavailable("the response was lost"))
            return
        if fault == "twice" and request.is_repeatable:
            self.in_flight.append(Request(request.actor, request.server, request.label + " (again)", request.work))
        if request.future is not None and self._random.random() < SLOW_RESPONSE:
            request.outcome = (result, error)
            self.in_flight.append(request)
        else:
            request.finish(result, error)

    def _fault(self) -> str:
        draw = self._random.random()
        return self._kinds[int(draw / self._rate)] if draw < self._rate * len(self._kinds) else ""

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
    if type(work) is not CoroutineType:  # much cheaper than to ask for the abstract class
        return work
    coroutine = cast("Coroutine[Any, Any, Any]", work)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("a twin waits in the middle of a call")
