"""Plain forms of characters, for streams whose encoding lacks them: `...` for an ellipsis, `#` for a full block."""

import codecs
from io import TextIOWrapper
from typing import TextIO

PLAIN = {"…": "...", "─": "-", "━": "=", "█": "#", "░": ".", "→": "->", "•": "*", "“": '"', "”": '"'}
"""Substitutes of characters; any other is escaped, as Python does on stderr."""

_ERRORS = "gardenbus.plain"
"""Name of the error handler of codecs."""


def print_plainly(stream: TextIO) -> None:
    """Have a stream print what stands for the characters that its encoding does not have, instead of failing."""
    codecs.register_error(_ERRORS, _plain)
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors=_ERRORS)


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """An error handler, as `codecs.register_error` takes it. Pure."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    text = "".join(PLAIN.get(each) or each.encode("ascii", "backslashreplace").decode("ascii") for each in missing)
    return text, error.end
