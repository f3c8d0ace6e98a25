"""Answering requests as a NATS micro service, so that `nats micro ls` shows it and replicas share the work.

Each request runs as a task of its own: a slow one holds up nobody. What a handler raises is answered in the words of
DESIGN's error object, with the micro service's error headers beside it.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog
from nats.errors import Error as NatsError
from nats.micro import add_service  # pyright: ignore[reportUnknownVariableType]
from nats.micro.request import Request as MicroRequest
from nats.micro.service import Service

from gardenbus.common.adapters.bus_answers import error_answer
from gardenbus.common.adapters.jetstream_connection import Connection
from gardenbus.common.errors import BadRequest, GardenbusError
from gardenbus.common.ports.bus import Handler, Request

MAX_RUNNING = 1000
"""Requests in hand at once; further ones wait in the client."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class Answerer:
    """Runs the handlers of one service."""

    def __init__(self, client: Connection) -> None:
        self._client = client
        self._tasks: set[asyncio.Task[None]] = set()
        self._slots = asyncio.Semaphore(MAX_RUNNING)
        self._service: Service | None = None

    async def start(self, name: str, version: str, endpoints: Mapping[str, Handler]) -> None:
        """Listen on every endpoint's subject filter."""
        self._service = await add_service(self._client, name=name, version=version, queue_group=name)
        for subject, handler in endpoints.items():
            words = [word for word in subject.split(".") if word not in ("*", ">")]
            await self._service.add_endpoint(
                name="-".join(words) or "all", subject=subject, handler=self._spawner(handler)
            )
        await self._client.settle()

    async def stop(self, drain_seconds: float) -> None:
        """Take no more requests; give those in hand some time, then cancel them."""
        service, self._service = self._service, None
        if service is not None and self._client.is_connected:
            try:
                async with asyncio.timeout(drain_seconds):
                    await service.stop()
            except (TimeoutError, NatsError) as error:
                log.debug("service.undrained", reason=str(error))
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=drain_seconds)
        for task in self._tasks:
            task.cancel()

    def _spawner(self, handler: Handler) -> Any:
        async def take(request: MicroRequest) -> None:
            await self._slots.acquire()
            task = asyncio.create_task(self._answer(handler, request))
            self._tasks.add(task)
            task.add_done_callback(self._end)

        return take

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._slots.release()

    async def _answer(self, handler: Handler, request: MicroRequest) -> None:
        try:
            answer = await handler(Request(request.subject, request.data, request.headers or {}))
            if len(answer) > self._client.max_payload:
                raise BadRequest("the answer is larger than the bus takes; ask for less at once")  # noqa: TRY301
        except Exception as error:
            if not isinstance(error, GardenbusError):
                log.exception("request.failed", subject=request.subject, exc_info=error)
            code, text, body = error_answer(error)
            await self._respond(request, body, {"Nats-Service-Error": text, "Nats-Service-Error-Code": str(code)})
        else:
            await self._respond(request, answer, None)

    async def _respond(self, request: MicroRequest, body: bytes, headers: dict[str, str] | None) -> None:
        try:
            await request.respond(body, headers)
        except (NatsError, ValueError) as error:  # the connection is gone, or nobody wants an answer
            log.debug("answer.dropped", subject=request.subject, reason=str(error))
