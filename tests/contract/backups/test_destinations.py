"""Destinations of backups: one suite for a directory, an object store of a real JetStream, and S3 (moto's server)."""

import asyncio
import itertools
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Literal

import pytest

from gardenbus.common.backups.destinations import destination_of, folder_of
from gardenbus.common.backups.directory import DirectoryDestination
from gardenbus.common.errors import BadRequest, NotFound, Unavailable
from gardenbus.common.ports.backups import BackupDestination, BackupFolder, StoredFile
from tests.support.s3_server import KEYS, make_bucket, start_s3
from tests.support.servers import Server, free_port, start_nats

_numbers = itertools.count()


@pytest.fixture(scope="module")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A nats-server of these tests' own."""
    server = start_nats(tmp_path_factory.mktemp("nats"))
    yield server
    server.stop()


@pytest.fixture(scope="module")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An S3 server of these tests' own."""
    server = start_s3(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment's keys for S3."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def in_a_bucket(request: pytest.FixtureRequest, folder: str) -> str:
    """The address of a folder in a new bucket of S3."""
    address = make_bucket(request.getfixturevalue("s3_server"), f"backups-{next(_numbers)}")
    return address.replace("?", f"{folder}?", 1)


@pytest.fixture(params=["directory", "bucket", "s3", "s3 folder"])
async def destination(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BackupDestination]:
    """An empty destination."""
    if request.param == "directory":
        opened = destination_of(str(tmp_path / "backups"))
    elif request.param.startswith("s3"):
        opened = destination_of(in_a_bucket(request, "/a/b" if request.param == "s3 folder" else ""))
    else:
        server: Server = request.getfixturevalue("nats_server")
        opened = destination_of(f"{server.url}/backups-{next(_numbers)}")
    yield opened
    await opened.close()


def a_file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "source"
    path.write_bytes(content)
    return path


async def test_an_empty_destination_has_no_files(destination: BackupDestination) -> None:
    assert list(await destination.list()) == []


async def test_what_is_put_is_listed_and_fetched(destination: BackupDestination, tmp_path: Path) -> None:
    large = b"0123456789" * 50_000
    await destination.put("b.jsonl.gz", a_file(tmp_path, large))
    await destination.put("a.jsonl.gz", a_file(tmp_path, b"x"))
    assert list(await destination.list()) == [StoredFile("a.jsonl.gz", 1), StoredFile("b.jsonl.gz", len(large))]
    (tmp_path / "scratch").mkdir()
    fetched = await destination.fetch("b.jsonl.gz", tmp_path / "scratch")
    assert await asyncio.to_thread(fetched.read_bytes) == large


async def test_what_is_deleted_is_gone_and_may_be_deleted_again(destination: BackupDestination, tmp_path: Path) -> None:
    await destination.put("a", a_file(tmp_path, b"x"))
    await destination.put("b", a_file(tmp_path, b"y"))
    for _ in range(2):
        await destination.delete("a")
    assert [each.name for each in await destination.list()] == ["b"]
    with pytest.raises(NotFound, match="no backup a in"):
        await destination.fetch("a", tmp_path)


async def test_what_is_put_again_replaces_what_was_there(destination: BackupDestination, tmp_path: Path) -> None:
    for content in (b"older", b"new"):
        await destination.put("a", a_file(tmp_path, content))
    assert list(await destination.list()) == [StoredFile("a", 3)]


@pytest.fixture(params=["directory", "s3"])
async def folder(request: pytest.FixtureRequest, tmp_path: Path) -> BackupFolder:
    """A destination that has folders."""
    return folder_of(str(tmp_path / "backups") if request.param == "directory" else in_a_bucket(request, "/all"))


async def test_a_copy_that_cannot_be_finished_leaves_nothing_in_a_directory_and_an_abandoned_one_goes(
    tmp_path: Path,
) -> None:
    directory, source = tmp_path / "there", tmp_path / "source"
    source.write_bytes(b"one")
    (directory / "b.gz").mkdir(parents=True)
    young, old = directory / "young.gz.partial", directory / "old.gz.partial"
    young.write_bytes(b"of another process")
    old.write_bytes(b"of one that died")
    os.utime(old, (0, 0))
    destination = DirectoryDestination(directory)
    with pytest.raises(Unavailable, match="directory"):
        await destination.put("b.gz", source)
    assert sorted(path.name for path in directory.iterdir()) == ["b.gz", young.name]
    await destination.put("c.gz", source)
    assert [each.name for each in await destination.list()] == ["c.gz"]


async def test_folders_have_files_of_their_own_and_go_with_all_that_is_in_them(
    folder: BackupFolder, tmp_path: Path
) -> None:
    await folder.make()
    assert list(await folder.folders()) == []
    await folder.put("a", a_file(tmp_path, b"1"))
    await folder.folder("x").put("a", a_file(tmp_path, b"22"))
    await folder.folder("x").folder("y").put("a", a_file(tmp_path, b"333"))
    await folder.folder("xx").put("a", a_file(tmp_path, b"4444"))
    assert list(await folder.folders()) == ["x", "xx"]
    assert list(await folder.folder("x").list()) == [StoredFile("a", 2)]
    for _ in range(2):
        await folder.folder("x").remove()
    assert list(await folder.folders()) == ["xx"]
    assert list(await folder.list()) == [StoredFile("a", 1)]
    assert folder.folder("xx").place.endswith("/xx")


async def test_a_bucket_that_is_not_there_or_away_is_unavailable(s3_server: Server, tmp_path: Path) -> None:
    missing = destination_of(f"s3://nowhere-at-all/x?endpoint={s3_server.url}")
    for work in (missing.list, lambda: missing.put("a", a_file(tmp_path, b"x"))):
        with pytest.raises(Unavailable, match=r"the backups in s3://nowhere-at-all/x: .*(?i:bucket)"):
            await work()


async def test_a_destination_that_is_away_is_unavailable_without_its_password(tmp_path: Path) -> None:
    away = destination_of(f"nats://me:secret@127.0.0.1:{free_port()}/backups")
    with pytest.raises(Unavailable, match="the backups in nats://127") as raised:
        await away.list()
    assert "secret" not in raised.value.message
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="Not a directory"):
        await destination_of(str(tmp_path / "file" / "below")).put("a", tmp_path / "file")


@pytest.mark.parametrize(
    "address",
    [
        "",
        "s4://x",
        "http://host/x",
        "file://host/x",
        "nats://host:4222",
        "nats://host:4222/",
        "nats:///b",
        "nats://h/b.c",
        "s3://",
        "s3://x",
        "s3://Bucket/x",
        "s3://bucket/../x",
        "s3://bucket/x?endpoint=host",
        "s3://bucket/x?key=secret",
    ],
)
def test_an_address_that_is_none_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(BadRequest, match="write"):
        destination_of(address)


@pytest.mark.parametrize("address", ["", "nats://host:4222/backups", "http://host/x"])
def test_a_place_without_folders_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(BadRequest, match="write a directory"):
        folder_of(address)


LISTING = """
import asyncio, sys
from gardenbus.common.backups.destinations import destination_of
asyncio.run(destination_of(sys.argv[1]).list())
"""


@pytest.mark.long
async def test_a_process_that_listed_a_bucket_ends_by_itself(s3_server: Server) -> None:
    address = make_bucket(s3_server, f"backups-{next(_numbers)}")

    async def ended() -> int:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", LISTING, address)
        return await process.wait()

    codes = Counter[int]()
    for _ in range(30):  # the more processes than cores, the later the threads of each get their turn
        codes.update(await asyncio.gather(*(ended() for _ in range(4))))
    assert codes == {0: 120}


@pytest.mark.parametrize("method", ["list", "put"])
async def test_a_caller_that_is_cancelled_does_not_wait_for_s3(
    s3_server: Server, tmp_path: Path, method: Literal["list", "put"]
) -> None:
    destination = destination_of(make_bucket(s3_server, f"backups-{next(_numbers)}"))
    s3_server.pause()
    try:
        call = destination.list() if method == "list" else destination.put("a", a_file(tmp_path, b"x"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await call
    finally:
        s3_server.resume()
    assert list(await destination.list()) in ([], [StoredFile("a", 1)])
