"""Distributed tracing (W3C trace context).

Nothing is recorded unless a tracer is installed. Until then a received trace context is passed on unchanged, so that
log lines carry it and the next service may record; without one every function here returns at once. `within` sets the
context of a task, which its writes to the store carry; between services it is the header `traceparent`.
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

Result = TypeVar("Result")
Attributes = Mapping[str, str | int]


class Span(Protocol):
    """A unit of work in a trace."""

    @property
    def traceparent(self) -> str:
        """Parent for spans that follow; "" when nothing is traced."""
        ...

    def end(self, *, failed: str = "", **attributes: str | int) -> None:
        """End the span with attributes; `failed` is the error message, if any. Only the first end counts."""
        ...


class Tracer(Protocol):
    """Records spans."""

    def begin(self, name: str, parent: str, at: datetime | None, attributes: Attributes) -> Span:
        """Begin a span (at an instant that has passed, or now) below a parent, or ("") as the first of its trace."""
        ...


class _NotTraced:
    """Span without a trace context."""

    traceparent = ""

    def end(self, *, failed: str = "", **attributes: str | int) -> None:
        """Do nothing: no span was begun."""


class _PassedOn:
    """Span of a received trace context where nothing is recorded: passes on its parent."""

    __slots__ = ("traceparent",)

    def __init__(self, traceparent: str) -> None:
        self.traceparent = traceparent

    def end(self, *, failed: str = "", **attributes: str | int) -> None:
        """Do nothing: no span was begun."""


NOT_TRACED: Span = _NotTraced()
"""Compare with `is`, so that untraced work costs nothing."""

_current: ContextVar[str] = ContextVar("traceparent", default="")
_installed: list[Tracer] = []


def install(tracer: Tracer | None) -> None:
    """Install a tracer; None removes it."""
    _installed[:] = [tracer] if tracer is not None else []


def is_on() -> bool:
    """True when a tracer is installed."""
    return bool(_installed)


def received(headers: Mapping[str, str]) -> str:
    """Traceparent of received headers; "" without one, or when it is malformed."""
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
    """Begin a span below a parent. Without a parent nothing is traced, unless `is_first` starts a trace.

    Without a tracer the span passes on the parent itself.
    """
    if not _installed:
        return _PassedOn(parent) if parent else NOT_TRACED
    if not (parent or is_first):
        return NOT_TRACED
    return _installed[0].begin(name, parent or "", at, attributes)


def current() -> str:
    """Traceparent of the current task; "" when it is not traced."""
    return _current.get()


@contextmanager
def within(traceparent: str) -> Generator[None, None, None]:
    """Run the block in the context of a span."""
    token = _current.set(traceparent)
    try:
        yield
    finally:
        _current.reset(token)


async def traced(
    awaited: Awaitable[Result],
    name: str,
    parent: str | None,
    *,
    is_first: bool = False,
    attributes: Attributes = {},
) -> Result:
    """Await in a span of its own."""
    span = begin(name, parent, is_first=is_first, attributes=attributes)
    try:
        with within(span.traceparent):
            result = await awaited
    except BaseException as error:
        span.end(failed=str(error) or type(error).__name__)
        raise
    span.end()
    return result


def fields(traceparent: str) -> Mapping[str, str]:
    """Log fields of a traceparent: `trace_id` and `span_id`; empty when nothing is traced."""
    if not traceparent:
        return {}
    return {"trace_id": traceparent[_TRACE_ID], "span_id": traceparent[_SPAN_ID]}
