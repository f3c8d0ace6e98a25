"""The screen of `up`: a live picture on a terminal, else one line every two seconds while something changes."""

import time
from collections import deque
from collections.abc import Sequence

from rich.live import Live
from rich.text import Text

from gardenbus.cli.client.summaries import ShootSummary
from gardenbus.cli.output.console import console, is_animated, show, show_lines
from gardenbus.cli.output.terminal import flush
from gardenbus.embedded.picture import Scene, TerminalSize, picture, status_line, unplaced_lines, unplaced_table

LINE_SECONDS = 2.0
MESSAGE_LINES = 4


class Screen:
    """Shows scenes and what happens. Close it before printing anything else."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.messages: deque[str] = deque(maxlen=MESSAGE_LINES)
        self._live: Live | None = None
        self._last_line = ""
        self._drawn_at = 0.0
        if is_animated(console):
            self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
            self._live.start()

    @property
    def is_live(self) -> bool:
        """True for a picture on a terminal, which shows the time that passes."""
        return self._live is not None

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.began

    def notify(self, text: str) -> None:
        """Show something that happened."""
        self.messages.append(f"{self.age:6.1f} s  {text}")
        if self._live is None:
            self._print(text)

    def draw(self, scene: Scene) -> None:
        """Show how things stand."""
        if self._live is not None:
            size = TerminalSize(console.width, console.height)
            self._live.update(picture(scene._replace(messages=list(self.messages)), size), refresh=True)
            return
        line = status_line(scene)
        if line != self._last_line and time.monotonic() - self._drawn_at >= LINE_SECONDS:
            self._last_line, self._drawn_at = line, time.monotonic()
            self._print(line)

    def show_if_not_live(self, shoots: Sequence[ShootSummary]) -> None:
        """Print the shoots without a seed where no live picture shows them."""
        if self._live is None:
            self.show_unplaced(shoots)

    def show_unplaced(self, shoots: Sequence[ShootSummary]) -> None:
        """Print the shoots without a seed and why: a table, or lines where there is no terminal."""
        if not console.is_terminal:
            show_lines(unplaced_lines(shoots))
        elif table := unplaced_table(shoots):
            show(table)

    def close(self) -> None:
        """Leave the last picture as it is; later lines are printed below."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _print(self, text: str) -> None:
        line = Text(f"{self.age:6.1f} s  ", style="dim")
        line.append(text, style="not dim")
        console.print(line, soft_wrap=True)
        flush()
