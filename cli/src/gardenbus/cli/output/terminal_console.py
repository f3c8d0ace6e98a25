"""Console of rich for text that comes from outside: what it draws is its own, what it is given is escaped."""

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Span, Text

from gardenbus.common.api.terminal_text import escaped, steers


class TerminalConsole(Console):
    """A console of rich that escapes what it is given, and takes it literally: no markup, no names of emoji."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Convert a string to a Text, escaped: its width is measured on what is shown."""
        return super().render_str(escaped(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render an object, with each text in it escaped; only rich's own control codes pass."""
        if isinstance(renderable, Text) and steers(renderable.plain):
            renderable = _escaped_text(renderable)
        for segment in super().render(renderable, options):
            if segment.control or not steers(segment.text):
                yield segment
            else:
                yield Segment(escaped(segment.text), segment.style)


def _escaped_text(text: Text) -> Text:
    """A copy with the same styles on what stands for each character."""
    pieces = [escaped(character) for character in text.plain]
    starts = list(accumulate(map(len, pieces), initial=0))
    copy = text.blank_copy("".join(pieces))
    copy.spans = [Span(starts[span.start], starts[min(span.end, len(pieces))], span.style) for span in text.spans]
    return copy
