"""Revocations that are newer than the backup which is restored: a later backup at the same destination has them.

An older backup knows nothing of who was revoked after it, nor of seeds that were removed, whose keys ended with them.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gardenbus.common.api.identity.revocations import REVOCATIONS
from gardenbus.common.backups.catalog import STORE_SUFFIX, Backup, Catalog, Chain
from gardenbus.common.backups.files import BackupInvalid, BackupReader
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.backups import BackupDestination, BackupRecord


class LaterRevocations(NamedTuple):
    """The ConfigMap as the latest backup has it; None: as in the one that is restored."""

    record: BackupRecord | None = None
    unread: tuple[str, ...] = ()
    """Later backups that could not be read."""


def later_backups(catalog: Catalog, chain: Chain) -> Sequence[Backup]:
    """Backups of the store that were made after the end of a chain, the latest first."""
    return [
        backup
        for backup in reversed(catalog.backups)
        if backup.suffix == STORE_SUFFIX and backup not in chain.backups and backup.taken_at >= chain.last.taken_at
    ]


async def later_revocations(
    destination: BackupDestination, catalog: Catalog, chain: Chain, prefix: str
) -> LaterRevocations:
    """Read later backups of a landscape until one has the ConfigMap; one that is damaged or gone is left out."""
    unread: list[str] = []
    for backup in later_backups(catalog, chain):
        try:
            record = await _read(destination, backup, prefix)
        except (BackupInvalid, NotFound):
            unread.append(backup.name)
            continue
        if record is not None:
            return LaterRevocations(record, tuple(unread))
    return LaterRevocations(unread=tuple(unread))


async def _read(destination: BackupDestination, backup: Backup, prefix: str) -> BackupRecord | None:
    with tempfile.TemporaryDirectory(prefix="gardenbus-backup-") as scratch:
        path = await destination.fetch(backup.name, Path(scratch))
        reader = await asyncio.to_thread(BackupReader, path, backup.name)
        return await asyncio.to_thread(_last, reader) if reader.header.prefix == prefix else None


def _last(reader: BackupReader) -> BackupRecord | None:
    """The last record of the ConfigMap in a backup that is read to its end; None without one."""
    last = None
    for record in reader.records():
        if record.object_key == REVOCATIONS and not record.is_removed:
            last = record
    return last
