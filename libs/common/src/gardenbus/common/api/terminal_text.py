"""Text that a terminal shows, and does not obey: characters that steer it or reorder a line are escaped. Pure.

Whoever may write an object may write any character into it. An escape sequence clears a screen, colours a line, sets
a title, or has the terminal type an answer; a carriage return covers what was printed; bidirectional controls show
words in another order than that in which they are read, and characters without width hide in names.
"""

import re

_STEERING = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1 (U+009B begins a sequence as ESC [ does)
    "\u00ad\u061c\u180e"  # a hyphen that is not seen, the Arabic letter mark, a vowel separator
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"  # without width; marks, line separators, embeddings, isolates
    "\ufff9-\ufffb"  # annotations
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # formats of scripts
    "\U000e0000-\U000e00ff"  # tags: a whole sentence that nobody sees
    "\ud800-\udfff"  # surrogates, which no encoding has
    "]"
)
"""Controls and format characters; joiners (U+200C, U+200D), which words and emoji are written with, are none."""

_STEERING_OR_NEW_CELL = re.compile(f"[\t\n{_STEERING.pattern[1:]}")
_LAST_OF_BASIC_PLANE = 0xFFFF
_SHORT = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def escaped(text: str) -> str:
    r"""The text with `\u001b` and the like in place of what steers a terminal; tabs and line feeds stay."""
    return text if text.isascii() and text.isprintable() else _STEERING.sub(_escape, text)


def escaped_cell(text: str) -> str:
    """The same in one line: tabs and line feeds are escaped too, as in a cell of a table."""
    return text if text.isascii() and text.isprintable() else _STEERING_OR_NEW_CELL.sub(_escape, text)


def escaped_json(text: str) -> str:
    """JSON whose strings mean the same, without what steers a terminal."""
    return text if text.isascii() and text.isprintable() else _STEERING.sub(_escape_in_json, text)


def steers(text: str) -> bool:
    """True where a text has to be escaped."""
    return not (text.isascii() and text.isprintable()) and _STEERING.search(text) is not None


def _escape(found: re.Match[str]) -> str:
    character = found.group()
    if ord(character) > _LAST_OF_BASIC_PLANE:
        return f"\\U{ord(character):08x}"
    return _SHORT.get(character) or f"\\u{ord(character):04x}"


def _escape_in_json(found: re.Match[str]) -> str:
    units = found.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True))
