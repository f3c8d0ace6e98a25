"""Users of a real Redis: what each may do is what users.py says, and nothing else."""

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
import redis.asyncio

from gardenbus.common.adapters.redis.access import RedisAccess, connection_pool
from gardenbus.common.adapters.redis.addresses import ServerAddress
from gardenbus.common.adapters.redis.connection import RedisConnection
from gardenbus.common.adapters.redis.direct import connection_to, query
from gardenbus.common.adapters.redis.users import USERS, RedisUser, acl_file
from gardenbus.common.errors import SettingsInvalid, Unavailable
from gardenbus.credentials import secret_files
from gardenbus.credentials.certificates import Authority, new_authority
from tests.support.builders import a_shoot
from tests.support.cancelling import closed_sockets, sockets
from tests.support.eventually import HANG_SECONDS
from tests.support.servers import Server, free_port, start_redis
from tests.support.stores import on_redis_as_services

SERVICES: tuple[RedisUser, ...] = tuple(
    user for user in USERS if user not in ("relay", "operator", "replica", "sentinel")
)

DANGEROUS = (
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("KEYS", "*"),
    ("CONFIG", "SET", "dir", "/tmp"),
    ("CONFIG", "REWRITE"),
    ("DEBUG", "SLEEP", "0"),
    ("MODULE", "LOAD", "evil.so"),
    ("EVAL", "return redis.call('KEYS', '*')", "0"),
    ("SCRIPT", "FLUSH"),
    ("SAVE",),
    ("BGREWRITEAOF",),
    ("SHUTDOWN", "NOSAVE"),
    ("REPLICAOF", "127.0.0.1", "6379"),
    ("MONITOR",),
    ("ACL", "SETUSER", "evil", "on"),
    ("MIGRATE", "127.0.0.1", "6379", "garden:version", "0", "10"),
    ("CLIENT", "KILL", "TYPE", "normal"),
    ("SWAPDB", "0", "1"),
    ("RENAME", "garden:version", "garden:other"),
    ("DUMP", "garden:version"),
    ("RESTORE", "garden:other", "0", "x"),
    ("FUNCTION", "FLUSH"),
    ("FUNCTION", "DUMP"),
    ("PUBLISH", "garden", "x"),
    ("SCAN", "0"),
)


OF_SENTINELS = {("CONFIG", "REWRITE"), ("CLIENT", "KILL")}
"""What a Sentinel does to a server whose role it changes."""


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Redis that has read the file of users; each has its name as its password."""
    directory = tmp_path_factory.mktemp("guarded")
    file = directory / "users.acl"
    file.write_text(acl_file("garden", {user: user for user in USERS}))
    server = start_redis(directory, acl_file=file)
    yield server
    server.stop()


@asynccontextmanager
async def connected_as(server: Server, user: str, prefix: str = "garden") -> AsyncGenerator[RedisConnection]:
    """A connection as one of the users."""
    connection = RedisConnection(server.url.replace("://", f"://{user}:{user}@"), prefix, timeout_seconds=HANG_SECONDS)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.mark.parametrize("user", USERS)
async def test_nobody_may_run_a_dangerous_command(guarded: Server, user: RedisUser):
    async with connected_as(guarded, user) as connection:
        for command in DANGEROUS:
            if command[:2] in OF_SENTINELS and user == "sentinel":
                continue
            with pytest.raises(Unavailable, match=r"NOPERM|not allowed"):  # DEBUG and MODULE are off in Redis already
                await connection.command(*command)
        assert await connection.command("PING") == b"PONG"


@pytest.mark.parametrize("user", ["relay", *SERVICES])
async def test_keys_of_another_landscape_are_refused(guarded: Server, user: RedisUser):
    async with connected_as(guarded, "relay") as relay:
        await relay.ensure_library()
    async with connected_as(guarded, user) as connection:
        for key in ("other:version", "gardener:version", "other", "garden2"):
            with pytest.raises(Unavailable, match="NOPERM"):
                await connection.command("GET", key)
    async with connected_as(guarded, user, prefix="other") as stranger:
        with pytest.raises(Unavailable, match=r"NOPERM|No permissions"):
            await stranger.call("get_version", {})
        with pytest.raises(Unavailable):
            await stranger.read([("GET", "other:version")])


async def test_an_operator_may_have_another_landscape_on_the_same_server(guarded: Server):
    async with connected_as(guarded, "operator", prefix="guest") as operator:
        await operator.ensure_ready()
        assert await operator.command("SET", "guest:probe", "1") == b"OK"


@pytest.mark.parametrize("user", SERVICES)
async def test_only_the_relay_loads_and_deletes_functions(guarded: Server, user: RedisUser):
    async with connected_as(guarded, "relay") as relay:
        await relay.ensure_library()
        async with connected_as(guarded, user) as connection:
            await connection.ensure_ready()
            for command in (("FUNCTION", "DELETE", relay.library), ("FUNCTION", "LOAD", "#!lua name=evil")):
                with pytest.raises(Unavailable, match="NOPERM"):
                    await connection.command(*command)
            await relay.command("FUNCTION", "DELETE", relay.library)
            with pytest.raises(Unavailable, match="a relay of this version loads them"):
                await connection.ensure_ready()
        await relay.ensure_library()


async def test_without_a_user_and_its_password_nobody_gets_in(guarded: Server):
    for login in ("", "default:@", ":operator@", "relay:wrong@", "evil:evil@"):
        connection = RedisConnection(guarded.url.replace("://", f"://{login}"), timeout_seconds=HANG_SECONDS)
        with pytest.raises(Unavailable, match=r"NOAUTH|Authentication required|invalid username-password"):
            await connection.ensure_ready()
        await connection.close()


@pytest.mark.parametrize("service", SERVICES)
async def test_each_service_keeps_objects_as_its_user(store_server: Server, service: RedisUser):
    async with on_redis_as_services(store_server.url, service) as kit:
        await kit.open()
        created = await kit.created(a_shoot(name="mine"))
        assert (await kit.now(created.key)).uid == created.uid
        assert await kit.entries()


async def test_the_operator_reads_what_doctor_shows(guarded: Server):
    async with connected_as(guarded, "operator") as operator:
        assert b"redis_version" in await operator.command("INFO", "everything")
        assert (await operator.command("CONFIG", "GET", "appendonly"))[1] == b"yes"
        assert await operator.command("TIME")


async def test_a_password_comes_from_its_file_at_each_connect(guarded: Server, tmp_path: Path):
    file = tmp_path / "password"
    file.write_text("operator\n")
    url = guarded.url.replace("://", "://operator@")
    connection = RedisConnection(url, access=RedisAccess(password_file=str(file)))
    assert await connection.command("PING") == b"PONG"
    await connection.close()
    file.write_text("another\n")
    with pytest.raises(Unavailable, match="invalid username-password"):
        await connection.command("PING")
    file.unlink()
    with pytest.raises(Unavailable, match="No such file"):
        await connection.command("PING")
    await connection.close()


@pytest.mark.parametrize(
    ("url", "access", "problem"),
    [
        ("redis://u:p@h:1", RedisAccess(password_file=__file__), "take it out of the URL"),
        ("redis://u@h:1?password=p", RedisAccess(password_file=__file__), "take it out of the URL"),
        ("redis://u@h:1", RedisAccess(password_file="/none"), "GARDENBUS_REDIS_PASSWORD_FILE: /none cannot be read"),
        ("redis://u@h:1", RedisAccess(ca=__file__), "only rediss:// connections use TLS"),
        ("rediss://u@h:1", RedisAccess(ca="/none"), "GARDENBUS_REDIS_CA: /none cannot be read"),
        ("redis+sentinel://u@h:1/garden", RedisAccess(ca=__file__), "only rediss:// connections use TLS"),
        ("rediss+sentinel://u@h:1/garden", RedisAccess(password_file=__file__, ca="/none"), "/none cannot be read"),
    ],
)
def test_settings_that_cannot_go_together_name_the_variable(url: str, access: RedisAccess, problem: str):
    with pytest.raises(SettingsInvalid) as raised:
        RedisConnection(url, access=access)
    assert problem in str(raised.value)


def context_of_server(directory: Path, names: list[str]) -> ssl.SSLContext:
    """TLS of a server with these names; its authority is in `ca.pem`, and stays in `of-before.pem`."""
    now = datetime.now(UTC)
    root = new_authority("test", now)
    issued = Authority(root).server(names, now)
    for name, content in (("ca", root.certificate), ("server", issued.certificate), ("key", issued.key)):
        (directory / f"{name}.pem").write_bytes(content)
    (directory / "of-before.pem").write_bytes(root.certificate)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "server.pem", directory / "key.pem")
    return context


@asynccontextmanager
async def behind_tls(server: Server, directory: Path, names: list[str]) -> AsyncGenerator[tuple[str, Path]]:
    """TLS in front of a Redis that was built without it; yields the URL's end and the authorities' file."""
    context = context_of_server(directory, names)
    serving: list[asyncio.Task[None]] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while received := await reader.read(65536):
                writer.write(received)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(cast("asyncio.Task[None]", asyncio.current_task()))
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", server.port)
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))

    port = free_port()
    listener = await asyncio.start_server(serve, "127.0.0.1", port, ssl=context)
    try:
        yield f"127.0.0.1:{port}/0", directory / "ca.pem"
    finally:
        listener.close()
        await asyncio.gather(*serving)


async def test_tls_is_of_the_authority_that_the_setting_names(guarded: Server, tmp_path: Path):
    async with behind_tls(guarded, tmp_path, ["127.0.0.1"]) as (end, ca):
        url = f"rediss://operator:operator@{end}"
        connection = RedisConnection(url, access=RedisAccess(ca=str(ca)))
        assert await connection.command("PING") == b"PONG"
        await connection.close()
        stranger = RedisConnection(url)
        with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            await stranger.command("PING")
        await stranger.close()


async def test_connections_share_what_tls_trusts_until_the_file_is_another_one(guarded: Server, tmp_path: Path):
    async with behind_tls(guarded, tmp_path, ["127.0.0.1"]) as (end, ca):
        pool = connection_pool(f"rediss://operator:operator@{end}", RedisAccess(ca=str(ca)))
        address = ServerAddress("127.0.0.1", int(end.partition(":")[2].partition("/")[0]))
        contexts: list[ssl.SSLContext | None] = []
        for _ in range(2):
            connection: Any = connection_to(pool, address)
            await connection.connect()
            contexts.append(connection.ssl_context.context)
            await connection.disconnect()
        assert contexts[0] is contexts[1] is not None
        another = new_authority("another", datetime.now(UTC)).certificate
        secret_files.write(ca, another)
        assert await query(pool, address, [("PING",)]) is None
        secret_files.write(ca, another + (tmp_path / "of-before.pem").read_bytes())
        assert await query(pool, address, [("PING",)], seconds=20) == [b"PONG"]


@contextmanager
def tls_that_never_ends(server: Server, directory: Path) -> Generator[int]:
    """TLS before a Redis that responds to one PING and then hangs, also when TLS is ended; yields its port."""
    context, released = context_of_server(directory, ["127.0.0.1"]), threading.Event()

    def serve(listener: socket.socket) -> None:
        with context.wrap_socket(listener.accept()[0], server_side=True) as outer:
            with socket.create_connection(("127.0.0.1", server.port)) as inner:
                received = b""
                while b"PONG" not in received:
                    inner.sendall(outer.recv(65536))
                    received = inner.recv(65536)
                    outer.sendall(received)
            released.wait(HANG_SECONDS)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            released.set()
            thread.join()


async def test_a_connection_of_one_query_is_gone_at_once_also_if_the_server_does_not_end_tls(
    redis_server: Server, tmp_path: Path
):
    with tls_that_never_ends(redis_server, tmp_path) as port:
        before = sockets()
        pool = connection_pool(f"rediss://127.0.0.1:{port}", RedisAccess(ca=str(tmp_path / "ca.pem")))
        responses = await query(pool, ServerAddress("127.0.0.1", port), [("PING",)], seconds=20)
        assert responses == [b"PONG"]
        await closed_sockets(before + 1)  # the server's


async def test_a_client_certificate_that_was_renewed_is_read_again(guarded: Server, tmp_path: Path):
    async with behind_tls(guarded, tmp_path, ["127.0.0.1"]) as (end, ca):
        file = tmp_path / "client.pem"
        pool = connection_pool(
            f"rediss://operator:operator@{end}?ssl_certfile={file}&ssl_keyfile={file}", RedisAccess(ca=str(ca))
        )
        address = ServerAddress("127.0.0.1", int(end.partition(":")[2].partition("/")[0]))
        contexts: list[ssl.SSLContext | None] = []
        for is_renewed in (True, True, False):
            if is_renewed:
                mine = new_authority("client", datetime.now(UTC))
                secret_files.write(file, mine.certificate + mine.key)
            connection: Any = connection_to(pool, address)
            await connection.connect()
            contexts.append(connection.ssl_context.context)
            await connection.disconnect()
        assert contexts[0] is not contexts[1]
        assert contexts[1] is contexts[2]


async def test_tls_needs_the_name_of_the_server(guarded: Server, tmp_path: Path):
    async with behind_tls(guarded, tmp_path, ["redis.example"]) as (end, ca):
        connection = RedisConnection(f"rediss://operator:operator@{end}", access=RedisAccess(ca=str(ca)))
        with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            await connection.command("PING")
        await connection.close()


async def test_what_was_written_together_is_there_after_a_restart(tmp_path: Path):
    file = tmp_path / "users.acl"
    file.write_text(acl_file("garden", {user: user for user in USERS}))
    server = start_redis(tmp_path, acl_file=file)
    try:
        together = (("garden:a", "1"), ("garden:b", "2"))
        client = redis.asyncio.Redis(port=server.port, username="relay", password="relay")
        async with client, client.pipeline(transaction=True) as pipeline:
            for key, value in together:
                pipeline.set(key, value)
            await pipeline.execute()
        server.kill()
        server.start()
        async with connected_as(server, "relay") as relay:
            assert [await relay.command("GET", key) for key, _ in together] == [b"1", b"2"]
    finally:
        server.stop()
