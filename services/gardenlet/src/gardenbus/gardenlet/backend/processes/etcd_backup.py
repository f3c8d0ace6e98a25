"""Snapshots of a shoot's etcd, and their restoration with the deltas that go on from them.

    <backup bucket>/<technical id>--<uid>/20261123T032210Z-full-0-10482.db.gz
    <backup bucket>/<technical id>--<uid>/20261123T032710Z-delta-10482-10961.events.gz

A delta's changes are carried out by an etcd that nobody else uses. What is restored continues at a revision far above
the last one, so that no version is ever given twice, and every watch from before begins anew.
"""

import asyncio
import gzip
import hashlib
import shutil
import zlib
from collections.abc import Awaitable, Callable
from datetime import datetime
from io import BufferedIOBase
from pathlib import Path

import msgspec

from gardenbus.common.backups.catalog import Backup, Chain
from gardenbus.common.errors import NotFound
from gardenbus.common.ports.backups import BackupDestination
from gardenbus.gardenlet.backend.port import StepFailed
from gardenbus.gardenlet.backend.processes.binaries import ETCDCTL, ETCDUTL
from gardenbus.gardenlet.backend.processes.cluster import Cluster
from gardenbus.gardenlet.backend.processes.delta_files import unpack
from gardenbus.gardenlet.backend.processes.etcd_client import EtcdClient
from gardenbus.gardenlet.domain.control_plane import ETCD, ETCD_CA, ETCD_CLIENT, PEER, Component, etcd_url
from gardenbus.gardenlet.domain.etcd_events import transactions

REVISIONS_SKIPPED = 1_000_000_000
SNAPSHOT_SUFFIX = ".db.gz"
_PROGRAM_SECONDS = 120.0
_CHUNK_BYTES = 2**20

Ready = Callable[[Cluster, Component], Awaitable[EtcdClient]]
"""Starts an etcd with the arguments of a component, and waits until it responds."""


class EtcdBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot: its bucket, the file in it, the SHA-256 of what is packed there, and etcd's revision."""

    bucket: str
    key: str
    sha256: str
    revision: int

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.key.rpartition("/")[2]


async def save_snapshot(cluster: Cluster, folder: BackupDestination, now: datetime) -> tuple[Backup, str]:
    """Save all of an etcd that runs; returns the backup and its SHA-256. Raises StepFailed, Unavailable."""
    draft, packed = cluster.directory / "backup.draft", cluster.directory / "backup.draft.gz"
    draft.unlink(missing_ok=True)
    keys = cluster.keys
    try:
        await _run(
            cluster,
            ETCDCTL,
            f"--endpoints={etcd_url(cluster.where)}",
            f"--cacert={keys / ETCD_CA}.crt",
            f"--cert={keys / ETCD_CLIENT}.crt",
            f"--key={keys / ETCD_CLIENT}.key",
            "snapshot",
            "save",
            str(draft),
        )
        revision = await snapshot_revision(cluster, draft)
        digest = await asyncio.to_thread(_pack, draft, packed)
        backup = Backup(now.replace(microsecond=0), True, 0, revision, packed.stat().st_size, SNAPSHOT_SUFFIX)
        await folder.put(backup.name, packed)
    finally:
        for file in (draft, packed):
            file.unlink(missing_ok=True)
    return backup, digest


async def snapshot_revision(cluster: Cluster, file: Path) -> int:
    """Revision of a snapshot. Raises StepFailed."""
    status = await _run(cluster, ETCDUTL, "snapshot", "status", str(file), "--write-out=json")
    return msgspec.json.decode(status, type=_SnapshotStatus).revision


class _SnapshotStatus(msgspec.Struct):
    revision: int


async def restore_chain(
    cluster: Cluster, folder: BackupDestination, chain: Chain, ready: Ready, *, sha256: str = ""
) -> None:
    """Restore a snapshot and its deltas, for an etcd that has no data and does not run.

    Cut at any point, it leaves no data, and is begun again. Raises StepFailed, BackupInvalid, NotFound, Unavailable.
    """
    scratch = cluster.directory / "restore.draft"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(mode=0o700)
    try:
        packed = await folder.fetch(chain.full.name, scratch)
        snapshot, restored = scratch / "snapshot", scratch / "etcd"
        digest = await asyncio.to_thread(_unpack, packed, snapshot)
        if digest is None or (sha256 and digest != sha256):
            raise StepFailed(f"The etcd snapshot {chain.full.name} in {folder.place} is damaged.")
        if chain.deltas:
            snapshot = await _replayed(cluster, folder, chain, ready, snapshot, scratch / "replay")
        options = (f"--bump-revision={REVISIONS_SKIPPED}", "--mark-compacted")
        if chain.deltas:  # the database of a stopped etcd has no hash at its end, as a snapshot has
            options = (*options, "--skip-hash-check")
        await _restore(cluster, snapshot, restored, *options)
        cluster.adopt_data(restored)
    except NotFound as error:
        raise StepFailed(
            f"The etcd snapshot is gone: {error.message}. backend.backups of all seeds must be one place.",
            ("ERR_INFRA_DEPENDENCIES",),
        ) from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


async def _replayed(
    cluster: Cluster, folder: BackupDestination, chain: Chain, ready: Ready, snapshot: Path, data: Path
) -> Path:
    """Carry out all changes of a chain's deltas; returns the file of the database."""
    await _restore(cluster, snapshot, data)
    (component,) = cluster.components([ETCD])
    given = {"--data-dir": str(data), "--max-txn-ops": "1000000", "--unsafe-no-fsync": "true"}
    kept = tuple(each for each in component.arguments if each.partition("=")[0] not in given)
    replaying = component._replace(arguments=(*kept, *(f"{name}={value}" for name, value in given.items())))
    client = await ready(cluster, replaying)
    leases: set[int] = set()
    for delta in chain.deltas:
        file = await folder.fetch(delta.name, data.parent)
        entry = cluster.directory.name
        changes = await asyncio.to_thread(
            unpack, file, delta.name, entry=entry, after=delta.after, through=delta.version
        )
        for revision, events in transactions(changes):
            for lease in {event.kv.lease for event in events} - leases - {0}:
                await client.grant(lease)
                leases.add(lease)
            if (found := await client.transact(events)) != revision:
                raise StepFailed(f"{delta.name} does not fit: etcd is at revision {found}, and not at {revision}.")
    await cluster.end((ETCD,))
    return data / "member" / "snap" / "db"


async def _restore(cluster: Cluster, snapshot: Path, data: Path, *options: str) -> None:
    assert cluster.state is not None
    peer = f"https://{cluster.where.address}:{cluster.where.ports[PEER]}"
    await _run(
        cluster,
        ETCDUTL,
        "snapshot",
        "restore",
        str(snapshot),
        f"--data-dir={data}",
        "--name=etcd-main",
        f"--initial-cluster=etcd-main={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster-token={cluster.state.parameters.technical_id}",
        *options,
    )


async def _run(cluster: Cluster, program: str, *arguments: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        str(cluster.program(program)),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_PROGRAM_SECONDS):
            output, errors = await process.communicate()
    except TimeoutError as error:
        raise StepFailed(f"{program} {' '.join(arguments)} did not end within {_PROGRAM_SECONDS:g} s.") from error
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        words = errors.decode(errors="replace").strip().splitlines()
        raise StepFailed(f"{program} failed ({process.returncode}): {words[-1][-300:] if words else 'without a word'}")
    return output


def _pack(draft: Path, packed: Path) -> str:
    """Pack a snapshot; returns the SHA-256 of what it was before."""
    packed.unlink(missing_ok=True)
    packed.touch(mode=0o600)
    with draft.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        return _copy(source, target)


def _unpack(file: Path, snapshot: Path) -> str | None:
    """Unpack a snapshot; returns its SHA-256, None for a file that is damaged."""
    try:
        with gzip.open(file, "rb") as source, snapshot.open("wb") as target:
            return _copy(source, target)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        return None


def _copy(source: BufferedIOBase, target: BufferedIOBase) -> str:
    """Returns the SHA-256 of what was copied."""
    found = hashlib.sha256()
    while chunk := source.read(_CHUNK_BYTES):
        found.update(chunk)
        target.write(chunk)
    return found.hexdigest()
