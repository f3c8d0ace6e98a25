"""Maker of the backend `nats`: each step is a request on `Subjects.extension`, served by whoever listens there.

The request is what a command of the backend `exec` reads. A response may be lost, and a request outlives the
gardenlet that sent it: a step may come again while the one before is at work, and then changes nothing.
"""

import asyncio
from typing import Any, Literal

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document, encode
from gardenbus.common.errors import Unavailable
from gardenbus.gardenlet.backend.nats.settings import read_settings
from gardenbus.gardenlet.backend.outside_maker import OutsideMaker
from gardenbus.gardenlet.backend.port import MakerContext, StepFailed
from gardenbus.gardenlet.backend.step_responses import NO_REASON, StepResponse, done, has_failed, is_unreadable, not_yet

MOST_REQUEST_BYTES = 1_000_000
"""The server ends a connection that sends more than 1 MiB at once, the header included."""


class _StepOutcome(msgspec.Struct, forbid_unknown_fields=True):
    """`result` says which of the other members count."""

    result: Literal["done", "again", "failed"]
    kept: dict[str, Any] | None = None
    problems: dict[str, str] = {}
    message: str = ""
    codes: list[str] = []


class NatsMaker(OutsideMaker):
    """The backend `nats`. Implements `backend.port.Maker`."""

    def __init__(self, context: MakerContext) -> None:
        super().__init__(context)
        self._settings = read_settings(
            context.settings.options, where=f"seed {context.seed_name}: backend.options of nats"
        )
        self._slots = asyncio.Semaphore(self._settings.concurrent_requests)
        self.kubernetes_version = self._settings.kubernetes_version

    async def request_step(self, step: str, given: Document) -> StepResponse:
        """Send the request and wait for its response, for a limited time."""
        body = encode({**given, "seed": {"name": self.context.seed_name}})
        if len(body) > MOST_REQUEST_BYTES:
            raise StepFailed(f"Step {step}: its request would have {len(body)} bytes, {MOST_REQUEST_BYTES} at most")
        try:
            async with self._slots:
                response = await self.context.extension.request(
                    step, body, timeout_seconds=self._settings.timeout_seconds
                )
        except Unavailable as error:
            raise StepFailed(f"Step {step}: {error.message}") from error
        return _read_response(response, what=f"Step {step}: responder over NATS")


def _read_response(body: bytes, *, what: str) -> StepResponse:
    try:
        response = decode_json(body, _StepOutcome)
    except msgspec.DecodeError as error:
        raise is_unreadable(body, error, what=what) from error
    reason = response.message or NO_REASON
    match response.result:
        case "done":
            return done(response.kept, response.problems, what=what)
        case "again":
            raise not_yet(reason, response.codes, what=what)
        case "failed":
            raise has_failed(reason, response.codes, what=what, manner="has failed")
