"""The text of our Redis Functions: the files of `functions/`, joined into one library.

Redis takes a library as one text, and numbers the lines of what fails in it; `place` turns such a number into the file
and the line that a reader can open.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from importlib import resources

LIBRARY_NAME = "gardenbus"

FILES = (
    "keys.lua",
    "fence.lua",
    "news.lua",
    "indexes.lua",
    "usage.lua",
    "waiting.lua",
    "following.lua",
    "refusals.lua",
    "objects.lua",
    "binding.lua",
    "outbox.lua",
    "restoring.lua",
)
"""In the order of the text: each file may use what stands in those before it."""

_HEADER = f"#!lua name={LIBRARY_NAME}\n"
_NUMBERED = re.compile(r"user_function:(\d+)")


def _texts() -> Sequence[str]:
    directory = resources.files("gardenbus.common.adapters").joinpath("functions")
    return [directory.joinpath(name).read_text(encoding="utf-8") for name in FILES]


def _starts(texts: Sequence[str]) -> Sequence[int]:
    """The number of each file's first line in the joined text, which counts from 1."""
    starts = [_HEADER.count("\n") + 1]
    for text in texts[:-1]:
        starts.append(starts[-1] + text.count("\n"))
    return starts


_TEXTS = _texts()
_STARTS = _starts(_TEXTS)

SOURCE = _HEADER + "".join(_TEXTS)
"""What Redis is given."""


def place(line: int) -> str:
    """Where a line of SOURCE stands, as `<file>:<line>`."""
    number = bisect_right(_STARTS, line) - 1
    return f"{FILES[number]}:{line - _STARTS[number] + 1}" if number >= 0 else f"{LIBRARY_NAME}:{line}"


def with_places(message: str) -> str:
    """What Redis says of a failed function, with the places of our files for the numbers of its lines."""
    return _NUMBERED.sub(lambda numbered: place(int(numbered[1])), message)
