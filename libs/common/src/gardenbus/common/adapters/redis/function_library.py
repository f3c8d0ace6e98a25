"""The text of our Redis Functions: the files of `functions/`, joined into one library that is named by its content.

The names of the library and of its functions carry a hash of the text, so that several versions stand on one server and
each process calls its own; what one name means never changes. Redis numbers the lines of what fails in a library;
`Library.place` turns such a number into the file and the line that a reader can open.

Lua takes 200 locals in one block. So each file is a block of its own, and what its lines `-- exports: a, b` name is
declared before it: the file assigns these, and all its other locals end with it.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Mapping
from importlib import resources
from typing import NamedTuple

FILES = (
    "keys.lua",
    "opening.lua",
    "outbox_entries.lua",
    "indexes.lua",
    "stored_amounts.lua",
    "requests.lua",
    "groups.lua",
    "usage.lua",
    "shoot_states.lua",
    "quotas.lua",
    "unschedulable.lua",
    "following.lua",
    "recovery.lua",
    "write_checks.lua",
    "objects.lua",
    "lists.lua",
    "unknown.lua",
    "recovering.lua",
    "binding.lua",
    "outbox.lua",
    "restoring.lua",
    "older_objects.lua",
    "stream_histories.lua",
    "backups.lua",
)
"""In the order of the text: each file may use what stands in those before it."""

NAME_PREFIX = "gardenbus_"
"""Prefix of every version's name; its hash follows."""

_HASH_DIGITS = 12
_EXPORTS = re.compile(r"^-- exports: (.+)$", re.MULTILINE)
_NUMBERED = re.compile(r"user_function:(\d+)")


class Library(NamedTuple):
    """A version of the library: its hash, its text, and where each file begins in it (the number of its first line)."""

    version: str
    source: str
    starts: tuple[int, ...]
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name in Redis."""
        return f"{NAME_PREFIX}{self.version}"

    def function(self, name: str) -> str:
        """Name in Redis of one of its functions."""
        return function_of(self.name, name)

    def place(self, line: int) -> str:
        """Position of a line of the text, as `<file>:<line>`."""
        number = bisect_right(self.starts, line) - 1
        return f"{self.files[number]}:{line - self.starts[number] + 1}" if number >= 0 else f"{self.name}:{line}"

    def with_positions(self, message: str) -> str:
        """Error message of Redis, with positions in our files for the library's line numbers."""
        return _NUMBERED.sub(lambda numbered: self.place(int(numbered[1])), message)


def function_of(library: str, name: str) -> str:
    """Name in Redis of a function of a version of the library."""
    return f"gb_{library.removeprefix(NAME_PREFIX)}_{name}"


def join_files(texts: Mapping[str, str]) -> Library:
    """Make a library of the texts of files, in their order."""
    text = "".join(f"{_opened(each)}{each}end\n" for each in texts.values())
    version = hashlib.sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
    header = f"#!lua name={NAME_PREFIX}{version}\nlocal LIBRARY = '{version}'\n"
    starts, line = list[int](), header.count("\n") + 1
    for each in texts.values():
        starts.append(line + _opened(each).count("\n"))
        line = starts[-1] + each.count("\n") + 1
    return Library(version, header + text, tuple(starts), tuple(texts))


def exports_of(text: str) -> list[str]:
    """The locals of a file that stand in the files after it."""
    return [name for line in _EXPORTS.findall(text) for name in line.split(", ")]


def _opened(text: str) -> str:
    """The lines before a file: its exports, and the begin of its block."""
    exports = exports_of(text)
    return (f"local {', '.join(exports)}\n" if exports else "") + "do\n"


def texts() -> Mapping[str, str]:
    """The texts of FILES."""
    directory = resources.files("gardenbus.common.adapters.redis").joinpath("functions")
    return {name: directory.joinpath(name).read_text(encoding="utf-8") for name in FILES}


LIBRARY = join_files(texts())
"""The version that this process calls."""
