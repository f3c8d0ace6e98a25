"""Writes backups: all of the store, or what changed since the latest one, in one file each.

Pages are read and written by turns, so that memory has one page at a time, however large the store. Writes go on
meanwhile: what they change comes again at the end, and the last page makes the file complete (functions/backups.lua).
Requests that wait on the bus are read before that page: one that is carried out in between is in the store by then.
"""

import asyncio
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from gardenbus.common.backups.catalog import Backup, Catalog, backup_of, catalog_of
from gardenbus.common.backups.files import FORMAT, BackupHeader, BackupReader, BackupWriter
from gardenbus.common.backups.requests import WaitingRequests
from gardenbus.common.errors import Conflict, NotFound
from gardenbus.common.ports.backups import BackupDestination, BackupPage, BackupStore
from gardenbus.common.ports.clock import timestamp

Now = Callable[[], datetime]


class BackupSource(NamedTuple):
    """A landscape's store and (None: left out) what waits on its bus, with what is written about it into each file."""

    store: BackupStore
    prefix: str
    product: str
    requests: WaitingRequests | None = None


class LatestBackup(NamedTuple):
    """A backup that a delta may go on from: its opening of the store must be the present one."""

    backup: Backup
    opening: str


class Created(NamedTuple):
    """A backup that was stored; a delta can go on from it."""

    latest: LatestBackup
    records: int


async def read_catalog(destination: BackupDestination) -> Catalog:
    """All backups of a destination; other files are left out."""
    found = (backup_of(file.name, file.size) for file in await destination.list())
    return catalog_of(backup for backup in found if backup is not None)


async def latest_of(
    destination: BackupDestination, catalog: Catalog, prefix: str, cached: LatestBackup | None = None
) -> LatestBackup | None:
    """The end of the latest chain; None without one. Where that is `cached`, it is not read again.

    Raises Unavailable, BackupInvalid, and Conflict where it is another landscape's.
    """
    if not catalog.chains:
        return None
    backup = catalog.chains[-1].last
    if cached is not None and cached.backup.name == backup.name:
        return cached
    with tempfile.TemporaryDirectory(prefix="gardenbus-backup-") as scratch:
        path = await destination.fetch(backup.name, Path(scratch))
        reader = await asyncio.to_thread(BackupReader, path, backup.name)
    if reader.header.prefix != prefix:
        raise Conflict(
            f"{destination.place} has backups of the landscape {reader.header.prefix}, and this is {prefix}: "
            "each needs a place of its own"
        )
    return LatestBackup(backup, reader.header.opening)


async def create_full(source: BackupSource, destination: BackupDestination, now: Now) -> Created:
    """Back all of the store up. Raises Unavailable, Conflict."""
    return await _create(source, destination, now, None)


async def create_delta(
    source: BackupSource, destination: BackupDestination, now: Now, latest: LatestBackup
) -> Created | None:
    """Back up what changed since a backup, and what waits; None if nothing did, and nothing does.

    Raises NotFound where a full backup is needed: the store was opened anew since, or removals are forgotten by now.
    """
    opening, changes = await source.store.changes(latest.backup.version)
    if opening != latest.opening:
        raise NotFound(
            "the store was opened anew since the latest backup, and may have gone back: a full one is needed"
        )
    is_needed = changes or (source.requests is not None and await source.requests.are_there())
    return await _create(source, destination, now, latest) if is_needed else None


async def _create(
    source: BackupSource, destination: BackupDestination, now: Now, latest: LatestBackup | None
) -> Created:
    with tempfile.TemporaryDirectory(prefix="gardenbus-backup-") as scratch:
        path = Path(scratch) / "backup"
        created = await _write(source, path, now, latest)
        if latest is not None and created.latest.backup.name == latest.backup.name:
            raise Conflict(f"{latest.backup.name} was made within this second: again in the next")
        await destination.put(created.latest.backup.name, path)
        size = path.stat().st_size
    return created._replace(latest=created.latest._replace(backup=created.latest.backup._replace(size=size)))


async def _write(source: BackupSource, path: Path, now: Now, latest: LatestBackup | None) -> Created:
    after = latest.backup.version if latest else 0
    page = await source.store.page(after, is_delta=latest is not None)
    header = BackupHeader(
        format=FORMAT,
        product=source.product,
        prefix=source.prefix,
        store_format=page.store_format,
        opening=page.opening,
        previous=latest.backup.name if latest else "",
        after=after,
    )
    _check_opening(page, latest.opening if latest else page.opening)
    with await asyncio.to_thread(BackupWriter, path, header) as writer:
        page, records = await _walk(source.store, writer, page)
        taken_at = now()  # what is written or sent from now on may be missing, and nothing before
        waiting = await _write_requests(source.requests, writer) if source.requests is not None else 0
        following = await source.store.page(page.version)
        _check_opening(following, header.opening)
        page, more = await _walk(source.store, writer, following)
        assert page.state is not None
        await asyncio.to_thread(writer.finish, page.version, timestamp(taken_at), page.state)
    backup = Backup(taken_at.replace(microsecond=0), latest is None, after, page.version, waiting=waiting)
    return Created(LatestBackup(backup, header.opening), records + more)


async def _walk(store: BackupStore, writer: BackupWriter, page: BackupPage) -> tuple[BackupPage, int]:
    """Write pages from this one on up to the last, which is returned, and count their records."""
    opening, records = page.opening, 0
    while True:
        await asyncio.to_thread(writer.add, page.records)
        records += len(page.records)
        if page.state is not None:
            return page, records
        page = await store.page(page.version)
        _check_opening(page, opening)


async def _write_requests(requests: WaitingRequests, writer: BackupWriter) -> int:
    count = 0
    await asyncio.to_thread(writer.add_requests, ())
    async for page in requests.pages():
        await asyncio.to_thread(writer.add_requests, page)
        count += len(page)
    return count


def _check_opening(page: BackupPage, opening: str) -> None:
    if page.opening != opening:
        raise Conflict("the store was opened anew while it was read, and may have gone back: begin again")
