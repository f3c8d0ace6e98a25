"""Backups of the store: reading what changed above a version, putting it into an empty store, and where files are kept.

Every change of an object has a version of its own, so a version is a position in the history of the store. What lies
above a version, with the removals that are remembered, is a delta; what lies above 0 is a full backup.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from gardenbus.common.api.keys import ObjectKey

RedisValue = str | dict[str, str]
"""A value of Redis: text, or `{"base64": …}` where it is none."""


class BackupRecord(msgspec.Struct, frozen=True, rename={"fields": "f", "is_removed": "d"}, omit_defaults=True):
    """An object as the store has it, or (`is_removed`) what it remembers of its removal."""

    key: str
    version: int
    fields: Mapping[str, RedisValue]
    is_removed: bool = False

    @property
    def object_key(self) -> ObjectKey:
        """Its kind, namespace and name."""
        return ObjectKey.from_stored(self.key)


class WaitingRequest(msgspec.Struct, frozen=True, tag_field="type", tag="request"):
    """A durable request that waited in REQUESTS: as it was sent (`at`), and its place on the bus.

    `headers` has who sent it, as the server stated it, where the sender was of another account.
    """

    subject: str
    headers: Mapping[str, str]
    body: bytes
    incarnation: int
    sequence: int
    at: str


class StoreState(msgspec.Struct, frozen=True):
    """The rest of the store, which is small: counters, positions of streams, fencing tokens, losses."""

    numbers: tuple[str, ...]
    hashes: tuple[Mapping[str, RedisValue], ...]
    losses: tuple[str, ...]


class BackupPage(NamedTuple):
    """Part of what is stored above a version, complete up to `version`; `state` comes with the last page.

    `opening` changes whenever the store may have gone back: what was read before and after it is of two histories.
    """

    opening: str
    store_format: int
    version: int
    records: Sequence[BackupRecord]
    state: StoreState | None


class RestoreResult(NamedTuple):
    """Numbers of objects, and of removals that are remembered, that the store has after a restore."""

    objects: int
    removals: int


class BackupStore(Protocol):
    """The store, as far as backups need it. All methods raise Unavailable."""

    async def page(self, after: int, *, is_delta: bool = False) -> BackupPage:
        """Read a page above a version.

        Raises NotFound for a delta that would miss removals, which are not remembered any more.
        """
        ...

    async def changes(self, after: int) -> tuple[str, int]:
        """Return the opening of the store, and how many objects were written or removed above a version."""
        ...

    async def has_any(self, objects: Sequence[BackupRecord]) -> bool:
        """True if the store has one of these objects, or remembers its removal: by the uid, whatever its version."""
        ...

    async def begin_restore(self, name: str, leader: str, store_format: int) -> None:
        """Close the store and take its lead, so that no relay opens it before the restore has ended.

        Raises Conflict where the store is in use or not empty, or the format of what is restored is a newer one than
        its own, with what is to be done.
        """
        ...

    async def restore(self, records: Sequence[BackupRecord]) -> None:
        """Store records as they were; may be repeated. Raises Conflict when somebody else leads by now."""
        ...

    async def finish_restore(
        self, state: StoreState, taken_at: str, owners: Sequence[str], restored: RestoreResult, *, put_back: str = ""
    ) -> RestoreResult:
        """Store the rest, note the loss of what came after `taken_at`, and give the lead back.

        `owners`: uids that objects name as their owners; objects of those that are not there are collected.
        `restored`: what the store has to have by now. Raises Conflict where it has less, as a server that was promoted
        meanwhile may: the store stays closed, and the same restore goes over it once more. `put_back`: the stream to
        which was put back all that waited in it, so that none of that counts as lost.
        """
        ...


class StoredFile(NamedTuple):
    """A file at a destination; `size` in bytes."""

    name: str
    size: int


class BackupDestination(Protocol):
    """Place of backups: files of flat names, each there whole or not at all. Raises Unavailable."""

    @property
    def place(self) -> str:
        """The destination as people write it, without secrets."""
        ...

    async def list(self) -> Sequence[StoredFile]:
        """All files, in the order of their names."""
        ...

    async def put(self, name: str, file: Path) -> None:
        """Store a file under a name. Only then does the name exist."""
        ...

    async def fetch(self, name: str, into: Path) -> Path:
        """Return the path of a local copy, made below the folder `into` if need be. Raises NotFound."""
        ...

    async def delete(self, name: str) -> None:
        """Remove a file; none is fine."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


class BackupFolder(BackupDestination, Protocol):
    """A destination that has folders: each of them is a destination, too. Raises Unavailable."""

    def folder(self, name: str) -> "BackupFolder":
        """A folder below this one, whether it is there or not. Raises BadRequest for a name that leads elsewhere."""
        ...

    async def folders(self) -> Sequence[str]:
        """Names of the folders below this one, in order; one without any file may be left out."""
        ...

    async def make(self) -> None:
        """Have the folder be there, and be within reach; idempotent."""
        ...

    async def remove(self) -> None:
        """Remove the folder with all that is in it and below it; none is fine."""
        ...
