"""Traces: which work belongs to which request, across services (W3C trace context).

Nothing is recorded unless a tracer is installed. Until then what came with a trace passes it on as it came, so that log
lines tell it and the next service may record; and to what came with none every function here answers at once. What is
going on in a task (`within`) is known to what it calls, as its writes to the store carry it; between services it is the
header `traceparent` that does.
"""

import re
from collections.abc import Awaitable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Protocol, TypeVar

TRACEPARENT = "traceparent"
"""The header of the W3C's recommendation "Trace Context": `<version>-<trace id>-<span id>-<flags>`."""

_WELL_FORMED = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_TRACE_ID = slice(3, 35)
_SPAN_ID = slice(36, 52)

Waited = TypeVar("Waited")
Attributes = Mapping[str, str | int]


class Span(Protocol):
    """One piece of work in a trace."""

    @property
    def traceparent(self) -> str:
        """What those who go on with the work take as their parent; "" when nothing is traced."""
        ...

    def end(self, *, failed: str = "", **attributes: str | int) -> None:
        """It is over, with what came of it; `failed` says why, where it did not succeed. The first end counts."""
        ...


class Tracer(Protocol):
    """Records spans."""

    def begin(self, name: str, parent: str, at: datetime | None, attributes: Attributes) -> Span:
        """Begin a span (at an instant that has passed, or now) below a parent, or ("") as the first of its trace."""
        ...


class _NotTraced:
    """The span of what is not traced."""

    traceparent = ""

    def end(self, *, failed: str = "", **attributes: str | int) -> None:
        """Nothing was begun."""


class _PassedOn:
    """The span of what came with a trace where nothing is recorded: what follows has the same parent."""

    __slots__ = ("traceparent",)

    def __init__(self, traceparent: str) -> None:
        self.traceparent = traceparent

    def end(self, *, failed: str = "", **attributes: str | int) -> None:
        """Nothing was begun."""


NOT_TRACED: Span = _NotTraced()
"""Compare with `is`: what is not traced shall cost no more."""

_current: ContextVar[str] = ContextVar("traceparent", default="")
_installed: list[Tracer] = []


def install(tracer: Tracer | None) -> None:
    """Record spans from now on; None: no more."""
    _installed[:] = [tracer] if tracer is not None else []


def is_on() -> bool:
    """Whether anything is recorded."""
    return bool(_installed)


def received(headers: Mapping[str, str]) -> str:
    """The traceparent that a message came with; "" when there is none, or one that is not well-formed."""
    given = headers.get(TRACEPARENT)
    return given if given and _WELL_FORMED.fullmatch(given) else ""


def begin(
    name: str,
    parent: str | None,
    *,
    at: datetime | None = None,
    is_first: bool = False,
    attributes: Attributes = {},
) -> Span:
    """Begin a span below a parent. Without one nothing is traced, unless it may be the first of a trace.

    Where nothing is recorded the answer is the parent itself, to be passed on.
    """
    if not _installed:
        return _PassedOn(parent) if parent else NOT_TRACED
    if not (parent or is_first):
        return NOT_TRACED
    return _installed[0].begin(name, parent or "", at, attributes)


def current() -> str:
    """The traceparent of what is going on in this task; "" when that is not traced."""
    return _current.get()


@contextmanager
def within(traceparent: str) -> Generator[None, None, None]:
    """What is done inside belongs to a span."""
    token = _current.set(traceparent)
    try:
        yield
    finally:
        _current.reset(token)


async def traced(
    awaited: Awaitable[Waited],
    name: str,
    parent: str | None,
    *,
    is_first: bool = False,
    attributes: Attributes = {},
) -> Waited:
    """Await something as a span of its own."""
    span = begin(name, parent, is_first=is_first, attributes=attributes)
    try:
        with within(span.traceparent):
            answer = await awaited
    except BaseException as error:
        span.end(failed=str(error) or type(error).__name__)
        raise
    span.end()
    return answer


def fields(traceparent: str) -> Mapping[str, str]:
    """What log lines say of a traceparent: `trace_id` and `span_id`; nothing when nothing is traced."""
    if not traceparent:
        return {}
    return {"trace_id": traceparent[_TRACE_ID], "span_id": traceparent[_SPAN_ID]}
