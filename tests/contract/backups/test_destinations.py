"""Destinations of backups: one suite for a directory and for an object store of a real JetStream."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from gardenbus.common.backups.destinations import destination_of
from gardenbus.common.errors import BadRequest, NotFound, Unavailable
from gardenbus.common.ports.backups import BackupDestination, StoredFile
from tests.support.servers import Server, free_port, start_nats

_numbers = itertools.count()


@pytest.fixture(scope="module")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A nats-server of these tests' own."""
    server = start_nats(tmp_path_factory.mktemp("nats"))
    yield server
    server.stop()


@pytest.fixture(params=["directory", "bucket"])
async def destination(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BackupDestination]:
    """An empty destination."""
    if request.param == "directory":
        opened = destination_of(str(tmp_path / "backups"))
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
    ],
)
def test_an_address_that_is_none_is_refused_with_an_example(address: str) -> None:
    with pytest.raises(BadRequest, match="write"):
        destination_of(address)
