"""All seeds as one JSON list: a row is encoded once for each change of it, and only its use and heartbeat each time."""

import operator
from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from gardenbus.common.api.garden.rows import SeedRow
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import parse_timestamp

_encode = msgspec.json.Encoder().encode


class EncodedSeeds:
    """The rows of a table by provider, region and name, with `used` and `heartbeat` (ms since the epoch, or null)."""

    def __init__(self, table: Mapping[ObjectKey, SeedRow]) -> None:
        self._table = table
        self._rows: list[SeedRow] = []
        self.kept: dict[str, tuple[SeedRow, bytes]] = {}
        """Rows with their JSON but for its end, by name."""

        self._ordered: list[tuple[str, bytes]] = []

    def encoded(self, used: Callable[[str], int], heartbeats: Mapping[str, datetime]) -> msgspec.Raw:
        """Return the list."""
        self._refresh()
        parts = [
            b'%b,"used":%d,"heartbeat":%b}'
            % (begun, used(name), _milliseconds(last_heartbeat(self.kept[name][0], heartbeats)))
            for name, begun in self._ordered
        ]
        return msgspec.Raw(b"[" + b",".join(parts) + b"]")

    def _refresh(self) -> None:
        """Encode the rows that have changed since the last time, and put all in order if any has."""
        rows = list(self._table.values())
        if len(rows) == len(self._rows) and all(map(operator.is_, rows, self._rows)):
            return
        before, self.kept, self._rows = self.kept, {}, rows
        for row in rows:
            kept = before.get(row.name)
            self.kept[row.name] = kept if kept is not None and kept[0] is row else (row, _encode(row)[:-1])
        ordered = sorted(rows, key=lambda row: (row.provider, row.region, row.name))
        self._ordered = [(row.name, self.kept[row.name][1]) for row in ordered]


def _milliseconds(at: datetime | None) -> bytes:
    return b"null" if at is None else b"%d" % int(at.timestamp() * 1000)


def last_heartbeat(row: SeedRow, heartbeats: Mapping[str, datetime]) -> datetime | None:
    """The last heartbeat of a seed: by its Lease, or where that has ended, as it is kept in the Seed's condition."""
    return heartbeats.get(row.name) or parse_timestamp(row.last_heartbeat)
