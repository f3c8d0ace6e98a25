"""Small disks for tests: file systems in memory that are mounted, filled and freed."""

import contextlib
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

_CHUNK = 64 * 1024


@dataclass
class SmallDisk:
    """A mounted file system of its own."""

    path: Path

    @property
    def _ballast(self) -> Path:
        return self.path / "ballast"

    def fill(self, *, leave: int = 0) -> None:
        """Take all room, but for `leave` bytes."""
        with self._ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"\0" * _CHUNK)
        if leave:
            with self._ballast.open("r+b") as file:
                file.truncate(max(0, self._ballast.stat().st_size - leave))

    def free(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)


@contextlib.contextmanager
def small_disk(directory: Path, *, megabytes: int) -> Generator[SmallDisk]:
    """Mount one at `directory`; skips the test where mounting is not allowed."""
    directory.mkdir(parents=True, exist_ok=True)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(directory)]
    try:
        done = subprocess.run(mounting, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"a small disk cannot be mounted here: {error}")
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    try:
        yield SmallDisk(directory)
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=False)
