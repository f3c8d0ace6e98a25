"""Client of `garden.api.`: as a user who has logged in, else reading as nobody and changing as `dashboard`."""

import asyncio
from copy import copy
from dataclasses import replace
from typing import Any

import msgspec

from gardenbus.common.api.confirmation import CONFIRMING_PATCH
from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.controller.api_client import ApiserverClient, RequestPrecondition
from gardenbus.common.errors import Terminal
from gardenbus.common.ports.bus import Bus, ReplayDone, StreamMessage
from gardenbus.dashboard.domain.rows import event_row

USER = "dashboard"
REQUEST_TIMEOUT_SECONDS = 8.0
EVENTS_TIMEOUT_SECONDS = 3.0
MAX_EVENTS = 200
OPERATION = "gardener.cloud/operation"


class GardenApiClient:
    """API of one landscape. All methods raise the error of the response, or Unavailable without one."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self.bus = bus
        self.subjects = subjects
        self._reader = ApiserverClient(bus, subjects, validation=FieldValidation.STRICT, unknown_error=Terminal)
        self._writer = replace(self._reader, user=USER)

    def acting_as(self, user: str) -> "GardenApiClient":
        """The same API, whose requests are all the user's."""
        other = copy(self)
        other._reader = other._writer = replace(self._reader, user=user)  # noqa: SLF001  its own kind
        return other

    async def request(
        self, tail: str, value: object = None, *, writes: bool = False, timeout_seconds: float = REQUEST_TIMEOUT_SECONDS
    ) -> Any:
        """Send a request and return the result."""
        client = self._writer if writes else self._reader
        return await client.request(tail, value, timeout_seconds=timeout_seconds)

    async def census(self, *, timeout_seconds: float = REQUEST_TIMEOUT_SECONDS) -> dict[str, int]:
        """Counts of everything."""
        return await self.request("census", timeout_seconds=timeout_seconds)

    async def get(self, key: ObjectKey) -> Document:
        """One manifest. Raises NotFound."""
        return await self.request(f"get.{key.tail}")

    async def events_of(self, key: ObjectKey) -> list[Document]:
        """Return the Events about one object of the last day, the newest first; those read within 3 s."""
        found: dict[str, Document] = {}
        stream, subject = self.subjects.stream("EVENTS"), self.subjects.event(key)
        try:
            async with asyncio.timeout(EVENTS_TIMEOUT_SECONDS), self.bus.follow(stream, [subject]) as follower:
                async for event in follower:
                    if isinstance(event, ReplayDone):
                        break
                    if isinstance(event, StreamMessage) and event.marker is None:
                        shown = _event(event.body)
                        found.pop(shown["id"], None)
                        found[shown["id"]] = shown
        except TimeoutError:
            pass
        return list(reversed(found.values()))[:MAX_EVENTS]

    async def change(self, key: ObjectKey, patch: Document, *, version: int, dry_run: bool = False) -> None:
        """Patch an object as it was seen, or find out whether that is accepted. Raises Conflict for another version."""
        precondition = RequestPrecondition(key, version)
        client, timeout = self._writer, REQUEST_TIMEOUT_SECONDS
        await client.request(
            f"patch.{key.tail}", patch, precondition=precondition, timeout_seconds=timeout, dry_run=dry_run
        )

    async def record(self, key: ObjectKey, reason: str, message: str) -> None:
        """Record an Event about an object, by the requester's name."""
        await self.request(f"event.{key.tail}", {"reason": reason, "message": message}, writes=True)

    async def explain_drain(self, seed: str) -> Document:
        """Return where the shoots of a seed would move. Raises NotFound, Forbidden, Unavailable."""
        return await self.request(f"explain-drain.{seed}")

    async def bind(self, shoot: ObjectKey, seed: str, *, version: str) -> None:
        """Move a shoot as it was seen to another seed. Raises Conflict for another version, Forbidden."""
        body = {"namespace": shoot.namespace, "name": shoot.name, "seed": seed, "resourceVersion": version}
        await self.request("bind", body, writes=True)

    async def retry(self, key: ObjectKey, *, has_seed: bool) -> None:
        """Retry a shoot: by its scheduler when it has no seed, else by its gardenlet."""
        if not has_seed:
            await self.request(f"retry.{key.tail}", writes=True)
            return
        shoot = await self.get(key)
        failed = section(shoot, "status", "lastOperation").get("state") == "Failed"
        word = "retry" if failed else "reconcile"
        await self.request(f"patch.{key.tail}", {"metadata": {"annotations": {OPERATION: word}}}, writes=True)

    async def delete(self, key: ObjectKey) -> None:
        """Delete an object. The user has confirmed it, and shoots get Gardener's confirmation annotation."""
        if key.kind == "shoot":
            await self.request(f"patch.{key.tail}", CONFIRMING_PATCH, writes=True)
        await self.request(f"delete.{key.tail}", writes=True)


def _event(body: bytes) -> Document:
    try:
        return event_row(decode_json(body, dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return event_row({})
