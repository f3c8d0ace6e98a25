"""A tracer that remembers what was begun below what, and how it ended."""

import itertools
from collections.abc import Generator
from contextlib import contextmanager
from datetime import datetime

from gardenbus.common.ports import tracing

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
FROM_A_CLIENT = f"00-{TRACE_ID}-00f067aa0ba902b7-01"


class RecordedSpan:
    """One span; its ends are counted."""

    def __init__(
        self, name: str, parent: str, number: int, at: datetime | None, attributes: tracing.Attributes
    ) -> None:
        self.name = name
        self.parent = parent
        self.at = at
        self.attributes = dict(attributes)
        self.failed = ""
        self.ends = 0
        trace_id = parent[3:35] if parent else f"{number:032x}"
        self.traceparent = f"00-{trace_id}-{number:016x}-01"

    def end(self, *, failed: str = "", **attributes: str | int) -> None:
        """The first end counts."""
        self.ends += 1
        if self.ends == 1:
            self.failed = failed
            self.attributes |= attributes


class Recorder:
    """Remembers all spans."""

    def __init__(self) -> None:
        self.spans: list[RecordedSpan] = []
        self._numbers = itertools.count(1)

    def begin(self, name: str, parent: str, at: datetime | None, attributes: tracing.Attributes) -> RecordedSpan:
        """See `ports.tracing.Tracer`."""
        span = RecordedSpan(name, parent, next(self._numbers), at, attributes)
        self.spans.append(span)
        return span

    def named(self, name: str) -> RecordedSpan:
        """The one span of a name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def names(self) -> list[str]:
        """What was begun, in order."""
        return [span.name for span in self.spans]

    def open(self) -> list[str]:
        """What was begun and has not ended."""
        return [span.name for span in self.spans if not span.ends]

    def parent_of(self, span: RecordedSpan) -> str:
        """The name of the span above; the traceparent itself where that is none of ours."""
        return next((each.name for each in self.spans if each.traceparent == span.parent), span.parent)


@contextmanager
def recorded() -> Generator[Recorder]:
    """Record spans for a while."""
    recorder = Recorder()
    tracing.install(recorder)
    try:
        yield recorder
    finally:
        tracing.install(None)
