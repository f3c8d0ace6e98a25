"""Bus on NATS JetStream: `connect` opens one connection as a `ports.bus.Bus`.

Its parts are beside it: `connection` (one for ever), `api` (calls and errors), `streams` (their configuration),
`publisher`, `work_queue`, `follower`, `micro_service`.
"""

import asyncio
import base64
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any

import structlog
from nats.errors import Error as NatsError

from gardenbus.common.adapters.nats.api import (
    NO_MESSAGE,
    JetStreamError,
    call,
    from_leader,
    from_nanoseconds,
    instant,
    nanoseconds,
    replicas_of,
)
from gardenbus.common.adapters.nats.connection import AWAIT_LOG_SECONDS, Connection
from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS, Credentials
from gardenbus.common.adapters.nats.direct_get import last_message, messages_from
from gardenbus.common.adapters.nats.follower import JetStreamFollower
from gardenbus.common.adapters.nats.messages import decode_headers, encode_headers, publish_command
from gardenbus.common.adapters.nats.micro_service import MicroService
from gardenbus.common.adapters.nats.outside import stated_position
from gardenbus.common.adapters.nats.own_follower import OwnFollower
from gardenbus.common.adapters.nats.publisher import Publisher
from gardenbus.common.adapters.nats.stats import bus_stats
from gardenbus.common.adapters.nats.streams import StreamSettings, ensure_streams
from gardenbus.common.adapters.nats.work_queue import JetStreamQueue, consumer_name
from gardenbus.common.api.identity.permissions import own_consumers
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest, SettingsInvalid, Unavailable
from gardenbus.common.ports.bus import (
    Follower,
    Handler,
    Headers,
    Message,
    ServiceIdentity,
    StreamMessage,
    StreamPosition,
)
from gardenbus.common.ports.stats import BusStats

MAX_SILENT_SECONDS = 1800.0
"""Half a tombstone's life: a follower that received nothing for longer may have missed a deletion."""

CLOCK_SECONDS = 15.0
"""Time for which a reading of the server's clock is extrapolated by our own."""

ENSURE_RETRY_SECONDS = 0.5
HEAL_SECONDS = 1.0
DRAIN_SECONDS = 2.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@contextlib.asynccontextmanager
async def connect(  # noqa: PLR0913  (each is an option of the connection)
    url: str,
    name: str,
    prefix: str = "garden",
    *,
    inbox_prefix: str | None = None,
    credentials: Credentials = NO_CREDENTIALS,
    streams: StreamSettings | None = None,
    manages_streams: bool = True,
    syncs_always: bool = False,
    fails_unauthorized: bool = False,
    fails_unreachable: bool = False,
) -> AsyncGenerator["JetStreamBus", None]:
    """Open the bus, waiting for the server and its JetStream as long as it takes; closed in the end.

    `url` may name several servers, separated by commas. Without `manages_streams` (a gardenlet) others create them.
    `syncs_always`: the server syncs each write, so that batches cost it less.
    Raises SettingsInvalid when JetStream rejects a stream's configuration; with `fails_unauthorized` Unavailable when
    the server does not accept this user, and with `fails_unreachable` OutOfReach when no address takes a connection.
    """
    bus = JetStreamBus(
        Subjects(prefix),
        streams or StreamSettings(),
        credentials=credentials,
        manages_streams=manages_streams,
        syncs_always=syncs_always,
    )
    try:
        await bus.open(
            url,
            name,
            inbox_prefix=inbox_prefix,
            fails_unauthorized=fails_unauthorized,
            fails_unreachable=fails_unreachable,
        )
        yield bus
    finally:
        await bus.close()


class JetStreamBus:
    """`ports.bus.Bus` on one connection; see `connect`. Until it is open every operation raises Unavailable.

    Outside the services it reads what is granted there (`outside`, `own_follower`): without `subjects`, `purge`,
    `last_stored_at`, `work_queue` and `acknowledged_floor`, and it follows what its own consumers are for.
    """

    def __init__(
        self,
        subjects: Subjects,
        settings: StreamSettings = StreamSettings(),  # noqa: B008  (it cannot be changed)
        *,
        credentials: Credentials = NO_CREDENTIALS,
        manages_streams: bool = False,
        syncs_always: bool = False,
    ) -> None:
        self._subjects = subjects
        self._credentials = credentials
        self._outsider = credentials.principal if credentials.is_outsider else None
        self._settings = settings
        self._manages_streams = manages_streams
        self._connection = Connection()
        self._publisher = Publisher(self._connection, subjects.prefix, syncs_always=syncs_always)
        self._queues: list[JetStreamQueue] = []
        self._services: list[MicroService] = []
        self._callbacks: list[Callable[[], Awaitable[None]]] = []
        self._restoring: asyncio.Task[None] | None = None
        self._healed_at = 0.0
        self._clock: tuple[float, datetime] | None = None

    async def open(
        self,
        url: str,
        name: str,
        *,
        inbox_prefix: str | None = None,
        fails_unauthorized: bool = False,
        fails_unreachable: bool = False,
    ) -> None:
        """Connect and ensure the streams; `connect` calls it."""
        await self._connection.open(
            url,
            name,
            inbox_prefix=inbox_prefix,
            credentials=self._credentials,
            on_reconnect=self._restore_soon,
            fails_unauthorized=fails_unauthorized,
            fails_unreachable=fails_unreachable,
        )
        await self._ensure_until_done()

    # ---- publishing

    async def publish(self, message: Message, *, expected_subject_sequence: int | None = None) -> int:
        """See the port."""
        try:
            return await self._publisher.publish(message, expected_subject_sequence=expected_subject_sequence)
        except Unavailable:
            await self._heal_streams()
            raise

    async def publish_many(self, messages: Sequence[Message]) -> None:
        """See the port."""
        try:
            await self._publisher.publish_many(messages)
        except Unavailable:
            await self._heal_streams()
            raise

    async def publish_batch(
        self, stream: str, messages: Sequence[Message], *, expected_last_sequence: int, whole: bool = False
    ) -> int:
        """See the port."""
        publish = self._publisher.publish_batch
        try:
            return await publish(messages, expected_last_sequence=expected_last_sequence, whole=whole)
        except Unavailable:
            log.warning("batch.unacknowledged", stream=stream, messages=len(messages))
            await self._heal_streams()
            raise

    # ---- reading

    async def position(self, stream: str) -> StreamPosition:
        """See the port."""
        if self._outsider is not None:
            return (await stated_position(self._connection, self._subjects, self._outsider.user, stream)).position
        return _position(await self._stream_state(stream))

    async def copies(self, stream: str) -> int:
        """See the port."""
        return 1 + len(replicas_of(await self._stream_state(stream)))

    async def last_stored_at(self, stream: str) -> datetime | None:
        """See the port."""
        state = (await self._stream_state(stream))["state"]
        return instant(state["last_ts"]) if state["last_seq"] else None

    async def acknowledged_floor(self, stream: str, consumer: str) -> StreamPosition:
        """See the port."""
        created = nanoseconds((await self._stream_state(stream))["created"])
        response = await self._call(f"CONSUMER.INFO.{stream}.{consumer_name(consumer)}")
        return StreamPosition(created, int(response["ack_floor"]["stream_seq"]))

    async def stats(self) -> BusStats:
        """Sizes of the streams and lag of their consumers; not in the port: nothing is decided on it."""
        stats = await bus_stats(self._call, self._subjects)
        return stats._replace(cannot_write=bool(self._connection.write_trouble))

    async def server_now(self, stream: str) -> datetime:
        """The server's clock: read from it now and then, carried on by our own monotonic one in between."""
        before = time.monotonic()
        if self._clock is None or before - self._clock[0] > CLOCK_SECONDS:
            now = await self._read_clock(stream)
            self._clock = (time.monotonic(), now)
        read_at, then = self._clock
        return then + timedelta(seconds=time.monotonic() - read_at)

    async def _read_clock(self, stream: str) -> datetime:
        if self._outsider is not None:
            return (await stated_position(self._connection, self._subjects, self._outsider.user, stream)).now
        return instant((await self._call(f"STREAM.INFO.{stream}"))["ts"])

    async def subjects(self, stream: str, subject_filter: str) -> Mapping[str, int]:
        """See the port."""
        found: dict[str, int] = {}
        while True:
            request = {"subjects_filter": subject_filter, "offset": len(found)}
            response = await self._stream_state(stream, request)
            page: dict[str, int] = response["state"].get("subjects") or {}
            found |= page
            if not page or len(found) >= int(response.get("total", 0)):
                return found

    async def last(self, stream: str, subject: str) -> StreamMessage | None:
        """See the port."""
        if self._outsider is not None:
            return await last_message(self._connection, stream, subject)
        return await self._stored(stream, {"last_by_subj": subject})

    async def first_from(self, stream: str, sequence: int) -> StreamMessage | None:
        """See the port."""
        return await self._stored(stream, {"seq": sequence, "next_by_subj": ">"})

    async def messages_from(
        self, stream: str, subject_filter: str, sequence: int, limit: int
    ) -> Sequence[StreamMessage]:
        """See the port."""
        return await messages_from(self._connection, stream, subject_filter, sequence, limit)

    async def _stored(self, stream: str, question: Mapping[str, Any]) -> StreamMessage | None:
        try:
            response = await call(self._connection, f"STREAM.MSG.GET.{stream}", question)
        except JetStreamError as api_error:
            if api_error.number == NO_MESSAGE:
                return None
            raise api_error.translated() from api_error
        message: dict[str, Any] = response["message"]
        headers = decode_headers(base64.b64decode(message.get("hdrs", "")))
        return StreamMessage(
            message["subject"],
            base64.b64decode(message.get("data", "")),
            headers,
            int(message["seq"]),
            from_nanoseconds(nanoseconds(message["time"])),
            headers.get("Nats-Marker-Reason"),
        )

    async def purge(self, stream: str, subject: str, *, upto_sequence: int | None = None) -> None:
        """See the port. The server's `seq` is the first that stays."""
        bound = {} if upto_sequence is None else {"seq": upto_sequence + 1}
        await self._call(f"STREAM.PURGE.{stream}", {"filter": subject, **bound})

    # ---- consuming

    async def work_queue(
        self, stream: str, consumer: str, subject_filter: str, *, fetch_bytes: int = 0
    ) -> JetStreamQueue:
        """See the port. Raises SettingsInvalid when the consumer's filter is another's already."""
        queue = JetStreamQueue(self._connection, stream, consumer, subject_filter, fetch_bytes=fetch_bytes)
        await queue.ensure()
        self._queues.append(queue)
        return queue

    def follow(
        self,
        stream: str,
        subject_filters: Sequence[str],
        *,
        after_sequence: int | None = None,
        last_per_subject: bool = False,
        headers_only: bool = False,
        max_silent_seconds: float = MAX_SILENT_SECONDS,
    ) -> AbstractAsyncContextManager[Follower]:
        """See the port. Outside the services, raises BadRequest for a filter that no consumer of its own is for."""
        follower = (
            JetStreamFollower(
                self._connection,
                stream,
                subject_filters,
                after_sequence=after_sequence,
                last_per_subject=last_per_subject,
                headers_only=headers_only,
                max_silent_seconds=max_silent_seconds,
            )
            if self._outsider is None
            else OwnFollower(
                self._connection,
                stream,
                self._own_consumers(self._outsider, subject_filters),
                after_sequence=after_sequence,
                last_per_subject=last_per_subject,
                headers_only=headers_only,
            )
        )

        @contextlib.asynccontextmanager
        async def opened() -> AsyncGenerator[Follower, None]:
            try:
                await follower.open()
                yield follower
            finally:
                follower.close()

        return opened()

    def _own_consumers(self, outsider: Principal, subject_filters: Sequence[str]) -> Mapping[str, str]:
        names = own_consumers(outsider, self._subjects)
        foreign = [each for each in subject_filters if each not in names]
        if foreign or not subject_filters:
            raise BadRequest(f"{outsider.user} may follow {', '.join(names) or 'nothing'}, not {foreign or 'all'}")
        return {each: names[each] for each in subject_filters}

    # ---- requests and services

    async def request(
        self, subject: str, body: bytes, *, headers: Headers = {}, timeout_seconds: float = 10.0
    ) -> bytes:
        """See the port. An error response of a service is returned as its body."""
        response = await self._connection.request_raw(
            subject, body, header=encode_headers(headers), timeout_seconds=timeout_seconds
        )
        return response.body

    def notify(self, subject: str, body: bytes) -> None:
        """See the port."""
        self._connection.send_nowait((publish_command(subject, body),))

    async def subscribe(self, subject: str, group: str, callback: Callable[[bytes], None]) -> None:
        """See the port."""
        self._connection.require_connected()
        await self._connection.listen(subject, lambda message: callback(message.body), queue=group)

    async def register(self, identity: ServiceIdentity) -> None:
        """See the port."""
        self._connection.require_connected()
        service = MicroService(self._connection, identity)
        self._services.append(service)
        await service.start()

    def note(self, name: str, text: str) -> None:
        """Have the metadata of this process' services say something from now on, or ("") no longer."""
        for service in self._services:
            service.note(name, text)

    def report_stats(self, data: Callable[[], Mapping[str, Any]]) -> None:
        """See the port."""
        for service in self._services:
            service.data = data

    async def serve(
        self, name: str, version: str, endpoints: Mapping[str, Handler], *, metadata: Mapping[str, str] = {}
    ) -> None:
        """See the port."""
        self._connection.require_connected()
        if not self._services:
            await self.register(ServiceIdentity(name, version))
        await self._services[0].add(endpoints, group=name, metadata=metadata)

    # ---- life

    async def ensure_streams(self) -> None:
        """See the port."""
        await ensure_streams(self._connection, self._subjects, self._settings)

    def on_reconnect(self, callback: Callable[[], Awaitable[None]]) -> None:
        """See the port."""
        self._callbacks.append(callback)

    @property
    def connection(self) -> Connection:
        """Its connection; not in the port."""
        return self._connection

    @property
    def connected(self) -> bool:
        """See the port."""
        return self._connection.is_connected

    async def close(self) -> None:
        """See the port."""
        try:
            for service in self._services:
                await service.stop(DRAIN_SECONDS)
            for queue in self._queues:
                queue.write_acknowledgements()
            with contextlib.suppress(NatsError, OSError, TimeoutError):
                if self.connected:
                    async with asyncio.timeout(DRAIN_SECONDS):
                        await self._connection.flush_fully()
        finally:
            await self._close_connection()

    async def _close_connection(self) -> None:
        if self._restoring is not None:
            self._restoring.cancel()
        if self._connection.is_closed:
            return
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._connection.close()
        except AssertionError:  # the client's own, when it never got as far as an address
            pass
        except TimeoutError:  # it was seen to wait without end after its server was killed
            log.warning("server.left", server="nats", waited_s=DRAIN_SECONDS)

    async def _call(self, endpoint: str, payload: Any = None) -> dict[str, Any]:
        try:
            return await call(self._connection, endpoint, payload)
        except JetStreamError as api_error:
            raise api_error.translated() from api_error

    async def _stream_state(self, stream: str, payload: Any = None) -> dict[str, Any]:
        return from_leader(stream, await self._call(f"STREAM.INFO.{stream}", payload))

    def _restore_soon(self) -> None:
        self._clock = None
        if self._restoring is not None:
            self._restoring.cancel()
        self._restoring = asyncio.create_task(self._restore())

    async def _restore(self) -> None:
        """After a reconnect: ensure streams and consumers, then call the callbacks."""
        try:
            await self._ensure_until_done()
        except SettingsInvalid as error:
            log.error("streams.outdated", problems=error.problems)  # noqa: TRY400
        for queue in self._queues:
            with contextlib.suppress(Unavailable, SettingsInvalid):  # the next fetch tries again
                await queue.ensure()
        for callback in self._callbacks:
            try:
                await callback()
            except Unavailable as error:  # who must not miss it notes it first
                log.warning("reconnect_callback.interrupted", reason=error.message)
            except Exception:
                log.exception("reconnect_callback.failed")

    async def _ensure_until_done(self) -> None:
        if not self._manages_streams:
            return
        logged_at = -AWAIT_LOG_SECONDS
        while True:
            try:
                await self.ensure_streams()
            except Unavailable as error:
                if time.monotonic() - logged_at >= AWAIT_LOG_SECONDS:
                    log.warning("server.awaited", server="jetstream", error=error.message)
                    logged_at = time.monotonic()
                await asyncio.sleep(ENSURE_RETRY_SECONDS)
            else:
                return

    async def _heal_streams(self) -> None:
        """Recreate the streams: a publish without acknowledgement may mean that one was removed."""
        now = time.monotonic()
        if not (self._manages_streams and self.connected) or now - self._healed_at < HEAL_SECONDS:
            return
        self._healed_at = now
        with contextlib.suppress(Unavailable, SettingsInvalid):
            await self.ensure_streams()


def _position(response: Mapping[str, Any]) -> StreamPosition:
    return StreamPosition(nanoseconds(response["created"]), int(response["state"]["last_seq"]))
