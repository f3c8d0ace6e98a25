"""Destinations by their addresses.

| address                        | where                                                               |
|--------------------------------|---------------------------------------------------------------------|
| `/var/backups`, `file:///path` | a directory                                                         |
| `nats://host:4222/BUCKET`      | an object store of JetStream (`tls://` with TLS; user and password) |
"""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from gardenbus.common.backups.directory import DirectoryDestination
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.backups import BackupDestination

_BUCKET = re.compile(r"[A-Za-z0-9_-]+")


def destination_of(address: str) -> BackupDestination:
    """Open a destination. Raises BadRequest for an address that is none."""
    scheme = address.partition("://")[0] if "://" in address else ""
    if scheme in ("nats", "tls"):
        return _bucket_of(address)
    if not address or scheme not in ("", "file"):
        raise BadRequest(
            f"{scheme or address!r} is no destination of backups: write a directory, as /var/backups/gardenbus, or an "
            "object store of JetStream, as nats://host:4222/BUCKET"
        )
    if scheme:
        parts = urlsplit(address)
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise BadRequest(f"{address!r} names another machine: write file:///path")
        return DirectoryDestination(Path(unquote(parts.path)))
    return DirectoryDestination(Path(address).expanduser().absolute())


def _bucket_of(address: str) -> BackupDestination:
    from gardenbus.common.adapters.nats.backup_bucket import BucketDestination  # noqa: PLC0415  slow to import

    server, _, bucket = address.rpartition("/")
    shown = f"{address.partition('://')[0]}://{address.partition('://')[2].rpartition('@')[2]}"
    try:
        has_host = bool(urlsplit(server).hostname) and urlsplit(server).port != 0
    except ValueError:
        has_host = False
    if not has_host or not _BUCKET.fullmatch(bucket):
        raise BadRequest(f"{shown} names no bucket: write nats://host:4222/BUCKET, of letters, digits, '-' and '_'")
    return BucketDestination(server, bucket, place=shown)
