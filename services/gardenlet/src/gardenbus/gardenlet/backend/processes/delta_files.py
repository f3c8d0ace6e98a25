"""Files of changes of an etcd: the spool, which grows between two backups, and deltas, which it becomes.

The spool is lines of JSON: the revision above which it begins, and `Changes`. A gardenlet that is killed while it
appends leaves half a line, which is cut off. A delta is the same lines, packed, between a header and a last line with
their SHA-256. All functions block: they are called in threads.
"""

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from gardenbus.agent.files import replace_file
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.backups.files import BackupInvalid
from gardenbus.gardenlet.domain.etcd_events import Changes

FORMAT = 1
DELTA_SUFFIX = ".events.gz"


class _SpoolHeader(msgspec.Struct):
    after: int


class _DeltaHeader(msgspec.Struct):
    format: int
    entry: str
    after: int
    previous: str


class _DeltaTrailer(msgspec.Struct):
    revision: int
    events: int
    sha256: str


class Spool:
    """Changes above the revision `after`, up to `through`; `size` in bytes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.after = self.through = self.size = 0

    @classmethod
    def load(cls, file: Path) -> "Spool | None":
        """Read a spool, and cut off what was not written to its end; None without one."""
        try:
            lines = file.read_bytes().split(b"\n")
            spool = cls(file)
            spool.after = spool.through = decode_json(lines[0], _SpoolHeader).after
        except (FileNotFoundError, msgspec.MsgspecError):
            return None
        whole = [lines[0]]
        for line in lines[1:-1]:
            try:
                spool.through = decode_json(line, Changes).revision
            except msgspec.MsgspecError:
                break
            whole.append(line)
        content = b"\n".join(whole) + b"\n"
        spool.size = len(content)
        if spool.size != file.stat().st_size:
            replace_file(file, content)
        return spool

    @classmethod
    def begin(cls, file: Path, after: int, changes: Sequence[bytes] = ()) -> "Spool":
        """Write a new one."""
        content = b"".join(each + b"\n" for each in (msgspec.json.encode(_SpoolHeader(after)), *changes))
        replace_file(file, content)
        spool = cls(file)
        spool.after, spool.size = after, len(content)
        spool.through = decode_json(changes[-1], Changes).revision if changes else after
        return spool

    def append(self, changes: Changes) -> None:
        """Append changes, which go on from `through`."""
        line = msgspec.json.encode(changes) + b"\n"
        with self._file.open("ab") as file:
            file.write(line)
        self.size += len(line)
        self.through = changes.revision

    def without(self, revision: int) -> "Spool":
        """Drop what is up to a revision."""
        left = [line for line in self.lines() if decode_json(line, Changes).revision > revision]
        return Spool.begin(self._file, max(self.after, revision), left)

    def lines(self) -> Iterator[bytes]:
        """All changes, as they are written."""
        with self._file.open("rb") as file:
            next(file)
            for line in file:
                yield line.rstrip(b"\n")


def pack(spool: Spool, target: Path, *, entry: str, previous: str) -> None:
    """Write the delta of a spool's changes, which goes on from the backup `previous`."""
    digest, events = hashlib.sha256(), 0
    target.unlink(missing_ok=True)
    target.touch(mode=0o600)
    with gzip.open(target, "wb", compresslevel=6) as packed:

        def write(line: bytes) -> None:
            digest.update(line + b"\n")
            packed.write(line + b"\n")

        write(msgspec.json.encode(_DeltaHeader(FORMAT, entry, spool.after, previous)))
        for line in spool.lines():
            events += len(decode_json(line, Changes).events)
            write(line)
        packed.write(msgspec.json.encode(_DeltaTrailer(spool.through, events, digest.hexdigest())) + b"\n")


def unpack(file: Path, name: str, *, entry: str, after: int, through: int) -> list[Changes]:
    """Read a delta and check it against what its name says. Raises BackupInvalid."""
    try:
        with gzip.open(file, "rb") as packed:
            lines = packed.read().splitlines()
        header = decode_json(lines[0], _DeltaHeader)
        trailer = decode_json(lines[-1], _DeltaTrailer)
        changes = [decode_json(line, Changes) for line in lines[1:-1]]
    except (EOFError, OSError, IndexError, zlib.error, msgspec.MsgspecError) as error:
        raise BackupInvalid(f"{name} is cut or damaged ({error}): put its copy there, or remove it") from error
    found = hashlib.sha256(b"".join(line + b"\n" for line in lines[:-1])).hexdigest()
    if found != trailer.sha256 or (header.after, trailer.revision) != (after, through):
        raise BackupInvalid(f"{name} is damaged, or was renamed: put its copy there, or remove it")
    if header.entry != entry:
        raise BackupInvalid(f"{name} is of {header.entry}, and not of {entry}: remove it")
    return changes
