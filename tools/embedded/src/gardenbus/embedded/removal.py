"""Removal of a landscape's state: what an `up` wrote below its directory, and nothing else.

A directory that holds anything else, or was never a landscape's, is left as it is.
"""

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeInUse, writing
from gardenbus.embedded.leftovers import end_leftovers

MOST_NAMED = 3


class NotALandscape(Exception):
    """The directory is not one that `up` made, or holds what is not a landscape's."""


def remove_state(directory: LandscapeDirectory) -> bool:
    """Remove the state of a landscape that does not run, and its directory; False when there is none.

    What a killed supervisor left running is ended first. Raises NotALandscape, LandscapeInUse, DirectoryUnwritable;
    nothing is removed then, except that DirectoryUnwritable may come halfway.
    """
    directory.check_owner()
    if not directory.path.is_dir():
        return False
    entries = _own_entries(directory)
    if (pid := directory.supervisor()) is not None:
        raise LandscapeInUse(directory.path, pid)
    if not entries:
        return False
    lock = directory.lock()
    try:
        end_leftovers(directory)
        with writing(directory.path):
            for entry in entries:
                _remove(entry)
        with contextlib.suppress(OSError):  # a link to it, or somebody was quick to write
            directory.path.rmdir()
    finally:
        os.close(lock)
    return True


def _own_entries(directory: LandscapeDirectory) -> Sequence[Path]:
    """Everything in the directory, the lock last: removal that broke off can be repeated. Raises NotALandscape."""
    with writing(directory.path):
        entries = sorted(directory.path.iterdir())
    foreign = [entry.name for entry in entries if not directory.owns(entry)]
    if foreign:
        more = f" and {len(foreign) - MOST_NAMED} more" if len(foreign) > MOST_NAMED else ""
        named = ", ".join(foreign[:MOST_NAMED]) + more
        raise NotALandscape(f"{directory.path} holds {named}, which no `gardenbus up` made: nothing was removed")
    if entries and directory.lock_file not in entries:
        raise NotALandscape(f"{directory.path} was never the directory of a `gardenbus up`: nothing was removed")
    return sorted(entries, key=lambda entry: entry == directory.lock_file)


def _remove(entry: Path) -> None:
    if entry.is_dir() and not entry.is_symlink():
        shutil.rmtree(entry)
    else:
        entry.unlink(missing_ok=True)
