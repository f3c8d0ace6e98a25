"""Owners of directories that hold keys: where somebody else could have put something, nothing is read or written.

Whoever owns a directory can plant credentials that he knows, and links to what he cannot write himself. Root is
trusted by everybody. For root itself the directories above count too: their owner can put another in the place of one.
"""

import os
import pwd
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = 0


class ForeignPath(NamedTuple):
    """Something that belongs to somebody else."""

    path: Path
    owner: str

    def __str__(self) -> str:
        """For people: what is wrong, and what to do."""
        return (
            f"{self.path} belongs to {self.owner}: what is in it could be planted. Choose a directory of your own, or"
            f" run this as {self.owner}"
        )


def foreign_path(directory: Path, entries: Iterable[Path] = ()) -> ForeignPath | None:
    """The first that is somebody else's of a directory, the way to it, and all at and below these entries of it."""
    user = os.geteuid()
    for path in (*_way_to(directory, is_whole=user == ROOT), *_below(entries)):
        try:
            owner = path.lstat().st_uid
        except FileNotFoundError:
            continue
        if owner not in (user, ROOT):
            return ForeignPath(path, _name_of(owner))
    return None


def _way_to(directory: Path, *, is_whole: bool) -> Iterator[Path]:
    """A directory as it is named and as it is, and with `is_whole` all above either, from the top."""
    named = directory.absolute()
    for path in dict.fromkeys((named, named.resolve())):
        if is_whole:
            yield from reversed(path.parents)
        yield path


def _below(entries: Iterable[Path]) -> Iterator[Path]:
    for entry in entries:
        yield entry
        if entry.is_symlink():
            yield entry.resolve()
        for parent, folders, files in os.walk(entry):
            yield from (Path(parent, name) for name in (*folders, *files))


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
