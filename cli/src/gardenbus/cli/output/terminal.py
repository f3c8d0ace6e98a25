"""The one place that writes to a terminal: whatever text comes from outside, no character of it steers the terminal.

Text for people is escaped, also on its way into a pipe. Documents for programs (JSON, YAML, a template's text) stay as
they are stored, except where it is a terminal that reads them. `protect_streams` has all others (typer's usage errors,
tracebacks, warnings, plug-ins) write through the same. What rich draws goes through `terminal_console`.
"""

import sys
from collections.abc import Iterable
from typing import Any, TextIO, cast

from gardenbus.common.api.terminal_text import escaped, escaped_json


def write(text: str) -> None:
    """Write text for people to stdout."""
    sys.stdout.write(escaped(text))


def write_document(text: str, *, is_json: bool = False) -> None:
    """Write text for programs to stdout: as it is, unless people read it at a terminal."""
    if not sys.stdout.isatty():
        _raw(sys.stdout).write(text)
    else:
        sys.stdout.write(escaped_json(text) if is_json else escaped(text))


def write_error(text: str) -> None:
    """Write text to stderr."""
    sys.stderr.write(escaped(text))


def write_painted(text: str) -> None:
    """Write text to stdout whose parts were escaped before they were coloured."""
    _raw(sys.stdout).write(text)


def flush() -> None:
    """Have written what is buffered."""
    sys.stdout.flush()


class ProtectedStream:
    """A text stream in front of another that escapes all text; rich finds the one behind it, and escapes itself."""

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write text, escaped; returns the length of what was given."""
        self.rich_proxied_file.write(escaped(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """All else is of the stream behind it."""
        return getattr(self.rich_proxied_file, name)


def protect_streams() -> None:
    """Put a `ProtectedStream` in front of stdout and stderr, for the rest of the process."""
    sys.stdout, sys.stderr = (cast("TextIO", ProtectedStream(_raw(stream))) for stream in (sys.stdout, sys.stderr))


def _raw(stream: TextIO) -> TextIO:
    return stream.rich_proxied_file if isinstance(stream, ProtectedStream) else stream
