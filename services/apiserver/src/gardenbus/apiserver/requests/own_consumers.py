"""Makes the consumers by which outsiders follow a stream, and responds as JetStream does (`domain/own_consumers`)."""

import msgspec

from gardenbus.apiserver.domain.own_consumers import own_consumer
from gardenbus.common.api.identity.permissions import consumer_creation
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import BadRequest, Unavailable
from gardenbus.common.ports.bus import Bus, Request

TIMEOUT_SECONDS = 5.0
"""Longest wait for JetStream; whoever requests it waits no longer."""

_TYPE = "io.nats.jetstream.api.v1.consumer_create_response"
_BAD_REQUEST, _NOT_AVAILABLE = (400, 10003), (503, 10008)
"""Codes of JetStream's errors."""


class OwnConsumers:
    """Handles requests on `subjects.consumer(…)`."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects

    async def handle(self, request: Request) -> bytes:
        """JetStream's response, or one like it where nothing is made; never raises."""
        try:
            made = own_consumer(request.subject, request.body, self._subjects)
            subject = consumer_creation(made.stream, made.name, made.filter_subject)
            return await self._bus.request(subject, made.body, timeout_seconds=TIMEOUT_SECONDS)
        except BadRequest as error:
            return _error(*_BAD_REQUEST, error.message)
        except Unavailable as error:
            return _error(*_NOT_AVAILABLE, error.message)


def _error(code: int, number: int, description: str) -> bytes:
    error = {"code": code, "err_code": number, "description": description}
    return msgspec.json.encode({"type": _TYPE, "error": error})
