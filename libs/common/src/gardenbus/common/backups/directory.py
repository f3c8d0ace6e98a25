"""Backups in a directory: a mounted volume, or a folder that something else copies away."""

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from gardenbus.common.errors import BadRequest, NotFound, Unavailable
from gardenbus.common.ports.backups import StoredFile

_PARTIAL = ".partial"
ABANDONED_SECONDS = 3600.0
"""Silence after which a copy that was not finished is nobody's."""

Result = TypeVar("Result")


class DirectoryDestination:
    """See `ports.backups.BackupFolder`. The directory is made, for its owner alone, with the first backup."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @property
    def place(self) -> str:
        """The directory."""
        return str(self._directory)

    async def list(self) -> Sequence[StoredFile]:
        """All files but those that were not finished."""
        return await self._io(self._list)

    async def put(self, name: str, file: Path) -> None:
        """Copy, sync, rename, sync. What cannot be finished, as on a full disk, leaves nothing."""
        await self._io(lambda: self._put(name, file))

    async def fetch(self, name: str, into: Path) -> Path:
        """The file itself."""
        del into
        path = self._directory / name
        if not await self._io(path.is_file):
            raise NotFound(f"no backup {name} in {self._directory}")
        return path

    async def delete(self, name: str) -> None:
        """Unlink."""
        await self._io(lambda: (self._directory / name).unlink(missing_ok=True))

    async def close(self) -> None:
        """Nothing is open."""

    def folder(self, name: str) -> "DirectoryDestination":
        """A directory below this one."""
        if name in ("", ".", "..") or "/" in name or "\0" in name:
            raise BadRequest(f"{name[:80]!r} is no name of a folder")
        return DirectoryDestination(self._directory / name)

    async def folders(self) -> Sequence[str]:
        """Directories below this one."""
        return await self._io(self._folders)

    async def make(self) -> None:
        """Make the directory."""
        await self._io(lambda: self._directory.mkdir(mode=0o700, parents=True, exist_ok=True))

    async def remove(self) -> None:
        """Remove the directory."""
        await self._io(self._remove)

    def _folders(self) -> Sequence[str]:
        if not self._directory.is_dir():
            return []
        return sorted(path.name for path in self._directory.iterdir() if path.is_dir())

    def _remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._directory)

    def _list(self) -> Sequence[StoredFile]:
        try:
            found = sorted(self._directory.iterdir())
        except FileNotFoundError:
            return []
        return [
            StoredFile(path.name, path.stat().st_size) for path in found if path.is_file() and path.suffix != _PARTIAL
        ]

    def _put(self, name: str, file: Path) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._remove_abandoned()
        partial = self._directory / f"{name}{_PARTIAL}"
        try:
            with file.open("rb") as source, open(partial, "wb", opener=_for_owner) as target:
                shutil.copyfileobj(source, target)
                target.flush()
                os.fsync(target.fileno())
            partial.replace(self._directory / name)
        except OSError:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise
        descriptor = os.open(self._directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _remove_abandoned(self) -> None:
        """Give back the room of copies whose process died; somebody may be at work on a younger one."""
        for path in self._directory.glob(f"*{_PARTIAL}"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                    path.unlink()

    async def _io(self, work: Callable[[], Result]) -> Result:
        try:
            return await asyncio.to_thread(work)
        except OSError as error:
            raise Unavailable(f"the backups in {self._directory}: {error.strerror or error}") from error


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
