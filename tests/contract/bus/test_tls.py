"""TLS to NATS, on a real server: who wants it gets it, from a server that it trusts, or sends nothing."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gardenbus.cli.client.api import connected
from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.cli.local.authority_rotation import AuthorityRotation
from gardenbus.common.adapters.nats.connection import Connection, OutOfReach
from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS
from gardenbus.common.errors import ServerUntrusted, SettingsInvalid
from gardenbus.credentials.certificates import new_authority
from gardenbus.credentials.identity_directory import IdentityDirectory
from gardenbus.credentials.server_configuration import tls_configuration
from tests.support.eventually import HANG_SECONDS, eventually
from tests.support.servers import Server, executable, free_port, start_nats


@pytest.fixture
def identity(tmp_path: Path) -> IdentityDirectory:
    made = IdentityDirectory(tmp_path / "identity")
    made.prepare((), datetime.now(UTC))
    return made


@pytest.fixture
def server(tmp_path: Path, identity: IdentityDirectory) -> Iterator[Server]:
    """A server with a certificate of the authority."""
    port, file = free_port(), tmp_path / "nats.conf"
    tls = tls_configuration(identity.server_certificate, identity.server_key)
    file.write_text(f'listen: "127.0.0.1:{port}"\n{tls}')
    started = Server(f"nats://127.0.0.1:{port}", port, tmp_path, (executable("nats-server"), "-c", str(file)), _listens)
    started.start()
    yield started
    started.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@asynccontextmanager
async def connection_to(url: str, ca: Path | None) -> AsyncGenerator[Connection]:
    connection = Connection()
    try:
        await connection.open(
            url,
            "test",
            credentials=NO_CREDENTIALS._replace(ca=str(ca) if ca else None),
            on_reconnect=lambda: None,
            fails_unauthorized=True,
        )
        yield connection
    finally:
        await connection.close()


async def test_who_trusts_the_server_is_connected_by_tls(server: Server, identity: IdentityDirectory) -> None:
    body = os.urandom(700_000)
    async with connection_to(server.url, identity.authorities) as connection:
        replies: asyncio.Queue[bytes] = asyncio.Queue()
        await connection.listen("echo", lambda message: replies.put_nowait(message.body))
        await connection.send([b"PUB echo %d\r\n%b\r\n" % (len(body), body)])
        assert await asyncio.wait_for(replies.get(), HANG_SECONDS) == body


async def test_a_server_of_another_authority_is_not_trusted(server: Server, tmp_path: Path) -> None:
    other = tmp_path / "other.crt"
    other.write_bytes(new_authority("gardenbus", datetime.now(UTC)).certificate)
    for ca, words in ((other, str(other)), (None, "GARDENBUS_NATS_CA")):
        with pytest.raises(ServerUntrusted, match="its certificate is rejected") as rejected:
            async with connection_to(server.url, ca):
                pass
        assert words in rejected.value.message


async def test_nothing_is_sent_to_a_server_that_claims_to_have_no_tls(identity: IdentityDirectory) -> None:
    """Whoever is in between can take TLS out of what the server says first, and would read the password after that."""
    received: asyncio.Queue[bytes] = asyncio.Queue()

    async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"server_id":"X","version":"2.14.0","max_payload":1048576,"nonce":"n"}\r\n')
        received.put_nowait(await reader.read(100))
        writer.close()

    async with await asyncio.start_server(pretend, "127.0.0.1", 0) as pretender:
        port = pretender.sockets[0].getsockname()[1]
        for url, ca in ((f"nats://127.0.0.1:{port}", identity.authorities), (f"tls://127.0.0.1:{port}", None)):
            with pytest.raises(ServerUntrusted, match="offers no TLS"):
                async with connection_to(url, ca):
                    pass
            assert await asyncio.wait_for(received.get(), HANG_SECONDS) == b""


async def test_a_file_without_authorities_is_named(server: Server, tmp_path: Path) -> None:
    empty = tmp_path / "empty.crt"
    empty.touch()
    for file in (empty, tmp_path / "missing.crt"):
        with pytest.raises(SettingsInvalid, match=str(file)):
            async with connection_to(server.url, file):
                pass


async def test_who_was_connected_before_the_authority_was_rotated_comes_back_afterwards(
    server: Server, identity: IdentityDirectory, tmp_path: Path
) -> None:
    now, old = datetime.now(UTC), tmp_path / "old.crt"
    old.write_bytes(identity.authorities.read_bytes())
    rotation = AuthorityRotation(identity.authorities, identity.authority_key)
    async with connection_to(server.url, identity.authorities) as connection:
        rotation.begin(now)
        identity.replace_old_server_certificate(now)
        assert server.process is not None
        server.process.send_signal(signal.SIGHUP)
        rotation.finish()

        async def reloaded() -> None:
            with pytest.raises(ServerUntrusted):
                async with connection_to(server.url, old):
                    pass

        await eventually(reloaded)
        assert (connection.losses, connection.is_connected) == (0, True)
        await asyncio.to_thread(server.restart)

        async def back() -> None:
            assert (connection.losses > 0, connection.is_connected) == (True, True)

        await eventually(back)


async def test_a_server_without_tls_serves_who_wants_none(tmp_path: Path) -> None:
    plain = await asyncio.to_thread(start_nats, tmp_path / "plain")
    try:
        async with connection_to(plain.url, None) as connection:
            assert connection.is_connected
    finally:
        plain.stop()


async def test_a_command_leaves_no_failed_handshake_in_the_log_of_the_server(
    server: Server, identity: IdentityDirectory
) -> None:
    def failed_handshakes() -> int:
        return (server.directory / "server.log").read_text().count("TLS handshake error")

    async def logged(number: int) -> None:
        assert failed_handshakes() == number

    await eventually(lambda: logged(1))  # of who looked whether it listens
    async with connected(LandscapeTarget(server.url, "garden", ca=str(identity.authorities))):
        pass
    assert _listens(server.port)  # its line comes after any of the command's
    await eventually(lambda: logged(2))


async def test_who_does_not_wait_is_told_once_every_address_refuses(
    server: Server, identity: IdentityDirectory
) -> None:
    closed, ca = f"nats://127.0.0.1:{free_port()}", NO_CREDENTIALS._replace(ca=str(identity.authorities))
    lonely, connection = Connection(), Connection()
    with pytest.raises(OutOfReach):
        await lonely.open(closed, "test", credentials=ca, on_reconnect=lambda: None, fails_unreachable=True)
    await lonely.close()
    await connection.open(
        f"{closed},{server.url}", "test", credentials=ca, on_reconnect=lambda: None, fails_unreachable=True
    )
    assert connection.is_connected
    await connection.close()
