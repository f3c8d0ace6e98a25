"""Records of a seed's shoots: one JSON file a shoot, written atomically and only by the owner of the seed.

    <directory>/fence                         fencing token of the owner, `<created>.<sequence>`
    <directory>/shoots/<namespace>/<name>.json

Every write holds a shared lock on `fence` and compares the token in it; acquiring ownership holds it exclusively. Once
that has returned, the former owner can write nothing any more, be it paused, partitioned or late.
Files are replaced by renaming, which survives the death of the process at any point; the page cache is not flushed, so
a loss of power may lose the last moments.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from gardenbus.agent.files import make_directory, open_lock, path_inside, remove_file, write_draft
from gardenbus.gardenlet.backend.port import FencingToken, StaleFencingToken
from gardenbus.gardenlet.domain.shoot_record import ShootName, ShootRecord

_decode = msgspec.json.Decoder(ShootRecord).decode
_encode = msgspec.json.Encoder().encode
_NOBODY = FencingToken(0, 0)
_TOKEN_BYTES = 64


class LocalFiles:
    """See the module."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._shoots = directory / "shoots"
        self._fencing_token = _NOBODY
        self._descriptor = -1

    def open(self) -> None:
        """Make the directories and open the lock file."""
        make_directory(self._shoots)
        if self._descriptor < 0:
            self._descriptor = open_lock(self.directory / "fence")

    def close(self) -> None:
        """Close the lock file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def acquire(self, fencing_token: FencingToken) -> bool:
        """Become the owner; False while the former one writes. Raises StaleFencingToken."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            owner = self._owner()
            if owner > fencing_token:
                raise StaleFencingToken(
                    f"{self.directory.name} belongs to {owner.text}, which is above {fencing_token.text}"
                )
            text = fencing_token.text.encode()
            os.pwrite(self._descriptor, text.ljust(_TOKEN_BYTES), 0)
            self._fencing_token = fencing_token
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
        """Replace one file. Raises StaleFencingToken."""
        file = self._file((record.namespace, record.name))
        with self.owned():
            make_directory(file.parent)
            self.commit(write_draft(file, _encode(record)), file)

    def commit(self, draft: Path, file: Path) -> None:
        """The one point at which a write takes effect."""
        draft.replace(file)

    def remove(self, shoot: ShootName) -> None:
        """Remove one file, and its namespace's directory when that is empty. Raises StaleFencingToken."""
        file = self._file(shoot)
        with self.owned():
            remove_file(file)

    @contextmanager
    def owned(self) -> Generator[None]:
        """Hold ownership for a write. Raises StaleFencingToken."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)
        try:
            owner = self._owner()
            if owner != self._fencing_token:
                raise StaleFencingToken(
                    f"{self.directory.name} belongs to {owner.text}, not to {self._fencing_token.text}"
                )
            yield
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _owner(self) -> FencingToken:
        text = os.pread(self._descriptor, _TOKEN_BYTES, 0).decode().strip()
        if not text:
            return _NOBODY
        created, _, sequence = text.partition(".")
        return FencingToken(int(created), int(sequence))

    def _file(self, shoot: ShootName) -> Path:
        namespace, name = shoot
        return path_inside(self._shoots, namespace, f"{name}.json")
