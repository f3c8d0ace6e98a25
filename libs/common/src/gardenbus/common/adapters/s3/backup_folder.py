"""Backups in S3, or in what speaks it.

A file is there once its upload has ended, whole or not at all; large ones go up in parts. What is not in the address is
read from the environment, as Amazon's own tools do: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN,
AWS_REGION, AWS_ENDPOINT_URL.

The library is called in threads, not by its functions for asyncio: those resume their callers from threads that Python
does not know, and one that is not done with that when the process ends aborts it
(https://github.com/PyO3/pyo3-async-runtimes/issues/40). On busy cores 1 in 15 listings of a bucket ended so.
"""

import asyncio
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from gardenbus.common.errors import NotFound, Unavailable
from gardenbus.common.ports.backups import StoredFile

if TYPE_CHECKING:
    from obstore import ListResult, ObjectMeta

_REQUEST_SECONDS = 60.0
_RETRY_SECONDS = 20.0
_RETRIES = 4

Result = TypeVar("Result")


def open_bucket(name: str, *, endpoint: str = "", region: str = "") -> S3Store:
    """Open a bucket, which must be there; nothing is sent yet. Raises Unavailable for settings that nobody knows."""
    given = {"endpoint": endpoint, "region": region}
    try:
        return S3Store(
            name,
            client_options={"allow_http": True, "timeout": timedelta(seconds=_REQUEST_SECONDS)},
            retry_config={"max_retries": _RETRIES, "retry_timeout": timedelta(seconds=_RETRY_SECONDS)},
            **{key: value for key, value in given.items() if value},  # pyright: ignore[reportArgumentType]
        )
    except BaseError as error:
        raise Unavailable(f"the backups in s3://{name}: {_words(error)}") from error


class S3Folder:
    """See `ports.backups.BackupFolder`. `prefix` has no slash at its ends."""

    def __init__(self, store: S3Store, bucket: str, prefix: str = "") -> None:
        self._store = store
        self._bucket = bucket
        self._prefix = prefix

    @property
    def place(self) -> str:
        """The address, without endpoint and region."""
        return f"s3://{self._path_in(self._bucket, self._prefix)}"

    async def list(self) -> Sequence[StoredFile]:
        """Objects of this folder, without those of folders in it."""
        found = await self._found()
        return sorted(StoredFile(each["path"].rpartition("/")[2], each["size"]) for each in found["objects"])

    async def put(self, name: str, file: Path) -> None:
        """Upload a file."""
        with self._translated():
            await _in_thread(lambda: obstore.put(self._store, self._path_in(self._prefix, name), file))

    async def fetch(self, name: str, into: Path) -> Path:
        """Download an object in chunks."""
        with self._translated(f"no backup {name} in {self.place}"):
            return await _in_thread(lambda: self._download(name, into / name))

    async def delete(self, name: str) -> None:
        """Delete an object; S3 does not say whether it was there."""
        with self._translated():
            await _in_thread(lambda: obstore.delete(self._store, self._path_in(self._prefix, name)))

    async def close(self) -> None:
        """Nothing is to be closed: the library lets go of connections that are idle."""

    def folder(self, name: str) -> "S3Folder":
        """A folder below this one."""
        return S3Folder(self._store, self._bucket, self._path_in(self._prefix, name))

    async def folders(self) -> Sequence[str]:
        """Names of folders that have anything in them."""
        found = await self._found()
        return sorted(each.rstrip("/").rpartition("/")[2] for each in found["common_prefixes"])

    async def make(self) -> None:
        """S3 has no empty folders: see whether the bucket can be listed."""
        await self.list()

    async def remove(self) -> None:
        """Delete all objects below this folder."""
        with self._translated():
            await _in_thread(self._delete_all)

    async def _found(self) -> "ListResult[Sequence[ObjectMeta]]":
        with self._translated():
            return await _in_thread(
                lambda: obstore.list_with_delimiter(  # pyright: ignore[reportUnknownMemberType] - Arrow's
                    self._store, self._prefix or None
                )
            )

    def _download(self, name: str, path: Path) -> Path:
        response = obstore.get(self._store, self._path_in(self._prefix, name))
        with path.open("wb") as target:
            for chunk in response.stream():
                target.write(chunk)
        return path

    def _delete_all(self) -> None:
        prefix = f"{self._prefix}/" if self._prefix else None
        for found in obstore.list(self._store, prefix):  # pyright: ignore[reportUnknownMemberType] - Arrow's
            obstore.delete(self._store, [each["path"] for each in found])

    @staticmethod
    def _path_in(prefix: str, name: str) -> str:
        return "/".join(each for each in (prefix, name) if each)

    @contextmanager
    def _translated(self, missing: str = "") -> Generator[None]:
        """Raises NotFound with the sentence `missing`, and Unavailable."""
        try:
            yield
        except FileNotFoundError as error:
            if missing:
                raise NotFound(missing) from error
            raise Unavailable(f"the backups in {self.place}: {_words(error)}") from error
        except (BaseError, OSError, ValueError) as error:
            raise Unavailable(f"the backups in {self.place}: {_words(error)}") from error


async def _in_thread(function: Callable[[], Result]) -> Result:
    """Call in a thread of its own. Neither a caller that is cancelled nor the end of the process waits for its end."""
    called = Future[Result]()
    called.set_running_or_notify_cancel()
    Thread(target=_call, args=(function, called), name="s3", daemon=True).start()
    return await asyncio.wrap_future(called)


def _call(function: Callable[[], Result], called: Future[Result]) -> None:
    try:
        called.set_result(function())
    except BaseException as error:  # noqa: BLE001  the caller's
        called.set_exception(error)


def _words(error: Exception) -> str:
    """Message of an error, without the dump of structures that the library appends."""
    text = " ".join(str(error).partition("Debug source")[0].split())
    return text[:300] or type(error).__name__
