"""The file of a backup: gzip over lines of JSON, which `zcat` and `jq` read.

    {"format":2,"product":"0.1.0","prefix":"garden","store_format":2,"opening":"…","previous":"","after":0}
    {"key":"shoot:garden-dev:apollo","version":5,"f":{…}}              any number of records, an object more than once:
    {"key":"shoot:garden-dev:old","version":6,"f":{…},"d":true}        the last one counts
    {"type":"request","subject":"garden.as.ann.apply","headers":{},"body":"…","incarnation":1…,"sequence":7,"at":"…"}
    {"version":10961,"taken_at":"…","records":2,"requests":1,"state":{…},"sha256":"…"}

The last line has a SHA-256 of all before it, so that a cut or changed file is found. The file has all that was stored
above `after`, as it was at `version`, and the durable requests that waited then.
"""

import hashlib
import zlib
from collections.abc import Iterable, Iterator, Sequence
from gzip import BadGzipFile, GzipFile
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import msgspec

from gardenbus.common.errors import Terminal
from gardenbus.common.ports.backups import BackupRecord, StoreState, WaitingRequest

FORMAT = 3
"""Raised when an older version would misread a file."""

_REQUEST = b'{"type":"request"'


_LEVEL = 3
"""zlib's: a third of the time of the default for a tenth more bytes."""

_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError)
"""Exceptions of the decoders: the second one for a text that is no UTF-8."""

_encode = msgspec.json.Encoder().encode


class BackupHeader(msgspec.Struct, frozen=True, kw_only=True):
    """First line. `previous`: name of the backup that a delta goes on from."""

    format: int
    product: str
    prefix: str
    store_format: int
    opening: str
    previous: str
    after: int


class BackupTrailer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Last line. `taken_at`: when the store was as the backup has it. `requests`: None where they were left out."""

    version: int
    taken_at: str
    records: int
    state: StoreState
    sha256: str
    requests: int | None = None


class _AnyHeader(msgspec.Struct):
    """Part of the first line that every format has, newer ones too."""

    format: int
    product: str = "unknown"


_decode_any_header = msgspec.json.Decoder(_AnyHeader).decode
_decode_header = msgspec.json.Decoder(BackupHeader).decode
_decode_record = msgspec.json.Decoder(BackupRecord).decode
_decode_request = msgspec.json.Decoder(WaitingRequest).decode
_decode_trailer = msgspec.json.Decoder(BackupTrailer).decode


class BackupInvalid(Terminal):
    """A backup's file cannot be used; says which, why, and what to do."""


class BackupWriter:
    """Writes a backup to a file of its own. Blocks: call it in a thread."""

    def __init__(self, path: Path, header: BackupHeader) -> None:
        self._raw: IO[bytes] = path.open("wb")
        path.chmod(0o600)
        self._file = GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=self._raw, mtime=0)
        self._digest = hashlib.sha256()
        self._records = 0
        self._requests: int | None = None
        self._write(_encode(header) + b"\n")

    def add(self, records: Iterable[BackupRecord]) -> None:
        """Append records."""
        self._records += self._append(records)

    def add_requests(self, requests: Iterable[WaitingRequest]) -> None:
        """Append requests that wait; none, to say that none do."""
        self._requests = (self._requests or 0) + self._append(requests)

    def finish(self, version: int, taken_at: str, state: StoreState) -> None:
        """Write the last line; the file is complete then, but not synced."""
        trailer = BackupTrailer(
            version=version,
            taken_at=taken_at,
            records=self._records,
            state=state,
            sha256=self._digest.hexdigest(),
            requests=self._requests,
        )
        self._file.write(_encode(trailer) + b"\n")

    def __enter__(self) -> Self:
        """Use it with `with`: the file is closed in the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._file.close()
        self._raw.close()

    def _append(self, entries: Iterable[BackupRecord | WaitingRequest]) -> int:
        lines = [_encode(each) for each in entries]
        self._write(b"".join(line + b"\n" for line in lines))
        return len(lines)

    def _write(self, text: bytes) -> None:
        self._digest.update(text)
        self._file.write(text)


class BackupReader:
    """Reads a backup's file line by line and checks it. Blocks: call it in a thread.

    `header` is there at once, `trailer` once all records were read. All methods raise BackupInvalid.
    """

    def __init__(self, path: Path, name: str) -> None:
        self._path = path
        self._name = name
        self._digest = hashlib.sha256()
        self.trailer: BackupTrailer | None = None
        with path.open("rb") as raw, GzipFile(fileobj=raw) as file:
            line = next(self._lines(file), b"")
        self.header = self._header(line)

    def records(self) -> Iterator[BackupRecord]:
        """All records; in the end the checksum is compared."""
        for entry in self._entries():
            if isinstance(entry, BackupRecord):
                yield entry

    def requests(self) -> Iterator[WaitingRequest]:
        """All requests that waited, in their order; in the end the checksum is compared."""
        for entry in self._entries():
            if isinstance(entry, WaitingRequest):
                yield entry

    def _entries(self) -> Iterator[BackupRecord | WaitingRequest]:
        self._digest = hashlib.sha256()
        with self._path.open("rb") as raw, GzipFile(fileobj=raw) as file:
            lines = self._lines(file)
            pending = next(lines, b"")
            count = -1  # the header is no record
            for line in lines:
                self._digest.update(pending)
                if count >= 0:
                    yield self._entry(pending)
                count += 1
                pending = line
        self.trailer = self._trailer(pending, count)

    def check(self) -> BackupTrailer:
        """Read all of it."""
        for _ in self.records():
            pass
        return self.complete

    @property
    def complete(self) -> BackupTrailer:
        """The last line, of a file that was read to its end."""
        assert self.trailer is not None
        return self.trailer

    def _lines(self, file: GzipFile) -> Iterator[bytes]:
        try:
            yield from file
        except (EOFError, BadGzipFile, zlib.error) as error:
            raise self._invalid(f"is cut or damaged ({error})") from error

    def _header(self, line: bytes) -> BackupHeader:
        try:
            found = _decode_any_header(line)
            if found.format > FORMAT:
                raise BackupInvalid(
                    f"{self._name} is of format {found.format}, written by Gardenbus {found.product}: this version "
                    f"reads formats up to {FORMAT}, so use that version or a later one"
                )
            return _decode_header(line)
        except _UNREADABLE as error:
            raise self._invalid(f"does not begin as a backup ({error})") from error

    def _entry(self, line: bytes) -> BackupRecord | WaitingRequest:
        try:
            return _decode_request(line) if line.startswith(_REQUEST) else _decode_record(line)
        except _UNREADABLE as error:
            raise self._invalid(f"has a line that is no record ({error})") from error

    def _trailer(self, line: bytes, count: int) -> BackupTrailer:
        try:
            trailer = _decode_trailer(line)
        except _UNREADABLE as error:
            raise self._invalid("is cut: it has no last line with its checksum") from error
        if trailer.sha256 != self._digest.hexdigest() or trailer.records + (trailer.requests or 0) != count:
            raise self._invalid("is damaged: its content does not have the checksum of its last line")
        return trailer

    def _invalid(self, what: str) -> BackupInvalid:
        return BackupInvalid(
            f"{self._name} {what}: take its copy from elsewhere, or restore up to an earlier one (--to)"
        )


def joined(readers: Sequence[BackupReader]) -> Iterator[BackupRecord]:
    """The last record of each object in a chain, in the order of their files. Reads each file twice."""
    last: dict[str, tuple[int, int]] = {}
    for number, reader in enumerate(readers):
        for record in reader.records():
            last[record.key] = (number, record.version)
    for number, reader in enumerate(readers):
        for record in reader.records():
            if last.get(record.key) == (number, record.version):
                yield record
