"""Asks `garden.api.`, as anybody may; what is to be changed is asked for as the user `dashboard`."""

import asyncio
from typing import Any

import msgspec

from gardenbus.common.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    GardenbusError,
    InvalidResource,
    NotFound,
    Terminal,
    Unavailable,
)
from gardenbus.common.ports.bus import Bus, Delivered, ReplayDone
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import CLUSTER_SCOPE, ObjectKey, Subjects
from gardenbus.common.resources.seed_management import CORDONED_BY, CORDONED_BY_OPERATOR
from gardenbus.dashboard.reconcilers.view import shown_event

USER = "dashboard"
ANSWER_SECONDS = 8.0
EVENTS_SECONDS = 3.0
EVENTS_OF_ONE = 200
OPERATION = "gardener.cloud/operation"
CONFIRMATION = "confirmation.gardener.cloud/deletion"

_ERRORS: dict[int, type[GardenbusError]] = {
    400: BadRequest,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    422: InvalidResource,
    503: Unavailable,
}


class _Answer(msgspec.Struct, frozen=True):
    ok: bool = False
    result: Any = None
    error: dict[str, Any] = {}


class Api:
    """One landscape's API. All raise what the answer says, or Unavailable without one."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects

    async def ask(self, tail: str, value: object = None, *, writes: bool = False) -> Any:
        """Ask and return the result."""
        subject = self._subjects.spoken_by(USER, f"api.{tail}") if writes else self._subjects.api(tail)
        body = b"" if value is None else msgspec.json.encode(value)
        reply = await self._bus.request(subject, body, timeout_seconds=ANSWER_SECONDS)
        try:
            answer = msgspec.json.decode(reply, type=_Answer)
        except msgspec.MsgspecError as error:
            raise Unavailable(f"{tail}: the answer cannot be read: {error}") from error
        if answer.ok:
            return answer.result
        message = str(answer.error.get("message") or "refused without a reason")
        raise _ERRORS.get(int(answer.error.get("code") or 0), Terminal)(message)

    async def get(self, key: ObjectKey) -> Document:
        """One manifest. Raises NotFound."""
        return await self.ask(f"get.{key.tail}")

    async def events_of(self, key: ObjectKey) -> list[Document]:
        """The Events about one object of the last day, the newest first; what is known after 3 s."""
        found: dict[str, Document] = {}
        stream, subject = self._subjects.stream("EVENTS"), self._subjects.event(key)
        try:
            async with asyncio.timeout(EVENTS_SECONDS), self._bus.follow(stream, [subject]) as follower:
                async for event in follower:
                    if isinstance(event, ReplayDone):
                        break
                    if isinstance(event, Delivered) and event.marker is None:
                        shown = _event(event.body)
                        found.pop(shown["id"], None)
                        found[shown["id"]] = shown
        except TimeoutError:
            pass
        return list(reversed(found.values()))[:EVENTS_OF_ONE]

    async def set_visible(self, seed: str, *, visible: bool) -> None:
        """Show a seed to the scheduler, or hide it (as `gardenbus cordon` does)."""
        patch = {
            "metadata": {"annotations": {CORDONED_BY: None if visible else CORDONED_BY_OPERATOR}},
            "spec": {"settings": {"scheduling": {"visible": visible}}},
        }
        await self.ask(f"patch.seed.{CLUSTER_SCOPE}.{seed}", patch, writes=True)

    async def retry(self, key: ObjectKey, *, has_seed: bool) -> None:
        """Have a shoot tried again: by its scheduler when it has no seed, else by its gardenlet."""
        if not has_seed:
            await self.ask(f"retry.{key.tail}", writes=True)
            return
        shoot = await self.get(key)
        failed = section(shoot, "status", "lastOperation").get("state") == "Failed"
        word = "retry" if failed else "reconcile"
        await self.ask(f"patch.{key.tail}", {"metadata": {"annotations": {OPERATION: word}}}, writes=True)

    async def delete(self, key: ObjectKey) -> None:
        """Delete an object. A person has confirmed it, and that is written on shoots as Gardener wants it."""
        if key.kind == "shoot":
            await self.ask(f"patch.{key.tail}", {"metadata": {"annotations": {CONFIRMATION: "true"}}}, writes=True)
        await self.ask(f"delete.{key.tail}", writes=True)


def _event(body: bytes) -> Document:
    try:
        return shown_event(msgspec.json.decode(body, type=dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return shown_event({})
