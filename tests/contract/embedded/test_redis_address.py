"""Where an embedded Redis listens, and who gets in."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.errors import Unavailable
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.external import probe_servers
from gardenbus.embedded.process_specs import ProcessSpec
from gardenbus.embedded.processes import ManagedProcess
from gardenbus.embedded.servers import REDIS, RedisAddress, find_server, redis_configuration
from tests.support.eventually import eventually
from tests.support.servers import free_port


@asynccontextmanager
async def supervised(directory: LandscapeDirectory, address: RedisAddress) -> AsyncGenerator[ManagedProcess]:
    """Redis at an address, under a supervisor that has found it ready."""
    directory.prepare()
    file = directory.config / "redis.conf"
    listening = address._asdict()
    file.write_text(redis_configuration(**listening, store=directory.redis, durability=Durability.PROCESS))
    spec = ProcessSpec("redis", "redis", [str(find_server(REDIS)), str(file)], {}, kind="redis", **listening)
    process = ManagedProcess(spec, directory, notify=print, changed=lambda: None)
    process.start()

    async def ready() -> None:
        assert process.state == "ready", process.trouble

    try:
        await eventually(ready, within=20)
        yield process
    finally:
        await process.stop()


@pytest.mark.parametrize("has_socket", [True, False])
async def test_clients_of_the_url_get_in(tmp_path: Path, has_socket: bool):
    directory = LandscapeDirectory(tmp_path / "a @ state?")
    address = (
        RedisAddress(directory.redis_socket) if has_socket else RedisAddress(port=free_port(), password="-s3_cret")
    )
    async with supervised(directory, address):
        await probe_servers(None, address.url)
        client = RedisConnection(address.url)
        try:
            await client.ensure_ready()
            assert await client.command("CONFIG", "GET", "port") == [b"port", str(address.port).encode()]
        finally:
            await client.close()


async def test_without_the_password_nobody_gets_in(tmp_path: Path):
    port = free_port()
    async with supervised(LandscapeDirectory(tmp_path), RedisAddress(port=port, password="s3cret")):
        for url in (f"redis://127.0.0.1:{port}/0", f"redis://:wrong@127.0.0.1:{port}/0"):
            client = RedisConnection(url)
            with pytest.raises(Unavailable, match=r"Authentication required|invalid"):
                await client.ensure_ready()
            await client.close()


async def test_a_socket_that_nobody_listens_on_is_told_at_once(tmp_path: Path):
    with pytest.raises(Unavailable, match=r"no Redis at unix:///.*: No such file or directory"):
        await probe_servers(None, RedisAddress(tmp_path / "none").url)
