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
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar, cast

Result = TypeVar("Result")
NEXT_ADDRESS_SECONDS = 0.25
"""Time that an address of a name has for itself."""

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
        if host is None or _is_address(host):  # these need no name server
            return cast("Resolved", socket.getaddrinfo(host, port, family, type, proto, flags))
        lookup = _Lookup(host, port, family, type, proto, flags)
        future = self._lookups.get(lookup)
        if future is None:
            future = self._loop.create_future()
            thread = threading.Thread(target=self._resolve, args=(lookup, future), name="getaddrinfo", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # there are too many
                raise socket.gaierror(socket.EAI_AGAIN, str(error)) from error
            self._lookups[lookup] = future
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
        """Connect to the first address of a name that takes it. Raises OSError.

        Where one has said nothing for a moment the next is tried as well: of the hosts behind a name one may be down.
        """
        create = cast("Callable[..., Any]", super().create_connection)  # type: ignore[misc]
        if host is None or _is_address(host) or options.get("local_addr"):
            return await create(protocol_factory, host, port, family=family, proto=proto, flags=flags, **options)
        if options.get("ssl") and options.get("server_hostname") is None:
            options["server_hostname"] = host
        found = await self.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM, proto=proto, flags=flags)
        if not found:
            raise OSError(f"{host} has no address")
        return await create(protocol_factory, sock=await _Connecting(self._loop, found).first(), **options)

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return cast("asyncio.AbstractEventLoop", self)

    def _resolve(self, lookup: _Lookup, future: "asyncio.Future[Resolved]") -> None:
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


class _Connecting:
    """Attempts to connect to the addresses of a name."""

    def __init__(self, loop: asyncio.AbstractEventLoop, found: Resolved) -> None:
        self._loop = loop
        self._untried = deque(found)
        self._connected: list[socket.socket] = []
        self._problems: list[OSError] = []

    async def first(self) -> socket.socket:
        """The socket that is connected first; the other attempts are ended. Raises OSError when none is."""
        attempts: set[asyncio.Task[None]] = set()
        try:
            while not self._connected and (attempts or self._untried):
                if self._untried:
                    attempts.add(self._loop.create_task(self._try(self._untried.popleft())))
                timeout = NEXT_ADDRESS_SECONDS if self._untried else None
                _, attempts = await asyncio.wait(attempts, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not self._connected:
                raise self._problem()
            return self._connected.pop(0)
        finally:
            for attempt in attempts:
                attempt.cancel()
            for unused in self._connected:
                unused.close()

    async def _try(self, address: tuple[int, int, int, str, tuple[Any, ...]]) -> None:
        family, kind, proto, _, (host, port, *rest) = address
        scope = rest[1] if len(rest) > 1 else 0
        try:
            connecting = socket.socket(family, kind, proto)
        except OSError as error:  # a family that the system does not have
            self._problems.append(error)
            return
        try:
            connecting.setblocking(False)
            await self._loop.sock_connect(connecting, (f"{host}%{scope}" if scope else host, port))
        except OSError as error:
            self._problems.append(error)
            connecting.close()
        except BaseException:
            connecting.close()
            raise
        else:
            self._connected.append(connecting)

    def _problem(self) -> OSError:
        problems, self._problems = self._problems, []
        if len({type(problem) for problem in problems}) == 1:
            return problems[0]
        return OSError("; ".join(map(str, problems)))


class ClientLoop(SharedLookups, asyncio.SelectorEventLoop):  # pyright: ignore[reportIncompatibleMethodOverride]
    """The loop of a command."""


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's work, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=ClientLoop) as runner:
        return runner.run(work)


def _is_address(host: str | bytes) -> bool:
    try:
        ipaddress.ip_address(host if isinstance(host, str) else host.decode("ascii", "replace"))
    except ValueError:
        return False
    return True
