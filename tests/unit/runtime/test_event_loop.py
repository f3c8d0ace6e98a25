"""Event loops: a name that takes long to resolve holds up nothing else."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from gardenbus.common.runtime.event_loop import ClientLoop, SharedLookups, run
from gardenbus.common.runtime.service import ServiceLoop
from tests.support.eventually import HANG_SECONDS

Loop = type[SharedLookups]
ADDRESSES_OF: Callable[..., Any] = socket.getaddrinfo


class Resolver:
    """A system's resolver: `dead` takes until the test ends, `unknown` fails, all else is loopback."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.released = threading.Event()

    def __call__(self, host: str, port: Any, *others: Any) -> list[tuple[Any, ...]]:
        if host[0].isdigit() or ":" in host:
            return ADDRESSES_OF(host, port, *others)
        self.requested.append(host)
        if host == "local":
            return [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", port, 0, 1))]
        if host == "dead":
            self.released.wait()
        if host in ("dead", "unknown"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        rejected = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.2", port))] if host == "second" else []
        return [*rejected, (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    resolver = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    yield resolver
    resolver.released.set()


@pytest.fixture(params=[ClientLoop, ServiceLoop])
def loop(request: pytest.FixtureRequest) -> Loop:
    return request.param


async def greeting(host: str, port: int, **options: Any) -> bytes:
    """What a server sends at once."""
    reader, writer = await asyncio.open_connection(host, port, **options)
    reported = await reader.readline()
    writer.close()
    return reported


async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello\n")
    await writer.drain()
    writer.close()


def ran(loop: Loop, work: Callable[[int], Any]) -> Any:
    """The result of work with a server's port."""

    async def served() -> Any:
        async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
            return await work(server.sockets[0].getsockname()[1])

    with asyncio.Runner(loop_factory=loop) as runner:  # type: ignore[arg-type]
        return runner.run(served())


def test_a_service_runs_on_uvloop():
    assert issubclass(ServiceLoop, uvloop.Loop)


def test_names_are_resolved_while_another_one_takes_long(loop: Loop, resolver: Resolver):
    async def work(port: int) -> bytes:
        for _ in range(20):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.open_connection("dead", port), 0.01)
        return await greeting("alive", port)

    assert ran(loop, work) == b"hello\n"  # and ends, though the lookup has not
    assert resolver.requested == ["dead", "alive"]
    assert not resolver.released.is_set()


def test_all_who_wait_for_a_name_get_what_one_lookup_found(loop: Loop, resolver: Resolver):
    async def work(port: int) -> list[bytes | BaseException]:
        waiting = [asyncio.create_task(greeting("dead", port)) for _ in range(3)]
        await asyncio.sleep(0.05)
        waiting[0].cancel()
        resolver.released.set()
        await asyncio.wait(waiting)
        return [task.cancelled() or task.exception() for task in waiting]  # type: ignore[misc]

    cancelled, *failures = ran(loop, work)
    assert cancelled is True
    assert [type(failure) for failure in failures] == [socket.gaierror] * 2
    assert resolver.requested == ["dead"]


def test_a_name_is_looked_up_anew_after_each_lookup(loop: Loop, resolver: Resolver):
    async def work(port: int) -> bytes:
        for _ in range(2):
            with pytest.raises(socket.gaierror, match="not known"):
                await greeting("unknown", port)
        return await greeting("known", port)

    assert ran(loop, work) == b"hello\n"
    assert resolver.requested == ["unknown", "unknown", "known"]


def test_addresses_of_a_name_are_tried_in_their_order(loop: Loop, resolver: Resolver):
    assert ran(loop, lambda port: greeting("second", port)) == b"hello\n"


def test_an_address_that_says_nothing_does_not_hold_up_the_next(loop: Loop, resolver: Resolver):
    async def work(port: int) -> bytes:
        with socket.socket() as full, socket.socket() as first:
            full.bind(("127.0.0.2", port))
            full.listen(0)
            first.connect(full.getsockname())  # the only place; who comes next is left without a response
            return await asyncio.wait_for(greeting("second", port), HANG_SECONDS)

    before = set(Path("/proc/self/fd").iterdir())
    assert ran(loop, work) == b"hello\n"
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_an_address_of_a_link_keeps_its_link(loop: Loop, resolver: Resolver, monkeypatch: pytest.MonkeyPatch):
    connected: list[Any] = []

    class Noted(socket.socket):
        def connect(self, address: Any) -> None:
            connected.append(address)
            raise ConnectionRefusedError

    monkeypatch.setattr(socket, "socket", Noted)
    with asyncio.Runner(loop_factory=loop) as runner, pytest.raises(ConnectionRefusedError):  # type: ignore[arg-type]
        runner.run(asyncio.open_connection("local", 1))
    assert connected == [("fe80::1", 1, 0, 1)]


def test_a_name_is_looked_up_again_after_there_were_too_many_threads(
    loop: Loop, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
):
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def work(port: int) -> bytes:
        with monkeypatch.context() as limited:
            limited.setattr(threading.Thread, "start", start)
            with pytest.raises(socket.gaierror, match="can't start new thread"):
                await greeting("known", port)
        return await asyncio.wait_for(greeting("known", port), HANG_SECONDS)

    assert ran(loop, work) == b"hello\n"


def test_addresses_that_all_refuse_are_a_refused_connection(loop: Loop, resolver: Resolver):
    async def work(_: int) -> None:
        await greeting("second", 1)

    with pytest.raises(ConnectionRefusedError):
        ran(loop, work)


def test_an_address_is_not_looked_up(loop: Loop, resolver: Resolver):
    assert ran(loop, lambda port: greeting("127.0.0.1", port)) == b"hello\n"
    assert resolver.requested == []


def test_a_label_that_no_name_can_have_is_no_host(loop: Loop):
    with pytest.raises(socket.gaierror):
        ran(loop, lambda port: greeting(f"{'x' * 64}.example", port))


def test_certificates_are_of_the_name_not_of_its_address(loop: Loop, resolver: Resolver):
    """The name is what a server is asked for, and what its certificate is checked against."""
    requested: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = lambda _, name, __: requested.append(name)

    async def served() -> None:
        async with await asyncio.start_server(greet, "127.0.0.1", 0, ssl=context) as server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises((ssl.SSLError, OSError)):  # the server has no certificate
                await greeting("some.example", port, ssl=ssl.create_default_context())

    with asyncio.Runner(loop_factory=loop) as runner:  # type: ignore[arg-type]
        runner.run(served())
    assert requested == ["some.example"]


def test_a_command_runs_on_a_loop_of_its_kind():
    async def kind() -> type:
        return type(asyncio.get_running_loop())

    assert run(kind()) is ClientLoop
