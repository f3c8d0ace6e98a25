"""Restores a backup into the empty store of a landscape whose servers run, and whose services do not yet."""

import asyncio
import uuid
from pathlib import Path

from gardenbus.cli.client.store_address import connect_store
from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.commands.backup import restored_from
from gardenbus.common.backups.destinations import destination_of
from gardenbus.common.backups.restoring import RestoredChain
from gardenbus.common.errors import Unavailable

AGAIN_SECONDS = 0.5
"""Interval of attempts: servers of a cluster have to find each other first."""
ATTEMPTS_SECONDS = 30


async def restore_backup(place: str, target: LandscapeTarget, directory: Path) -> RestoredChain:
    """Restore the latest backup. Raises BackupInvalid, Conflict where the store is not empty, NotFound, Unavailable."""
    loop = asyncio.get_running_loop()
    leader = f"restore-{uuid.uuid4().hex[:8]}"
    deadline = loop.time() + ATTEMPTS_SECONDS
    while True:
        try:
            connection = connect_store(target, directory, None)
            return await restored_from(destination_of(place), "", target, connection, leader)
        except Unavailable:
            if loop.time() > deadline:
                raise
        await asyncio.sleep(AGAIN_SECONDS)
