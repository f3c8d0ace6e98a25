"""Backups in an object store of JetStream, best one of another NATS: what is on the landscape's own goes with its disk.

The client's object store publishes a file in chunks and its name last, so that a name stands for a whole file; a digest
goes along, and is compared when a file is fetched. In a cluster an operation that fails is begun anew: another server
leads the bucket after some seconds.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import nats
from nats.aio.client import Client
from nats.errors import Error as NatsError
from nats.js.errors import BucketNotFoundError, ObjectNotFoundError
from nats.js.errors import NotFoundError as NothingFoundError
from nats.js.object_store import ObjectStore

from gardenbus.common.errors import NotFound, Unavailable
from gardenbus.common.ports.backups import StoredFile

CONNECT_SECONDS = 5
FAILOVER_SECONDS = 20.0
"""Longest time in which an operation is begun anew."""

LIST_SECONDS = 10.0
CLUSTER_COPIES = 3

Result = TypeVar("Result")


class BucketDestination:
    """See `ports.backups.BackupDestination`. A missing bucket is made.

    `urls` may have passwords. `copies` of the bucket are kept in a cluster: 3 for 0; None is 3 for a bucket that is
    made, and leaves others as they are.
    """

    def __init__(self, urls: Sequence[str], bucket: str, *, place: str, copies: int | None = None) -> None:
        self._urls = list(urls)
        self._bucket = bucket
        self._place = place
        self._copies = copies
        self._is_clustered = len(urls) > 1
        self._client: Client | None = None

    @property
    def place(self) -> str:
        """The address without user and password."""
        return self._place

    async def list(self) -> Sequence[StoredFile]:
        """All objects of the bucket."""

        async def work(store: ObjectStore) -> Sequence[StoredFile]:
            try:
                found = await asyncio.wait_for(store.list(), LIST_SECONDS)
            except NothingFoundError:
                return []
            return sorted(StoredFile(each.name, each.size or 0) for each in found if not each.deleted)

        return await self._done(work)

    async def put(self, name: str, file: Path) -> None:
        """Store a file as an object."""

        async def work(store: ObjectStore) -> None:
            with await asyncio.to_thread(file.open, "rb") as source:
                await store.put(name, source)

        await self._done(work)

    async def fetch(self, name: str, into: Path) -> Path:
        """Write an object to a file; its digest is compared."""
        path = into / name

        async def work(store: ObjectStore) -> Path:
            try:
                with await asyncio.to_thread(path.open, "wb") as target:
                    await store.get(name, writeinto=target)
            except ObjectNotFoundError as error:
                raise NotFound(f"no backup {name} in {self._place}") from error
            return path

        return await self._done(work)

    async def delete(self, name: str) -> None:
        """Delete an object and its chunks."""

        async def work(store: ObjectStore) -> None:
            try:
                await store.delete(name)
            except ObjectNotFoundError:
                return

        await self._done(work)

    async def close(self) -> None:
        """Close the connection."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _done(self, work: Callable[[ObjectStore], Awaitable[Result]]) -> Result:
        deadline = time.monotonic() + FAILOVER_SECONDS
        while True:
            try:
                async with self._opened() as store:
                    return await work(store)
            except Unavailable:
                if not self._is_clustered or time.monotonic() > deadline:
                    raise
            await asyncio.sleep(1)

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[ObjectStore]:
        try:
            if self._client is None:
                self._client = await nats.connect(  # pyright: ignore[reportUnknownMemberType] - its options are untyped
                    self._urls, connect_timeout=CONNECT_SECONDS, allow_reconnect=True, max_reconnect_attempts=1
                )
                server: dict[str, Any] = self._client._server_info  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
                self._is_clustered = bool(server.get("cluster"))
            yield await self._bucket_of(self._client)
        except (NatsError, OSError, TimeoutError) as error:
            await self.close()
            raise Unavailable(f"the backups in {self._place}: {error or type(error).__name__}") from error

    async def _bucket_of(self, client: Client) -> ObjectStore:
        """The bucket, with as many copies as it is to have."""
        jetstream = client.jetstream()  # pyright: ignore[reportUnknownMemberType]
        copies = (self._copies or CLUSTER_COPIES) if self._is_clustered else 1
        try:
            store = await jetstream.object_store(self._bucket)
        except BucketNotFoundError:
            return await jetstream.create_object_store(self._bucket, replicas=copies)  # pyright: ignore[reportUnknownMemberType]
        config = (await store.status()).stream_info.config
        if self._copies is not None and config.num_replicas != copies:
            await jetstream.update_stream(config, num_replicas=copies)  # pyright: ignore[reportUnknownMemberType]
        return store
