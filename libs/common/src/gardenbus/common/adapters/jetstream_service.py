"""A NATS micro service: `nats micro ls|info|stats` shows it, and requests on its endpoints are shared by replicas.

Source: NATS' ADR-32. Spoken here by itself: a request costs its task and nothing else, and the statistics tell how
long the answers took, not how long it took to begin them.

Each request runs as a task of its own: a slow one holds up nobody. What a handler raises is answered in the words of
DESIGN's error object, with the micro service's error headers beside it.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
import structlog

from gardenbus.common.adapters.bus_answers import error_answer
from gardenbus.common.adapters.jetstream_connection import (
    Connection,
    RawMessage,
    decode_headers,
    encode_headers,
    publish_command,
)
from gardenbus.common.errors import BadRequest, GardenbusError, Unavailable
from gardenbus.common.ports.bus import Handler, Request, ServiceIdentity

MAX_RUNNING = 1000
"""Requests in hand at once; further ones wait here."""

CONTROL = "$SRV"
_TYPES = {"PING": "ping_response", "INFO": "info_response", "STATS": "stats_response"}

_encode = msgspec.json.Encoder().encode

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


@dataclass(slots=True, eq=False)
class Endpoint:
    """One subject filter that is answered, and how that went so far (times in nanoseconds)."""

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
        """What INFO tells of it."""
        return {
            "name": self.name,
            "subject": self.subject,
            "queue_group": self.queue_group,
            "metadata": self.metadata,
        }

    def stats(self) -> dict[str, Any]:
        """What STATS tells of it."""
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
    """Answers for one service in this process: who it is, how it does, and requests on its endpoints."""

    def __init__(self, connection: Connection, identity: ServiceIdentity) -> None:
        self._connection = connection
        self._identity = identity
        self._id = connection.new_inbox().rpartition(".")[2]
        self._started = datetime.now(UTC)
        self._endpoints: list[Endpoint] = []
        self._listening: list[int] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: deque[tuple[Endpoint, RawMessage]] = deque()

    @property
    def name(self) -> str:
        """What it is called by `nats micro ls`."""
        return self._identity.name

    async def start(self) -> None:
        """Answer PING, INFO and STATS: to everybody, to this service's name and to this very instance."""
        for verb, answer in {"PING": self._ping, "INFO": self._info, "STATS": self._stats}.items():
            for subject in (verb, f"{verb}.{self.name}", f"{verb}.{self.name}.{self._id}"):
                self._listening.append(
                    await self._connection.listen(f"{CONTROL}.{subject}", self._control(verb, answer))
                )
        await self._connection.settle()

    async def add(self, endpoints: Mapping[str, Handler], *, group: str, metadata: Mapping[str, str]) -> None:
        """Listen on every endpoint's subject filter, sharing its requests with all who do so in the same group."""
        for subject, handler in endpoints.items():
            words = [word for word in subject.split(".") if word not in ("*", ">")]
            endpoint = Endpoint("-".join(words) or "all", subject, group, handler, metadata)
            self._endpoints.append(endpoint)
            self._listening.append(await self._connection.listen(subject, self._taker(endpoint), queue=group))
        await self._connection.settle()

    async def stop(self, drain_seconds: float) -> None:
        """Take no more requests; give those in hand some time, then cancel them."""
        try:
            async with asyncio.timeout(drain_seconds):
                await self._connection.stop_listening(self._listening)
        except (TimeoutError, Unavailable) as error:
            log.debug("service.undrained", reason=str(error))
        self._listening.clear()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=drain_seconds)
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()

    # ---- who it is

    def _control(self, verb: str, answer: Callable[[], dict[str, Any]]) -> Callable[[RawMessage], None]:
        def tell(message: RawMessage) -> None:
            about = {"type": f"io.nats.micro.v1.{_TYPES[verb]}", **self._who(), **answer()}
            self._reply(message, _encode(about), b"")

        return tell

    def _who(self) -> dict[str, Any]:
        identity = self._identity
        return {
            "name": identity.name,
            "id": self._id,
            "version": identity.version,
            "metadata": identity.metadata,
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
        return {"started": f"{started}Z", "endpoints": [endpoint.stats() for endpoint in self._endpoints]}

    # ---- what it is asked

    def _taker(self, endpoint: Endpoint) -> Callable[[RawMessage], None]:
        def take(message: RawMessage) -> None:
            if len(self._tasks) < MAX_RUNNING:
                self._begin(endpoint, message)
            else:
                self._waiting.append((endpoint, message))

        return take

    def _begin(self, endpoint: Endpoint, message: RawMessage) -> None:
        task = asyncio.create_task(self._answer(endpoint, message))
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._waiting:
            self._begin(*self._waiting.popleft())

    async def _answer(self, endpoint: Endpoint, message: RawMessage) -> None:
        began = time.perf_counter_ns()
        header = b""
        try:
            answer = await endpoint.handler(Request(message.subject, message.body, decode_headers(message.header)))
            if len(answer) > self._connection.max_payload:
                raise BadRequest("the answer is larger than the bus takes; ask for less at once")  # noqa: TRY301
        except Exception as error:
            if not isinstance(error, GardenbusError):
                log.exception("request.failed", subject=message.subject, exc_info=error)
            code, text, answer = error_answer(error)
            endpoint.errors += 1
            endpoint.last_error = f"{code}:{text}"
            header = encode_headers({"Nats-Service-Error": text, "Nats-Service-Error-Code": str(code)})
        endpoint.requests += 1
        endpoint.nanoseconds += time.perf_counter_ns() - began
        self._reply(message, answer, header)

    def _reply(self, message: RawMessage, body: bytes, header: bytes) -> None:
        if not message.reply or not self._connection.is_connected:  # nobody wants an answer, or nobody can be told
            log.debug("answer.dropped", subject=message.subject)
            return
        self._connection.post((publish_command(message.reply, body, header),))
