"""Files of local backends, for their owner alone: replaced by renaming, and locked while their owner lives."""

import fcntl
import os
from pathlib import Path

from gardenbus.common.errors import BadRequest

DIRECTORY_MODE, FILE_MODE = 0o700, 0o600


def path_inside(directory: Path, *names: str) -> Path:
    """The path of names below a directory. Raises BadRequest for a name that leads elsewhere."""
    for name in names:
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise BadRequest(f"{name[:80]!r} is no name of a file")
    return directory.joinpath(*names)


def make_directory(directory: Path) -> None:
    """Make a directory and those above it that are missing; one that is there stays as it is."""
    if not directory.is_dir():
        make_directory(directory.parent)
        directory.mkdir(mode=DIRECTORY_MODE, exist_ok=True)


def write_draft(file: Path, content: bytes) -> Path:
    """Write a hidden file that becomes `file` by renaming."""
    draft = _draft_of(file)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(content)
    return draft


def replace_file(file: Path, content: bytes) -> None:
    """Write a file: after a crash either its old or its new content is there."""
    write_draft(file, content).replace(file)


def remove_file(file: Path) -> None:
    """Remove a file with its draft, and its directory when that is empty."""
    file.unlink(missing_ok=True)
    _draft_of(file).unlink(missing_ok=True)
    remove_if_empty(file.parent)


def remove_if_empty(directory: Path) -> None:
    """Remove an empty directory; anything else stays."""
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()


def open_lock(file: Path) -> int:
    """Open a lock file; returns its descriptor."""
    return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)


def try_lock(file: Path) -> int | None:
    """Open a file and lock it exclusively; returns its descriptor, None while another process holds the lock."""
    descriptor = open_lock(file)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _draft_of(file: Path) -> Path:
    return file.with_name(f".{file.name}.draft")
