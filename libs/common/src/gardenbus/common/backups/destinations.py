"""Destinations by their addresses: a directory, as a path or as `file:///path`."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from gardenbus.common.backups.directory import DirectoryDestination
from gardenbus.common.errors import BadRequest
from gardenbus.common.ports.backups import BackupDestination


def destination_of(address: str) -> BackupDestination:
    """Open a destination. Raises BadRequest for an address that is none."""
    scheme = urlsplit(address).scheme if "://" in address else ""
    if not address or scheme not in ("", "file"):
        raise BadRequest(f"{address!r} is no destination of backups: write a directory, as /var/backups/gardenbus")
    if scheme:
        parts = urlsplit(address)
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise BadRequest(f"{address!r} names another machine: write file:///path")
        return DirectoryDestination(Path(unquote(parts.path)))
    return DirectoryDestination(Path(address).expanduser().absolute())
