"""Files that only their owner can read. They are made so; a mode that is changed afterwards comes too late."""

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
_PASSWORD_BYTES = 32


def make_directory(path: Path) -> None:
    """Make a directory that only the owner can enter. One that is there already is tightened. Raises OSError.

    A link is none: it could lead to what another holder must not change.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=DIRECTORY_MODE)
    except FileExistsError:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchmod(descriptor, DIRECTORY_MODE)
        finally:
            os.close(descriptor)


def tighten(paths: Iterable[Path]) -> None:
    """Take away what group and others may do with files that an older version made."""
    for path in paths:
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and mode & (stat.S_IRWXG | stat.S_IRWXO):
            path.chmod(FILE_MODE)


def write(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all, that nobody else could read at any moment."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def kept_password(file: Path) -> str:
    """The password in a file; a new one where there is none. Raises OSError."""
    try:
        password = file.read_text(encoding="ascii").strip() if file.exists() else ""
    except UnicodeDecodeError:
        password = ""
    if not password:
        password = secrets.token_urlsafe(_PASSWORD_BYTES)
        write(file, f"{password}\n".encode())
    return password
