"""Collects backups that are not kept any more."""

from collections.abc import Sequence
from datetime import datetime

from gardenbus.common.backups.catalog import Backup
from gardenbus.common.backups.creating import read_catalog
from gardenbus.common.backups.retention import kept
from gardenbus.common.ports.backups import BackupDestination


async def collect(destination: BackupDestination, now: datetime) -> Sequence[Backup]:
    """Remove what `retention.kept` does not keep, the latest first: what is left meanwhile are whole chains."""
    catalog = await read_catalog(destination)
    stay = kept(catalog, now)
    gone = [each for each in reversed(catalog.backups) if each not in stay]
    for each in gone:
        await destination.delete(each.name)
    return gone
