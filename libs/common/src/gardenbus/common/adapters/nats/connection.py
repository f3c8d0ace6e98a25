"""Connection to NATS that never gives up and hands over replies and messages without a task in between.

Beyond nats-py's client:

- A `-ERR` of the server leads to a reconnect, not to a closed client, and the client reconnects for ever.
- `listen` hands messages to a plain function as they are parsed (no queue, no task, no header decoding): a pull of
  500 messages or 1,000 publish acknowledgements cost the parser and one call each.
- Credentials that the server rejects are tried again with pauses that grow from 1 s to 5 min, or at `retry_now`.
- Who names authorities, or `tls://`, talks to a server with a certificate of theirs, over TLS, and to no other.
- When the connection is lost, pending requests fail at once (`Unavailable`), and what had not been sent yet is
  dropped: nothing appears on the bus long after its caller gave up.

The client's protected members used here are those that its own subclasses would use; the contract suite shows on a
new version whether they still mean the same.
"""

import asyncio
import contextlib
import math
import random
import re
import secrets
import ssl
import time
from collections.abc import Callable, Generator, Iterable
from datetime import UTC, datetime
from typing import Any, ParamSpec, TypeVar, cast

import structlog
from nats.aio.client import DEFAULT_BUFFER_SIZE, Client, Srv
from nats.errors import Error as NatsError

from gardenbus.common.adapters.nats.complaints import Complaints
from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS, Credentials
from gardenbus.common.adapters.nats.messages import RawMessage, publish_command
from gardenbus.common.adapters.nats.tls import WEB_SOCKETS, Transport, demand_tls, tls_context, untrusted_server
from gardenbus.common.errors import (
    CredentialsRejected,
    NoResponse,
    ServerUntrusted,
    SettingsInvalid,
    Terminal,
    Unavailable,
)

RECONNECT_SECONDS = 0.25
"""Pause between two attempts to connect: a restarted server is found again within a heartbeat."""

CONNECTED_POLL_SECONDS = 0.05

PING_SECONDS = 5
"""A peer that hangs without closing is noticed after three of these."""

MAX_BUFFERED_BYTES = 4 * 1024 * 1024
"""Above this a publisher waits for the socket."""

NOBODY = 503
"""Status of the server for a subject without subscribers (no responders)."""

LEAST_REJECTIONS = 3
"""Rejections in a row, within seconds, after which requests say so; one or two may be an identity service's end."""

FIRST_REJECTION_SECONDS, MOST_REJECTION_SECONDS = 1.0, 300.0
"""Pause after credentials that the server rejects: it doubles with each rejection in a row."""

CONNECT_SECONDS = 5
"""Longest wait for each step of a connect; the server rejects after 3 s for whom nobody vouches (auth callout)."""

UNCONNECTED_SECONDS = 10.0
"""Time after which a server that greets, and neither rejects nor lets in, counts as one that rejects."""

DRAIN_SECONDS = 1.0
"""Time that responses under way have before a session is renewed."""

AWAIT_LOG_SECONDS = 60.0
"""Interval at which a wait for the server that goes on is logged again."""

_UNAUTHORIZED = re.compile("authori[sz]ation|authentication", re.IGNORECASE)
_NO_GREETING = "expecting INFO"
"""In the error of the client when a server begins otherwise than NATS, or closes the connection."""
_Arguments = ParamSpec("_Arguments")
_Proof = TypeVar("_Proof")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class ResponseTimeout(NoResponse):
    """No response came in time, on a connection that was not lost."""


class OutOfReach(Unavailable):
    """No address leads to NATS: a host is not found, a port refuses, or what listens there is another server."""


Sink = Callable[[RawMessage], None]
LostCallback = Callable[[], None]
_IsLast = int | Callable[[RawMessage], bool]
"""Of the replies to something: their number, or what the last of them is like."""


def _cancellations() -> int:
    """Number of times that the running task was cancelled."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def _raise_if_cancelled(since: int) -> None:
    """Raise what Python 3.11's `wait_for` swallows, which the client uses, when its end comes in the same moment."""
    if _cancellations() > since:
        raise asyncio.CancelledError


def _authentication(credentials: Credentials) -> dict[str, Any]:
    """The client's options for credentials; what is callable is called at each attempt."""
    login = credentials.login
    options = {
        "signature_cb": _readable(credentials.sign) if credentials.sign else None,
        "token": _readable(credentials.token) if credentials.token else None,
        "user": _readable(lambda: login().user) if login else None,
        "password": _readable(lambda: login().password) if login else None,
        "tls": tls_context(credentials.ca) if credentials.ca else None,
    }
    return {name: value for name, value in options.items() if value is not None}


def _readable(proof: Callable[_Arguments, _Proof]) -> Callable[_Arguments, _Proof]:
    """A proof whose file may be away for a while: the client takes an error of its own as a failed attempt."""

    def read(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Proof:
        try:
            return proof(*arguments, **named)
        except (Terminal, SettingsInvalid) as error:
            raise NatsError(f"nats: authentication: {error.message}") from error

    return read


class Connection(Client):
    """See the module. Open it with `open`; end it with `close`."""

    def __init__(self) -> None:
        super().__init__()
        self._sinks: dict[int, Sink] = {}
        self._on_lost: list[LostCallback] = []
        self._awaited: dict[str, tuple[_IsLast, list[RawMessage], asyncio.Future[list[RawMessage]]]] = {}
        self._reply_prefix = ""
        self._last_logged = -AWAIT_LOG_SECONDS
        self._where = ""
        self._credentials = NO_CREDENTIALS
        self._rejections, self._rejected_because = 0, ""
        self._retry = asyncio.Event()
        self._complaints = Complaints()
        self._fails_unauthorized = False
        self._fails_unreachable = False
        self._unreached: set[str] = set()
        self._greeted_at: float | None = None
        self._cancellations = 0
        self.client_name = ""
        """Name under which the server lists the connection."""
        self.losses = 0
        """Times that the connection was lost."""
        self.write_trouble = ""
        """Writes that fail on a server that responds, in words; "" when nothing is known (write_breaker.py)."""
        self.jetstream_api = NO_CREDENTIALS.jetstream_api
        """Prefix of JetStream's API."""
        self.connected_at = 0.0
        """Monotonic time at which the session began."""
        self.session_seconds: float | None = None
        """Life of the last session that the server ended; None while it has ended none."""

    async def open(  # noqa: PLR0913  (each is an option of the connection)
        self,
        url: str,
        name: str,
        *,
        on_reconnect: Callable[[], None],
        inbox_prefix: str | None = None,
        credentials: Credentials = NO_CREDENTIALS,
        fails_unauthorized: bool = False,
        fails_unreachable: bool = False,
    ) -> None:
        """Connect, waiting for the server as long as it takes, and log that. `inbox_prefix`: below the credentials'.

        With `fails_unauthorized` it raises CredentialsRejected when the server does not accept this user, and
        ServerUntrusted when it shows no certificate of an authority that is trusted. With `fails_unreachable` it raises
        OutOfReach once each address was tried, and none took a connection.
        """
        self._where, self.client_name = url.rsplit("@", 1)[-1], name
        self._fails_unauthorized, self._fails_unreachable = fails_unauthorized, fails_unreachable
        self._credentials, self._public_nkey = credentials, credentials.nkey
        self.jetstream_api, self._greeted_at = credentials.jetstream_api, None

        async def reconnected() -> None:
            log.info("server.reached", server="nats", url=self._where)
            self._note_session()
            on_reconnect()

        await self._connect(
            url.split(","),
            name=name,
            inbox_prefix=inbox_prefix or credentials.inbox,
            **_authentication(credentials),
            error_cb=self._log_error,
            disconnected_cb=self._on_lost_connection,
            reconnected_cb=reconnected,
            max_reconnect_attempts=-1,
            reconnect_time_wait=RECONNECT_SECONDS,  # pyright: ignore[reportArgumentType] (a float does as well)
            ping_interval=PING_SECONDS,
            connect_timeout=CONNECT_SECONDS,
            pending_size=MAX_BUFFERED_BYTES,
        )
        await self.until_connected()
        self._fails_unauthorized = self._fails_unreachable = False
        self._note_session()
        self._reply_prefix = f"{self.new_inbox()}."
        await self.listen(f"{self._reply_prefix}*", self._receive_reply)

    async def _connect(self, servers: list[str], **options: Any) -> None:
        """Connect, unless it is cancelled: Python 3.11's `wait_for`, which the client uses, returns if it can."""
        self._cancellations = _cancellations()
        await self.connect(servers, **options)
        _raise_if_cancelled(self._cancellations)

    async def until_connected(self, seconds: float = math.inf) -> None:
        """Wait for a session, to any of the servers, for so long. Raises Unavailable once the connection is closed.

        The client's connect may return with neither a connection nor an error, and goes on by itself.
        """
        deadline = time.monotonic() + seconds
        while not self.is_connected and time.monotonic() <= deadline:
            if self.is_closed:
                raise Unavailable(f"the connection to NATS at {self._where} was closed")
            self._check_silence()
            await asyncio.sleep(CONNECTED_POLL_SECONDS)

    def _check_silence(self) -> None:
        greeted_at = self._greeted_at
        if self._fails_unauthorized and greeted_at and time.monotonic() - greeted_at >= UNCONNECTED_SECONDS:
            raise Unavailable(f"NATS at {self._where} does not accept this user: no response")

    def _note_session(self) -> None:
        self._last_logged = -AWAIT_LOG_SECONDS
        self._rejections, self._rejected_because = 0, ""
        self.connected_at = time.monotonic()

    async def renew(self) -> None:
        """Connect anew, once what was sent has arrived and responses have come: in a session of its own life."""
        with contextlib.suppress(NatsError, Unavailable, TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await self.flush_fully()
                if pending := [future for _, _, future in self._awaited.values()]:
                    await asyncio.wait(pending)
        if self.is_connected:
            await self._process_op_err(NatsError("nats: the session is renewed"))

    def retry_now(self) -> None:
        """Try to connect without the rest of the pause."""
        self._retry.set()

    @property
    def server_id(self) -> str:
        """Id of the server process, which is another one after each of its starts."""
        return str(self._server_info.get("server_id") or "")

    @property
    def is_clustered(self) -> bool:
        """True if the server is one of a cluster."""
        return bool(self._server_info.get("cluster"))

    async def close(self) -> None:
        """Close the connection, and end the task that reconnects; one that is cancelled meanwhile leaves nothing.

        The client cancels that task once; where a connect fails at that moment, Python's 3.11 `wait_for` raises the
        failure instead, and the task would go on connecting a client that is closed.
        """
        if self._flush_queue is None:
            return  # it was never opened
        cancellations = _cancellations()
        try:
            await super().close()
            reconnecting = self._reconnection_task
            while reconnecting is not None and not reconnecting.done() and reconnecting is not asyncio.current_task():
                reconnecting.cancel()
                await asyncio.wait((reconnecting,), timeout=RECONNECT_SECONDS)
            _raise_if_cancelled(cancellations)
        except asyncio.CancelledError:
            self._abort()
            raise

    def _abort(self) -> None:
        tasks = (self._reading_task, self._ping_interval_task, self._flusher_task, self._reconnection_task)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        for task in cast("tuple[asyncio.Task[None] | None, ...]", tasks):
            if task is not None:
                task.cancel()
        self._abort_socket()

    def _abort_socket(self) -> None:
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None and not writer.is_closing():  # Python 3.11 cannot abort TLS that has ended
            writer.transport.abort()

    def when_lost(self, callback: LostCallback) -> Callable[[], None]:
        """Call back, synchronously, whenever the connection is lost; returns the function that ends it."""
        self._on_lost.append(callback)
        return lambda: self._on_lost.remove(callback) if callback in self._on_lost else None

    async def listen(self, subject: str, sink: Sink, *, queue: str = "") -> int:
        """Hand every message on a subject to `sink`; returns the id for `unlisten`. Survives reconnects.

        Each message goes to one of the listeners in the same `queue` group.
        """
        number = self._sid + 1
        self._sinks[number] = sink
        unused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self.subscribe(subject, queue=queue, future=unused)  # pyright: ignore[reportUnknownMemberType]
        return number

    async def stop_listening(self, numbers: Iterable[int]) -> None:
        """End several `listen` after all has come that the server had sent until then. Raises Unavailable."""
        ended = tuple(numbers)
        if self.is_connected:
            self.send_nowait([f"UNSUB {number}\r\n".encode() for number in ended])
            try:
                await self.flush_fully()
            except NatsError as error:
                raise Unavailable(f"NATS at {self._where} is unreachable") from error
        for number in ended:
            self._sinks.pop(number, None)
            self._remove_sub(number)

    async def flush_fully(self) -> None:
        """Return when the server has received all that was written (the client's own `flush` may overtake it)."""
        cancellations = _cancellations()
        await self._flush_pending(force_flush=True)
        await self.flush()
        _raise_if_cancelled(cancellations)

    async def _flush_pending(self, force_flush: bool = False) -> Any:  # noqa: FBT001, FBT002 - as the client has it
        """The client's own takes a cancellation for the end of the flush."""
        cancellations = _cancellations()
        flushed = await super()._flush_pending(force_flush)
        _raise_if_cancelled(cancellations)
        return flushed

    async def _process_pong(self) -> None:
        """Take the response to a flush that nobody waits for any more: the client's own would read nothing after it."""
        pongs = cast("list[asyncio.Future[bool]]", self._pongs)  # pyright: ignore[reportUnknownMemberType]
        if pongs and pongs[0].done():
            pongs[0] = asyncio.get_running_loop().create_future()
        await super()._process_pong()

    def unlisten(self, number: int) -> None:
        """End a `listen`, without waiting."""
        self._sinks.pop(number, None)
        self._unsubscribe(number)

    def unlisten_after(self, number: int, seconds: float) -> None:
        """End a `listen`, without waiting; what the server had sent before it read that still gets to the sink."""
        self._unsubscribe(number)
        asyncio.get_running_loop().call_later(seconds, self._sinks.pop, number, None)

    def _unsubscribe(self, number: int) -> None:
        self._remove_sub(number)
        self.send_nowait((f"UNSUB {number}\r\n".encode(),))

    @property
    def is_rejected(self) -> bool:
        """True while a rejected login keeps the connection down."""
        return not self.is_connected and bool(self._rejected_because)

    def require_connected(self) -> None:
        """Raise Unavailable unless the connection is up, with the reason of a rejection where that keeps it down.

        After several in a row it is CredentialsRejected: this user is let in no longer.
        """
        if not self.is_connected and self._rejected_because:
            kind = CredentialsRejected if self._rejections >= LEAST_REJECTIONS else Unavailable
            raise kind(f"NATS at {self._where} does not accept this user: {self._rejected_because}")
        if not self.is_connected:
            raise Unavailable(f"NATS at {self._where} is unreachable")

    async def send(self, commands: Iterable[bytes]) -> None:
        """Write commands; waits only when the socket does not keep up. Raises Unavailable when not connected."""
        self.require_connected()
        self.send_nowait(commands)
        if self._pending_data_size > MAX_BUFFERED_BYTES:
            await self._flush_pending(force_flush=True)

    def send_nowait(self, commands: Iterable[bytes]) -> None:
        """Write commands without ever waiting; what cannot be written because the connection is lost is dropped."""
        queue = self._flush_queue
        if not self.is_connected or queue is None:
            return
        joined = b"".join(commands)  # one piece: cheaper for the socket than many small ones
        self._pending.append(joined)
        self._pending_data_size += len(joined)
        if queue.empty():
            queue.put_nowait(asyncio.get_running_loop().create_future())

    @contextlib.contextmanager
    def awaited_replies(
        self, number: int = 1, *, is_last: Callable[[RawMessage], bool] | None = None
    ) -> "Generator[tuple[str, asyncio.Future[list[RawMessage]]]]":
        """A subject for so many replies and the future that gets them (or Unavailable, when the connection is lost).

        With `is_last` for all up to one of which that is true. Nothing is awaited after the block.
        """
        token = secrets.token_hex(8)
        future: asyncio.Future[list[RawMessage]] = asyncio.get_running_loop().create_future()
        self._awaited[token] = (is_last or number, [], future)
        try:
            yield self._reply_prefix + token, future
        finally:
            self._awaited.pop(token, None)
            future.cancel()

    async def request_raw(
        self, subject: str, body: bytes, *, header: bytes = b"", timeout_seconds: float
    ) -> RawMessage:
        """Publish and wait for the reply. Raises Unavailable without responders or a timely response."""
        with self.awaited_replies() as (reply, future):
            command = publish_command(subject, body, header, reply)
            return (await self.exchange((command,), future, about=subject, timeout_seconds=timeout_seconds))[0]

    async def exchange(
        self,
        commands: Iterable[bytes],
        replies: "asyncio.Future[list[RawMessage]]",
        *,
        about: str,
        timeout_seconds: float,
    ) -> list[RawMessage]:
        """Write commands and wait for the replies to them. Raises Unavailable when one is missing in the end."""
        try:
            await self.send(commands)
            async with asyncio.timeout(timeout_seconds):
                responses = await replies
        except TimeoutError as error:
            raise ResponseTimeout(f"no response on {about} within {timeout_seconds:g} s") from error
        if any(response.status == NOBODY for response in responses):
            raise Unavailable(f"no responder on {about}")
        return responses

    def _receive_reply(self, message: RawMessage) -> None:
        awaited = self._awaited.get(message.subject[len(self._reply_prefix) :])
        if awaited is None:
            return
        until, responses, future = awaited
        responses.append(message)
        if (len(responses) >= until if isinstance(until, int) else until(message)) and not future.done():
            future.set_result(responses)

    async def _connect_to_server(self, s: Srv) -> None:
        self._end_cancelled_open()
        try:
            await self._connect_to(s)
        except (TimeoutError, ssl.SSLError):  # somebody may be there
            raise
        except (OSError, UnicodeError) as error:
            self._greeted_at = None
            self._count_unreached(s, error)
            raise

    def _count_unreached(self, server: Srv, error: Exception) -> None:
        self._unreached.add(server.uri.netloc)
        if self._fails_unreachable and self._unreached.issuperset(each.uri.netloc for each in self._server_pool):
            raise OutOfReach(f"NATS at {self._where} is unreachable: {error}") from error

    async def _connect_to(self, s: Srv) -> None:
        if s.uri.scheme in WEB_SOCKETS:
            await super()._connect_to_server(s)
            return
        s.last_attempt = time.monotonic()
        self._abort_socket()  # of an attempt that failed after it had connected: the client leaves it open
        self._transport = transport = self._transport or Transport()
        await transport.connect(s.uri, buffer_size=DEFAULT_BUFFER_SIZE, connect_timeout=self.options["connect_timeout"])

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002 - as the client has it
        """See to TLS before anything is sent; the authorities are read anew, as they change while one rotates."""
        server, ca = self._current_server, self._credentials.ca
        self._greeted_at = self._greeted_at or time.monotonic()
        if initial_connection and server is not None:
            demand_tls(info, server.uri.scheme, ca)
            if ca:
                self.options["tls"] = _readable(tls_context)(ca)
        await super()._process_info(info, initial_connection)

    async def _process_msg(self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes | None) -> None:
        """Hand a message on. Nothing in it may raise: an error here ends the connection, a redelivery the next."""
        if not (subject.isascii() and reply.isascii()):
            subject, reply = (text.decode(errors="replace").encode() for text in (subject, reply))
        sink = self._sinks.get(sid)
        try:
            if sink is None:
                await super()._process_msg(sid, subject, reply, data, headers)  # pyright: ignore[reportArgumentType]
            else:
                sink(RawMessage(subject.decode(), reply.decode(), data, headers or b""))
        except Exception:
            log.exception("message.unreadable", server="nats", subject=subject.decode())

    async def _process_err(self, err_msg: str) -> None:
        """Reconnect on whatever the server complains about, but for what concerns one subject only."""
        if "permissions violation" in err_msg:
            await super()._process_err(err_msg)
            return
        if "maximum subscriptions" in err_msg.lower():
            log.error("subscriptions.exceeded", server="nats", url=self._where, error=err_msg, **self._subscribed())
            return
        if "expired" in err_msg.lower():
            self.session_seconds = time.monotonic() - self.connected_at
        log.warning("server.complained", server="nats", url=self._where, error=err_msg)
        await self._process_op_err(NatsError(f"nats: {err_msg}"))

    def _subscribed(self) -> dict[str, Any]:
        lost = "the server takes no more of them: those beyond get no messages (end some, or use another connection)"
        return {"client": self.client_name, "subscriptions": len(self._subs), "reason": lost}

    async def _process_op_err(self, e: Exception) -> None:
        """Abort the socket first: closing one whose peer hangs would wait until its buffer is sent."""
        if self.is_connected:
            self._abort_socket()
        await super()._process_op_err(e)

    async def _on_lost_connection(self) -> None:
        self.losses += 1
        self.write_trouble = ""
        self._pending.clear()
        self._pending_data_size = 0
        lost = NoResponse(f"the connection to NATS at {self._where} was lost")
        for _, _, future in list(self._awaited.values()):
            if not future.done():
                future.set_exception(lost)
                future.exception()  # whoever waits gets it; nobody is blamed for not waiting
        for callback in tuple(self._on_lost):
            callback()

    def _end_cancelled_open(self) -> None:
        """The client tries again after any error, also one that took the place of a cancellation."""
        if not self.connected_at:
            _raise_if_cancelled(self._cancellations)

    async def _log_error(self, error: Exception) -> None:
        self._end_cancelled_open()
        if isinstance(error, OutOfReach):
            raise error
        if _NO_GREETING in str(error) and self._current_server is not None:
            self._count_unreached(self._current_server, error)
        now = asyncio.get_running_loop().time()
        if self._fails_unauthorized and (untrusted := untrusted_server(error, self._credentials.ca)):
            raise ServerUntrusted(f"NATS at {self._where} is not trusted: {untrusted}") from error
        if self._fails_unauthorized and _UNAUTHORIZED.search(str(error)):
            words = str(error).removeprefix("nats: ").strip("'")
            raise CredentialsRejected(f"NATS at {self._where} does not accept this user: {words}") from error
        self._check_silence()
        if not self.is_connected and not self.is_closed and _UNAUTHORIZED.search(str(error)):
            await self._pause_rejected(error)
        elif self.is_connected:
            if self._complaints.is_due(text := str(error) or repr(error)):
                log.warning("server.complained", server="nats", url=self._where, error=text)
        elif not self.is_closed and now - self._last_logged >= AWAIT_LOG_SECONDS:
            self._last_logged = now
            log.warning("server.awaited", server="nats", url=self._where, error=str(error) or repr(error))

    async def _pause_rejected(self, error: Exception) -> None:
        """Wait after a rejection; the client tries again when this returns."""
        seconds = min(MOST_REJECTION_SECONDS, FIRST_REJECTION_SECONDS * 2 ** min(self._rejections, 16))
        self._rejections += 1
        expires = self._expires()
        reason = str(error).removeprefix("nats: ").strip("'")
        if expires is not None and expires <= datetime.now(UTC):
            reason = f"the certificate expired at {expires.isoformat()}"
        self._rejected_because = reason
        log.warning(
            "credentials.rejected",
            server="nats",
            url=self._where,
            credentials=str(self._credentials),
            reason=reason,
            retry_s=seconds,
        )
        self._retry.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds * random.uniform(0.75, 1.25)):
                await self._retry.wait()

    def _expires(self) -> datetime | None:
        try:
            return self._credentials.expires()
        except (Terminal, SettingsInvalid):
            return None  # that the file cannot be read is the reason already
