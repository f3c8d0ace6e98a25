"""Where an embedded Redis listens, and who gets in."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.common.adapters.redis.access import RedisAccess
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.errors import Unavailable
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.external import probe_servers
from gardenbus.embedded.process_specs import ProcessSpec
from gardenbus.embedded.processes import ManagedProcess
from gardenbus.embedded.redis_users import OPERATOR, RedisUsers, redis_users
from gardenbus.embedded.servers import REDIS, RedisAddress, find_server, redis_configuration
from tests.support.eventually import eventually
from tests.support.servers import free_port


@asynccontextmanager
async def supervised(directory: LandscapeDirectory, address: RedisAddress) -> AsyncGenerator[ManagedProcess]:
    """Redis at an address, under a supervisor that has found it ready."""
    directory.prepare()
    file = directory.config / "redis.conf"
    listening = address._asdict()
    users = redis_users(directory, "garden")
    text = redis_configuration(
        **listening, store=directory.redis, durability=Durability.PROCESS, acl_file=users.acl_file
    )
    file.write_text(text)
    command = [str(find_server(REDIS)), str(file)]
    login = {"user": OPERATOR, "password": users.operator_password}
    spec = ProcessSpec("redis", "redis", command, {}, kind="redis", **login, **listening)
    process = ManagedProcess(spec, directory, notify=print, changed=lambda: None)
    process.start()

    async def ready() -> None:
        assert process.state == "ready", process.trouble

    try:
        await eventually(ready)
        yield process
    finally:
        await process.stop()


@pytest.mark.parametrize("has_socket", [True, False])
async def test_clients_of_the_url_get_in(tmp_path: Path, has_socket: bool):
    directory = LandscapeDirectory(tmp_path / "a @ state?")
    address = RedisAddress(directory.redis_socket) if has_socket else RedisAddress(port=free_port())
    async with supervised(directory, address):
        users = redis_users(directory, "garden")
        await probe_servers(None, users.operators_url(address.url))
        relay = a_client(users, "relay", address)
        operator = RedisConnection(users.operators_url(address.url))
        try:
            await relay.ensure_ready()
            assert await operator.command("CONFIG", "GET", "port") == [b"port", str(address.port).encode()]
        finally:
            await relay.close()
            await operator.close()


def a_client(users: RedisUsers, role: str, address: RedisAddress) -> RedisConnection:
    """A service's connection, by the environment that it is started with."""
    spec = users.admitted(ProcessSpec(role, role, [], {"GARDENBUS_REDIS_URL": address.url}))
    assert users.operator_password not in str(spec.environ)
    url, file = spec.environ["GARDENBUS_REDIS_URL"], spec.environ["GARDENBUS_REDIS_PASSWORD_FILE"]
    assert Path(file).stat().st_mode & 0o777 == 0o600
    return RedisConnection(url, access=RedisAccess(password_file=file))


def test_passwords_stay_as_they_are_for_the_next_start(tmp_path: Path):
    directory = LandscapeDirectory(tmp_path)
    directory.prepare()
    first = redis_users(directory, "garden")
    kept = {user: file.read_text() for user, file in first.password_files.items()}
    assert len(set(kept.values())) == len(kept)
    second = redis_users(directory, "garden")
    assert {user: file.read_text() for user, file in second.password_files.items()} == kept
    assert not any(password.strip() in second.acl_file.read_text() for password in kept.values())


def test_services_that_keep_no_objects_get_no_address(tmp_path: Path):
    directory = LandscapeDirectory(tmp_path)
    directory.prepare()
    users = redis_users(directory, "garden")
    for role in ("gardenlet", "memberagent"):
        spec = users.admitted(ProcessSpec(role, role, [], {"GARDENBUS_REDIS_URL": "redis://h:1"}))
        assert not [name for name in spec.environ if "REDIS" in name]


async def test_without_the_password_nobody_gets_in(tmp_path: Path):
    port = free_port()
    async with supervised(LandscapeDirectory(tmp_path), RedisAddress(port=port)):
        for url in (f"redis://127.0.0.1:{port}/0", f"redis://relay:wrong@127.0.0.1:{port}/0"):
            client = RedisConnection(url)
            with pytest.raises(Unavailable, match=r"Authentication required|invalid"):
                await client.ensure_ready()
            await client.close()


async def test_a_socket_that_nobody_listens_on_is_told_at_once(tmp_path: Path):
    with pytest.raises(Unavailable, match=r"no Redis at unix:///.*: No such file or directory"):
        await probe_servers(None, RedisAddress(tmp_path / "none").url)
