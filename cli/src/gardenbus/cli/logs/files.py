"""The log files of a local landscape: read together in the order of time, and followed through rotations."""

import heapq
import os
import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from gardenbus.cli.logs.lines import LogLine, read_line
from gardenbus.common.errors import BadRequest

POLL_SECONDS = 0.25
SUPERVISOR = "up"
"""The log of `gardenbus up` itself, which has no times: only shown when it is named."""

_NUMBER = re.compile(r"-\d+$")
_EPOCH = datetime.fromtimestamp(0, UTC)


class LogSource(NamedTuple):
    """One process' log."""

    name: str
    file: Path

    @property
    def files(self) -> Sequence[Path]:
        """The file before the last rotation, if there is one, and the present one."""
        before = self.file.with_suffix(".log.1")
        return [file for file in (before, self.file) if file.exists()]


def log_sources(directory: Path, wanted: Sequence[str]) -> list[LogSource]:
    """The logs below a directory: all, or those of the services named (`scheduler`: all its replicas and names too).

    Raises BadRequest for a service that has none.
    """
    there = [LogSource(file.stem, file) for file in sorted(directory.glob("*.log"))]
    chosen: list[LogSource] = []
    for name in wanted:
        named = [source for source in there if name in (source.name, *_groups_of(source.name))]
        if not named:
            names = ", ".join(source.name for source in there) or "none at all"
            raise BadRequest(f"there is no log of {name!r} in {directory}; there is {names}")
        chosen += [source for source in named if source not in chosen]
    return chosen if wanted else [source for source in there if source.name != SUPERVISOR]


def _groups_of(name: str) -> tuple[str, str]:
    """Names by which a replica's log can be requested: of `scheduler-2@mine` it is `scheduler@mine` and `scheduler`."""
    replica, at, scheduler = name.partition("@")
    service = _NUMBER.sub("", replica)
    return f"{service}{at}{scheduler}", service


def local_offset() -> timedelta:
    """Offset of local time from UTC: NATS and Redis log in local time."""
    return datetime.now().astimezone().utcoffset() or timedelta(0)


def merged_lines(sources: Sequence[LogSource]) -> Iterator[LogLine]:
    """All lines of several logs, by time; a line that does not say when stays behind the one before it."""
    yield from heapq.merge(*(_of_source(source) for source in sources), key=lambda line: line.at or _EPOCH)


def _of_source(source: LogSource) -> Iterator[LogLine]:
    offset, last = local_offset(), None
    for file in source.files:
        with file.open(encoding="utf-8", errors="replace") as lines:
            for raw in lines:
                if raw.strip():
                    line = read_line(raw, source.name, local_offset=offset)
                    last = line.at or last
                    yield line if line.at else line._replace(at=last)


class LogTail:
    """Follows logs from now on, batch by batch, in the order of time."""

    def __init__(self, directory: Path, wanted: Sequence[str], sources: Sequence[LogSource]) -> None:
        self._directory = directory
        self._wanted = wanted
        self._offset = local_offset()
        self._places = {source.name: _end_of(source.file) for source in sources}
        self._rests: dict[str, bytes] = {}

    def batches(self) -> Iterator[list[LogLine]]:
        """Lines for ever; an empty batch whenever there is nothing new."""
        while True:
            lines = [line for source in self._sources() for line in self._appended(source)]
            yield sorted(lines, key=lambda line: line.at or _EPOCH)
            time.sleep(POLL_SECONDS)

    def _sources(self) -> Sequence[LogSource]:
        """Those there are by now: a replica may have been added."""
        try:
            return log_sources(self._directory, self._wanted)
        except BadRequest:
            return []

    def _appended(self, source: LogSource) -> list[LogLine]:
        identity, position = self._places.get(source.name, (0, 0))
        try:
            with source.file.open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != identity or status.st_size < position:
                    position = 0
                    self._rests.pop(source.name, None)
                file.seek(position)
                content = self._rests.pop(source.name, b"") + file.read()
                self._places[source.name] = (status.st_ino, file.tell())
        except OSError:
            return []
        whole, newline, rest = content.rpartition(b"\n")
        if rest:
            self._rests[source.name] = rest
        if not newline:
            return []
        now = datetime.now(UTC)
        lines = [
            read_line(raw.decode("utf-8", "replace"), source.name, local_offset=self._offset)
            for raw in whole.split(b"\n")
            if raw.strip()
        ]
        return [line if line.at else line._replace(at=now) for line in lines]


def _end_of(file: Path) -> tuple[int, int]:
    try:
        status = file.stat()
    except OSError:
        return 0, 0
    return status.st_ino, status.st_size
