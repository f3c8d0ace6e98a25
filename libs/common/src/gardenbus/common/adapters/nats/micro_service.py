"""NATS micro service: `nats micro ls|info|stats` shows it, and replicas share the requests on its endpoints.

Source: NATS' ADR-32. Each request runs as a task of its own: a slow one delays no other, and the statistics measure the
whole response (docs/decisions/0016). What a handler raises becomes the error object as its response, with the micro
service's error headers.
"""

import asyncio
import contextlib
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from gardenbus.common.adapters.error_responses import error_response
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.adapters.nats.messages import RawMessage, decode_headers, encode_headers, publish_command
from gardenbus.common.errors import BadRequest, GardenbusError, Unavailable
from gardenbus.common.ports.bus import Handler, Request, ServiceIdentity

MAX_RUNNING = 4000
"""Concurrent requests; further ones wait here. A handler that bounds what is in flight by user has less."""

REPLY_PREFIXES = ("_INBOX.", "_R_.")
"""Beginnings of subjects that responses go to. Any other could make the response, or an acknowledgement of the server
that came here as a request, a message of somebody else's."""

HELD_SECONDS = 30.0
"""Longest time that a response is held while the connection is lost: its requester may be connected elsewhere."""


DROP_LOG_SECONDS = 60.0
"""Least time between two lines about requests without a valid reply subject."""

CONTROL = "$SRV"
WRITE_TROUBLE = "write-trouble"
"""Metadata of a service whose publishes NATS does not write: the reason."""

_TYPES = {"PING": "ping_response", "INFO": "info_response", "STATS": "stats_response"}

_encode = msgspec.json.Encoder().encode

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(slots=True, eq=False)
class Endpoint:
    """Subject filter with its handler and statistics (times in nanoseconds)."""

    name: str
    subject: str
    queue_group: str
    handler: Handler
    metadata: Mapping[str, str]
    requests: int = 0
    errors: int = 0
    last_error: str = ""
    nanoseconds: int = 0

    def info(self) -> dict[str, Any]:
        """Its part of the INFO response."""
        return {
            "name": self.name,
            "subject": self.subject,
            "queue_group": self.queue_group,
            "metadata": self.metadata,
        }

    def stats(self) -> dict[str, Any]:
        """Its part of the STATS response."""
        return {
            "name": self.name,
            "subject": self.subject,
            "queue_group": self.queue_group,
            "num_requests": self.requests,
            "num_errors": self.errors,
            "last_error": self.last_error,
            "processing_time": self.nanoseconds,
            "average_processing_time": self.nanoseconds // self.requests if self.requests else 0,
        }


class MicroService:
    """One service in this process: its identity, statistics and endpoints."""

    def __init__(self, connection: Connection, identity: ServiceIdentity) -> None:
        self._connection = connection
        self._identity = identity
        self._id = connection.new_inbox().rpartition(".")[2]
        self._started = datetime.now(UTC)
        self._endpoints: list[Endpoint] = []
        self._listening: list[int] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._backlog: deque[tuple[Endpoint, RawMessage]] = deque()
        self._drop_logged_at = -DROP_LOG_SECONDS
        self._notes: dict[str, str] = {}
        self.data: Callable[[], Mapping[str, Any]] | None = None
        """Returns the `data` of STATS, which only services and operators may request."""

    def note(self, name: str, text: str) -> None:
        """Have the metadata say something from now on, or ("") no longer."""
        self._notes[name] = text

    @property
    def name(self) -> str:
        """Name in `nats micro ls`."""
        return self._identity.name

    async def start(self) -> None:
        """Serve PING, INFO and STATS: for everybody, for this service's name and for this very instance."""
        for verb, response in {"PING": self._ping, "INFO": self._info, "STATS": self._stats}.items():
            for subject in (verb, f"{verb}.{self.name}", f"{verb}.{self.name}.{self._id}"):
                self._listening.append(
                    await self._connection.listen(f"{CONTROL}.{subject}", self._control(verb, response))
                )
        await self._connection.flush_fully()

    async def add(self, endpoints: Mapping[str, Handler], *, group: str, metadata: Mapping[str, str]) -> None:
        """Listen on every endpoint's subject filter, sharing its requests with all who do so in the same group."""
        for subject, handler in endpoints.items():
            words = [word for word in subject.split(".") if word not in ("*", ">")]
            endpoint = Endpoint("-".join(words) or "all", subject, group, handler, metadata)
            self._endpoints.append(endpoint)
            self._listening.append(await self._connection.listen(subject, self._sink(endpoint), queue=group))
        await self._connection.flush_fully()

    async def stop(self, drain_seconds: float) -> None:
        """Accept no more requests; let those in flight finish for some time, then cancel them."""
        try:
            await self._drain(drain_seconds)
        finally:
            self._backlog.clear()
            for task in self._tasks:
                task.cancel()

    async def _drain(self, drain_seconds: float) -> None:
        try:
            async with asyncio.timeout(drain_seconds):
                await self._connection.stop_listening(self._listening)
        except (TimeoutError, Unavailable) as error:
            log.debug("service.undrained", reason=str(error))
        self._listening.clear()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=drain_seconds)

    # ---- control subjects

    def _control(self, verb: str, response: Callable[[], dict[str, Any]]) -> Callable[[RawMessage], None]:
        def respond(message: RawMessage) -> None:
            document = {"type": f"io.nats.micro.v1.{_TYPES[verb]}", **self._identity_fields(), **response()}
            self._reply(message, _encode(document), b"")

        return respond

    def _identity_fields(self) -> dict[str, Any]:
        identity = self._identity
        notes = {**self._notes, WRITE_TROUBLE: self._connection.write_trouble}
        return {
            "name": identity.name,
            "id": self._id,
            "version": identity.version,
            "metadata": {**identity.metadata, **{name: text for name, text in notes.items() if text}},
        }

    def _ping(self) -> dict[str, Any]:
        return {}

    def _info(self) -> dict[str, Any]:
        return {
            "description": self._identity.description,
            "endpoints": [endpoint.info() for endpoint in self._endpoints],
        }

    def _stats(self) -> dict[str, Any]:
        started = self._started.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        stats = {"started": f"{started}Z", "endpoints": [endpoint.stats() for endpoint in self._endpoints]}
        return stats if self.data is None else {**stats, "data": self.data()}

    # ---- requests

    def _sink(self, endpoint: Endpoint) -> Callable[[RawMessage], None]:
        def receive(message: RawMessage) -> None:
            if not message.reply.startswith(REPLY_PREFIXES):
                self._drop(message)
            elif len(self._tasks) < MAX_RUNNING:
                self._start(endpoint, message)
            else:
                self._backlog.append((endpoint, message))

        return receive

    def _drop(self, message: RawMessage) -> None:
        now = time.monotonic()
        if now - self._drop_logged_at >= DROP_LOG_SECONDS:
            self._drop_logged_at = now
            reply = message.reply[:200] or "none"
            log.warning("request.dropped", subject=message.subject[:200], reply=reply, reason="no inbox to respond to")

    def _start(self, endpoint: Endpoint, message: RawMessage) -> None:
        task = asyncio.create_task(self._handle(endpoint, message))
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._backlog:
            self._start(*self._backlog.popleft())

    async def _handle(self, endpoint: Endpoint, message: RawMessage) -> None:
        reconcile_id = secrets.token_hex(8)
        structlog.contextvars.bind_contextvars(reconcile_id=reconcile_id)  # of this task alone
        began = time.perf_counter_ns()
        header = b""
        try:
            response = await endpoint.handler(Request(message.subject, message.body, decode_headers(message.header)))
            if len(response) > self._connection.max_payload:
                raise BadRequest("the response is larger than the bus accepts; request less at once")  # noqa: TRY301
        except Exception as error:
            if not isinstance(error, GardenbusError):
                log.exception("request.failed", subject=message.subject, exc_info=error)
            code, text, response = error_response(error, reconcile_id)
            endpoint.errors += 1
            endpoint.last_error = f"{code}:{text}"
            header = encode_headers({"Nats-Service-Error": text, "Nats-Service-Error-Code": str(code)})
        endpoint.requests += 1
        endpoint.nanoseconds += time.perf_counter_ns() - began
        if not self._connection.is_connected:
            with contextlib.suppress(Unavailable):
                await self._connection.until_connected(HELD_SECONDS)
        self._reply(message, response, header)

    def _reply(self, message: RawMessage, body: bytes, header: bytes) -> None:
        if not message.reply or not self._connection.is_connected:  # no reply is wanted, or none can be sent
            log.debug("response.dropped", subject=message.subject)
            return
        self._connection.send_nowait((publish_command(message.reply, body, header),))
