"""Comparison of a store with the latest backups of it, before a full backup becomes the latest.

A store that was emptied together with the bus is open again within seconds, and has new objects soon: seeds register
themselves. A backup of it would be the latest one, which a restore takes. It is recognized by its having none of the
objects that the latest chain has: none by its uid, and no memory of a removal.
"""

import asyncio
import tempfile
from itertools import islice
from pathlib import Path

import structlog

from gardenbus.common.backups.creating import BackupSource, Created, Now, create_full, read_catalog
from gardenbus.common.backups.files import BackupInvalid, BackupReader
from gardenbus.common.errors import Conflict, NotFound
from gardenbus.common.ports.backups import BackupDestination, BackupStore

_TOGETHER = 500
"""Objects that are looked for in one round trip."""

_log = structlog.stdlib.get_logger()


async def create_next_full(source: BackupSource, destination: BackupDestination, now: Now) -> Created:
    """Back all of the store up, unless it is another one than that of the latest backups.

    Raises Conflict where it is, with what is to be done, and what `create_full` raises.
    """
    if not await _continues(source.store, destination):
        raise Conflict(
            f"the store has none of the objects of the latest backups in {destination.place}, and a backup of it would "
            "take their place: it was emptied. Stop the services, empty Redis and run gardenbus backup restore; or, to "
            "begin anew, set GARDENBUS_BACKUP_DESTINATION to another place"
        )
    return await create_full(source, destination, now)


async def _continues(store: BackupStore, destination: BackupDestination) -> bool:
    """Look for one object of the latest chain in the store, in the latest backup first. True if the chain has none.

    Raises Unavailable while the store is closed: a relay still puts back what the bus has.
    """
    await store.changes(0)
    chains = (await read_catalog(destination)).chains
    were_objects = False
    for backup in reversed(chains[-1].backups if chains else ()):
        with tempfile.TemporaryDirectory(prefix="gardenbus-backup-") as scratch:
            try:
                path = await destination.fetch(backup.name, Path(scratch))
                records = (await asyncio.to_thread(BackupReader, path, backup.name)).records()
                while page := await asyncio.to_thread(list, islice(records, _TOGETHER)):
                    objects = [each for each in page if not each.is_removed]
                    were_objects |= bool(objects)
                    if objects and await store.has_any(objects):
                        return True
            except (BackupInvalid, NotFound) as error:
                _log.warning("backup.unreadable", reason=error.message)
    return not were_objects
