"""Backups in an object store of JetStream, best one of another NATS: what is on the landscape's own goes with its disk.

The client's object store publishes a file in chunks and its name last, so that a name stands for a whole file; a digest
goes along, and is compared when a file is fetched.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import BucketNotFoundError, ObjectNotFoundError
from nats.js.errors import NotFoundError as NothingFoundError
from nats.js.object_store import ObjectStore

from gardenbus.common.errors import NotFound, Unavailable
from gardenbus.common.ports.backups import StoredFile

CONNECT_SECONDS = 5


class BucketDestination:
    """See `ports.backups.BackupDestination`. `url` may have a password; a missing bucket is made."""

    def __init__(self, url: str, bucket: str, *, place: str) -> None:
        self._url = url
        self._bucket = bucket
        self._place = place
        self._client: Client | None = None

    @property
    def place(self) -> str:
        """The address without user and password."""
        return self._place

    async def list(self) -> Sequence[StoredFile]:
        """All objects of the bucket."""
        async with self._opened() as store:
            try:
                found = await store.list()
            except NothingFoundError:
                return []
        return sorted(StoredFile(each.name, each.size or 0) for each in found if not each.deleted)

    async def put(self, name: str, file: Path) -> None:
        """Store a file as an object."""
        async with self._opened() as store:
            with await asyncio.to_thread(file.open, "rb") as source:
                await store.put(name, source)

    async def fetch(self, name: str, into: Path) -> Path:
        """Write an object to a file; its digest is compared."""
        path = into / name
        async with self._opened() as store:
            try:
                with await asyncio.to_thread(path.open, "wb") as target:
                    await store.get(name, writeinto=target)
            except ObjectNotFoundError as error:
                raise NotFound(f"no backup {name} in {self._place}") from error
        return path

    async def delete(self, name: str) -> None:
        """Delete an object and its chunks."""
        async with self._opened() as store:
            try:
                await store.delete(name)
            except ObjectNotFoundError:
                return

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[ObjectStore]:
        try:
            if self._client is None:
                self._client = await nats.connect(  # pyright: ignore[reportUnknownMemberType] - its options are untyped
                    self._url, connect_timeout=CONNECT_SECONDS, allow_reconnect=True, max_reconnect_attempts=1
                )
            jetstream = self._client.jetstream()  # pyright: ignore[reportUnknownMemberType]
            try:
                store = await jetstream.object_store(self._bucket)
            except BucketNotFoundError:
                store = await jetstream.create_object_store(self._bucket)  # pyright: ignore[reportUnknownMemberType]
            yield store
        except (NatsError, OSError, TimeoutError) as error:
            await self.close()
            raise Unavailable(f"the backups in {self._place}: {error or type(error).__name__}") from error
