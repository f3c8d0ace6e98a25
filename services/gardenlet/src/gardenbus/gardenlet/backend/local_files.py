"""The local backend's files: one JSON a shoot, written whole or not at all, and only by the owner of the seed.

    <directory>/fence                         the fencing number of the owner, `<created>.<sequence>`
    <directory>/shoots/<namespace>/<name>.json
    <directory>/buckets/<name>/

Every write holds a shared lock on `fence` and compares the number in it; taking over holds it exclusively. So once a
takeover has returned, nothing of the former owner is written any more, be it paused, cut off or merely late.
A file is replaced by renaming, which survives the death of the process at any point; the page cache is not flushed, so
a loss of power may take the last moments with it.
"""

import fcntl
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gardenbus.gardenlet.backend.port import Fence, FencedOff, ShootName
from gardenbus.gardenlet.decide.record import ShootRecord

_decode = msgspec.json.Decoder(ShootRecord).decode
_encode = msgspec.json.Encoder().encode
_NOBODY = Fence(0, 0)
_LONGEST_FENCE = 64


class LocalFiles:
    """See the module."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._shoots = directory / "shoots"
        self._fence = _NOBODY
        self._descriptor = -1

    def open(self) -> None:
        """Make the directories."""
        self._shoots.mkdir(parents=True, exist_ok=True)
        if self._descriptor < 0:
            self._descriptor = os.open(self.directory / "fence", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def close(self) -> None:
        """Let go of the lock's file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def take_over(self, fence: Fence) -> bool:
        """Become the owner; False when the former one is writing at this moment. Raises FencedOff."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            owner = self._owner()
            if owner > fence:
                raise FencedOff(f"{self.directory.name} belongs to {owner.text}, which is above {fence.text}")
            text = fence.text.encode()
            os.pwrite(self._descriptor, text.ljust(_LONGEST_FENCE), 0)
            self._fence = fence
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return True

    def shoots(self) -> list[ShootName]:
        """Namespace and name of every file."""
        files = sorted(self._shoots.glob("*/*.json"))
        return [(file.parent.name, file.name.removesuffix(".json")) for file in files if not file.name.startswith(".")]

    def load(self, shoot: ShootName) -> ShootRecord | None:
        """Read one file."""
        try:
            return _decode(self._file(shoot).read_bytes())
        except FileNotFoundError:
            return None

    def save(self, record: ShootRecord) -> None:
        """Replace one file. Raises FencedOff."""
        file = self._file((record.namespace, record.name))
        with self.owned():
            file.parent.mkdir(exist_ok=True)
            draft = file.with_name(f".{file.name}.draft")
            draft.write_bytes(_encode(record))
            self.commit(draft, file)

    def commit(self, draft: Path, file: Path) -> None:
        """The one instant at which a write happens."""
        draft.replace(file)

    def remove(self, shoot: ShootName) -> None:
        """Remove one file, and its namespace's directory when that is empty. Raises FencedOff."""
        file = self._file(shoot)
        with self.owned():
            file.unlink(missing_ok=True)
            file.with_name(f".{file.name}.draft").unlink(missing_ok=True)
            if file.parent.is_dir() and not any(file.parent.iterdir()):
                file.parent.rmdir()

    def make_bucket(self, name: str) -> None:
        """Make a bucket's directory. Raises FencedOff."""
        with self.owned():
            (self.directory / "buckets" / name).mkdir(parents=True, exist_ok=True)

    def remove_bucket(self, name: str) -> None:
        """Remove a bucket with all that is in it. Raises FencedOff."""
        buckets = self.directory / "buckets"
        with self.owned():
            shutil.rmtree(buckets / name, ignore_errors=True)
            if buckets.is_dir() and not any(buckets.iterdir()):
                buckets.rmdir()

    @contextmanager
    def owned(self) -> Generator[None]:
        """Write inside of this: nobody can take the directory over meanwhile. Raises FencedOff."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)
        try:
            owner = self._owner()
            if owner != self._fence:
                raise FencedOff(f"{self.directory.name} belongs to {owner.text}, not to {self._fence.text}")
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _owner(self) -> Fence:
        text = os.pread(self._descriptor, _LONGEST_FENCE, 0).decode().strip()
        if not text:
            return _NOBODY
        created, _, sequence = text.partition(".")
        return Fence(int(created), int(sequence))

    def _file(self, shoot: ShootName) -> Path:
        namespace, name = shoot
        return self._shoots / namespace / f"{name}.json"
