"""Snapshots of a shoot's etcd in a backup bucket, which is a directory, and their restoration.

    <bucket>/<technical id>--<uid>/full-<revision>.db.gz

A restored etcd continues at a revision far above that of the snapshot, so that no version is ever given twice, and
every watch from before begins anew.
"""

import asyncio
import gzip
import hashlib
import shutil
from pathlib import Path

import msgspec

from gardenbus.agent.files import make_directory
from gardenbus.gardenlet.backend.port import StepFailed
from gardenbus.gardenlet.backend.processes.binaries import ETCDCTL, ETCDUTL
from gardenbus.gardenlet.backend.processes.cluster import Cluster
from gardenbus.gardenlet.domain.control_plane import ETCD_CA, ETCD_CLIENT, PEER, etcd_url

REVISIONS_SKIPPED = 1_000_000_000
_PROGRAM_SECONDS = 120.0
_CHUNK_BYTES = 2**20


class EtcdBackup(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot: its bucket, the file in it, its SHA-256, and etcd's revision."""

    bucket: str
    key: str
    sha256: str
    revision: int


class _SnapshotStatus(msgspec.Struct):
    revision: int


async def save_snapshot(cluster: Cluster, bucket: Path, entry: str) -> EtcdBackup:
    """Save a snapshot of an etcd that runs. Repeated without a write in between, it is the same. Raises StepFailed."""
    directory = bucket / entry
    make_directory(directory)
    draft = directory / ".snapshot.draft"
    draft.unlink(missing_ok=True)
    keys = cluster.keys
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
    status = msgspec.json.decode(
        await _run(cluster, ETCDUTL, "snapshot", "status", str(draft), "--write-out=json"), type=_SnapshotStatus
    )
    file = directory / f"full-{status.revision}.db.gz"
    digest = await asyncio.to_thread(_store, draft, file)
    return EtcdBackup(bucket=bucket.name, key=f"{entry}/{file.name}", sha256=digest, revision=status.revision)


async def restore_snapshot(cluster: Cluster, file: Path, backup: EtcdBackup) -> None:
    """Restore a snapshot for an etcd that has no data and does not run. Raises StepFailed."""
    snapshot, draft = cluster.directory / "snapshot.draft", cluster.directory / "etcd.draft"
    if not file.exists():  # noqa: ASYNC240  one look at a directory
        raise StepFailed(
            f"The etcd snapshot {backup.key} is not in {file.parents[1]}: backend.backups of both seeds must be one "
            "directory.",
            ("ERR_INFRA_DEPENDENCIES",),
        )
    digest = await asyncio.to_thread(_unpack, file, snapshot)
    if digest != backup.sha256:
        raise StepFailed(f"The etcd snapshot {file} is damaged: its SHA-256 is {digest}, not {backup.sha256}.")
    shutil.rmtree(draft, ignore_errors=True)
    assert cluster.state is not None
    peer = f"https://{cluster.where.address}:{cluster.where.ports[PEER]}"
    await _run(
        cluster,
        ETCDUTL,
        "snapshot",
        "restore",
        str(snapshot),
        f"--data-dir={draft}",
        "--name=etcd-main",
        f"--initial-cluster=etcd-main={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster-token={cluster.state.parameters.technical_id}",
        f"--bump-revision={REVISIONS_SKIPPED}",
        "--mark-compacted",
    )
    draft.rename(cluster.data)
    snapshot.unlink(missing_ok=True)


async def _run(cluster: Cluster, program: str, *arguments: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        str(cluster.programs[program]),
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


def _store(draft: Path, file: Path) -> str:
    """Pack a snapshot; returns the SHA-256 of what it was before. One of this revision that is there already stays."""
    digest = file.with_suffix(".sha256")
    if file.exists() and digest.exists():
        draft.unlink()
        return digest.read_text()
    found = hashlib.sha256()
    packed = file.with_name(f".{file.name}.draft")
    with draft.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        while chunk := source.read(_CHUNK_BYTES):
            found.update(chunk)
            target.write(chunk)
    packed.replace(file)
    digest.write_text(found.hexdigest())
    draft.unlink()
    return found.hexdigest()


def _unpack(file: Path, snapshot: Path) -> str:
    found = hashlib.sha256()
    with gzip.open(file, "rb") as source, snapshot.open("wb") as target:
        while chunk := source.read(_CHUNK_BYTES):
            found.update(chunk)
            target.write(chunk)
    return found.hexdigest()
