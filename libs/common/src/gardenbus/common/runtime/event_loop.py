"""Event loops in which a name that takes long to resolve holds up nothing else.

A system's resolver may take half a minute for the name of a server that is down. asyncio looks names up in its six
threads, uvloop in two of libuv's, where lookups that nobody waits for any more go on: who tries such a server once a
second resolves nothing else, not even what stands in /etc/hosts, and its process does not end before they do. Here each
name is looked up by one thread at a time, its own, whose result is shared, and which a process does not wait for.
"""

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar, cast

Result = TypeVar("Result")
Resolved = list[tuple[int, int, int, str, tuple[Any, ...]]]


class _Lookup(NamedTuple):
    """Arguments of `socket.getaddrinfo`."""

    host: str | bytes
    port: str | bytes | int | None
    family: int
    type: int
    proto: int
    flags: int


class SharedLookups:
    """Mixed into an event loop, before it."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._lookups: dict[_Lookup, asyncio.Future[Resolved]] = {}

    async def getaddrinfo(
        self,
        host: str | bytes | None,
        port: str | bytes | int | None,
        *,
        family: int = 0,
        type: int = 0,  # noqa: A002  the loop's own name
        proto: int = 0,
        flags: int = 0,
    ) -> Resolved:
        """Resolve a name, along with all who want that now. Raises OSError."""
        if host is None:
            return cast("Resolved", socket.getaddrinfo(None, port, family, type, proto, flags))
        lookup = _Lookup(host, port, family, type, proto, flags)
        future = self._lookups.get(lookup)
        if future is None:
            future = self._lookups[lookup] = self._loop.create_future()
            thread = threading.Thread(target=self._look_up, args=(lookup, future), name="getaddrinfo", daemon=True)
            thread.start()
        return await asyncio.shield(future)

    async def create_connection(
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        family: int = 0,
        proto: int = 0,
        flags: int = 0,
        **options: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Connect to the first address of a name that takes it. Raises OSError."""
        create = cast("Callable[..., Any]", super().create_connection)  # type: ignore[misc]
        if host is None or _is_address(host):
            return await create(protocol_factory, host, port, family=family, proto=proto, flags=flags, **options)
        if options.get("ssl") and options.get("server_hostname") is None:
            options["server_hostname"] = host
        found = await self.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, proto=proto, flags=flags)
        problems: list[OSError] = []
        for *_, address in found:
            try:
                return await create(protocol_factory, address[0], address[1], **options)
            except OSError as error:
                problems.append(error)
        if len({type(problem) for problem in problems}) == 1:
            raise problems[0]
        raise OSError("; ".join(map(str, problems)) or f"{host} has no address")

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return cast("asyncio.AbstractEventLoop", self)

    def _look_up(self, lookup: _Lookup, future: "asyncio.Future[Resolved]") -> None:
        """Resolve a name, in a thread."""
        found: Resolved | OSError
        try:
            found = cast("Resolved", socket.getaddrinfo(*lookup))
        except (OSError, UnicodeError) as error:  # idna raises the latter for a label that is too long
            found = error if isinstance(error, OSError) else socket.gaierror(socket.EAI_NONAME, str(error))
        with suppress(RuntimeError):  # the loop was closed meanwhile
            self._loop.call_soon_threadsafe(self._end_lookup, lookup, future, found)

    def _end_lookup(self, lookup: _Lookup, future: "asyncio.Future[Resolved]", found: Resolved | OSError) -> None:
        del self._lookups[lookup]
        if not isinstance(found, OSError):
            future.set_result(found)
        else:
            future.set_exception(found)
            future.exception()  # nobody is blamed for not waiting any more


class ClientLoop(SharedLookups, asyncio.SelectorEventLoop):  # pyright: ignore[reportIncompatibleMethodOverride]
    """The loop of a command."""


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's work, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=ClientLoop) as runner:
        return runner.run(work)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
