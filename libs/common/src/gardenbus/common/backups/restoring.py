"""Checks chains of backups, and restores one into an empty store.

A restore takes the store's lead, so that no relay opens the store before all of it is there. If it dies, the store
stays closed: the same restore, begun again, goes over it once more. Requests that waited are put back before it ends.
"""

import asyncio
import tempfile
import uuid
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import chain as chain_of
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from gardenbus.common.backups.catalog import Backup, Catalog, Chain, chain_to, problems_of
from gardenbus.common.backups.creating import read_catalog
from gardenbus.common.backups.files import BackupInvalid, BackupReader, BackupTrailer, joined
from gardenbus.common.backups.later_revocations import later_revocations
from gardenbus.common.backups.requests import WaitingRequests
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.backups import BackupDestination, BackupRecord, BackupStore, RestoreResult

_TOGETHER = 100
"""Records in one round trip."""


class Checked(NamedTuple):
    """A backup that was read to its end, or what is wrong with it."""

    backup: Backup
    problem: str
    taken_at: str = ""
    records: int = 0
    requests: int = 0


class RestoredChain(NamedTuple):
    """Result of a restore: the chain, the moment that the store is as of, its objects, and the requests put back."""

    chain: Chain
    taken_at: str
    objects: int
    requests: int = 0
    unread: tuple[str, ...] = ()
    """Later backups that could not be read: what was revoked since then is not known."""


def chosen_chain(catalog: Catalog, name: str, place: str) -> Chain:
    """The chain to restore: up to a name, or (`""`) the latest. Raises NotFound, BackupInvalid for what is missing."""
    if name:
        chain = chain_to(catalog, name)
        if chain is not None:
            return chain
        missing = next((each for each in problems_of(catalog) if each.startswith(name)), "")
        raise BackupInvalid(missing) if missing else NotFound(f"no backup {name} in {place}: gardenbus backup ls")
    if not catalog.chains:
        raise NotFound(f"no full backup in {place}")
    chain = catalog.chains[-1]
    later = [each for each in catalog.loose if each.taken_at >= chain.last.taken_at]
    if later:
        raise BackupInvalid(
            f"{later[0].name} goes on from version {later[0].after}, and no backup here ends there: find the one that "
            f"is missing, or restore up to the one before the gap: --to {chain.last.name}"
        )
    return chain


async def verify(destination: BackupDestination, chain: Chain) -> Sequence[Checked]:
    """Read all backups of a chain, and compare each with its name and with those before it."""
    results: list[Checked] = []
    opening = ""
    for backup in chain.backups:
        try:
            async with _readers(destination, [backup]) as (reader,):
                trailer = await asyncio.to_thread(_check, reader, backup, opening)
            opening = reader.header.opening
            results.append(Checked(backup, "", trailer.taken_at, trailer.records, trailer.requests or 0))
        except (BackupInvalid, NotFound) as error:
            results.append(Checked(backup, error.message))
    return results


async def restore(
    store: BackupStore,
    destination: BackupDestination,
    chain: Chain,
    prefix: str,
    requests: WaitingRequests | None = None,
    leader: str = "",
) -> RestoredChain:
    """Check a chain, store it in an empty store, and put back the requests that waited at its end (None: left out).

    Who was revoked after the chain's end, as a later backup has it, stays revoked.
    Who tries again after a failure does so as the same `leader`, whose lead stays for a while; "" is a new one.
    Raises BackupInvalid, Conflict, NotFound, Unavailable.
    """
    async with _readers(destination, chain.backups) as readers:
        for backup, reader in zip(chain.backups, readers, strict=True):
            await asyncio.to_thread(_check, reader, backup, readers[0].header.opening)
        header = readers[-1].header
        if header.prefix != prefix:
            raise BackupInvalid(
                f"{chain.last.name} is of the landscape {header.prefix}, and this is {prefix}: restore it with "
                f"--prefix {header.prefix}"
            )
        later = await later_revocations(destination, await read_catalog(destination), chain, prefix)
        newest_format = max(reader.header.store_format for reader in readers)
        await store.begin_restore(chain.last.name, leader or f"restore-{uuid.uuid4().hex[:8]}", newest_format)
        owners: set[str] = set()
        count = removals = 0
        records = _with_later(joined(readers), later.record)
        while page := await asyncio.to_thread(list, islice(records, _TOGETHER)):
            await store.restore(page)
            owners.update(owner for record in page for owner in _owners(record))
            count += len(page)
            removals += sum(record.is_removed for record in page)
        trailer = readers[-1].complete
        put_back = await _put_back(readers[-1], requests) if requests is not None else ""
        restored = RestoreResult(count - removals, removals)
        result = await store.finish_restore(
            trailer.state, trailer.taken_at, sorted(owners), restored, put_back=put_back
        )
    waiting = (trailer.requests or 0) if put_back else 0
    return RestoredChain(chain, trailer.taken_at, result.objects, waiting, later.unread)


def _with_later(records: Iterator[BackupRecord], later: BackupRecord | None) -> Iterator[BackupRecord]:
    """Records, one of them (or one more) as a later backup has it."""
    if later is None:
        return records
    return chain_of((record for record in records if record.key != later.key), (later,))


async def _put_back(reader: BackupReader, requests: WaitingRequests) -> str:
    """Put back what waited when the last backup of a chain was made; the stream, unless it was left out there."""
    saved = reader.requests()
    while page := await asyncio.to_thread(list, islice(saved, _TOGETHER)):
        await requests.put_back(page)
    return requests.stream if reader.complete.requests is not None else ""


def _owners(record: BackupRecord) -> Sequence[str]:
    owners = record.fields.get("own", "")
    return owners.split("\n") if owners and isinstance(owners, str) and not record.is_removed else ()


def _check(reader: BackupReader, backup: Backup, opening: str) -> BackupTrailer:
    """Read a backup to its end; `opening` of the store in those before it, or `""`. Raises BackupInvalid."""
    trailer, header = reader.check(), reader.header
    if (header.after, trailer.version, not header.previous) != (backup.after, backup.version, backup.is_full):
        raise BackupInvalid(f"{backup.name} holds versions {header.after} to {trailer.version}: it was renamed")
    if (trailer.requests or 0) != backup.waiting:
        raise BackupInvalid(f"{backup.name} holds {trailer.requests or 0} requests that waited: it was renamed")
    if opening and header.opening != opening:
        raise BackupInvalid(
            f"{backup.name} goes on from {header.previous}, which is missing: the store was opened anew since the "
            "backups before it, and may have gone back"
        )
    return trailer


@asynccontextmanager
async def _readers(destination: BackupDestination, backups: Sequence[Backup]) -> AsyncGenerator[Sequence[BackupReader]]:
    with tempfile.TemporaryDirectory(prefix="gardenbus-backup-") as scratch:
        paths = [await destination.fetch(each.name, Path(scratch)) for each in backups]
        yield [
            await asyncio.to_thread(BackupReader, path, each.name) for path, each in zip(paths, backups, strict=True)
        ]
