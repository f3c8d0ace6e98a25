"""Writes through the apiserver, as people write, so that replicas are admitted as anybody's objects are.

Each request stands under a condition: it is carried out only while the set has exactly the version that the decision
was written at (otherwise Conflict), which keeps the hand of a replica of this service that was held up from doing what
is no longer meant.
"""

from typing import Any

import msgspec

from gardenbus.common.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    GardenbusError,
    InvalidResource,
    NotFound,
    Unavailable,
    Unsupported,
)
from gardenbus.common.ports.bus import Bus
from gardenbus.common.resources.document import Document, encode
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects

USER = "managedseedset"

_ERRORS: dict[str, type[GardenbusError]] = {
    error.reason: error for error in (BadRequest, Conflict, Forbidden, InvalidResource, NotFound, Unsupported)
}
_BY_CODE: dict[int, type[GardenbusError]] = {
    400: BadRequest,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    422: InvalidResource,
}


class Condition(msgspec.Struct, frozen=True):
    """An object that must have exactly this version for a request to be carried out."""

    key: ObjectKey
    version: int

    @property
    def headers(self) -> dict[str, str]:
        """As a request carries it."""
        return {Header.CONDITION: f"{self.key.tail}={self.version}"}


class _Answer(msgspec.Struct):
    ok: bool
    error: dict[str, Any] = {}


class Garden:
    """Requests of this service. All raise what the apiserver answered, and Unavailable when it did not."""

    def __init__(self, bus: Bus, subjects: Subjects, *, timeout_seconds: float = 10.0) -> None:
        self._bus = bus
        self._subjects = subjects
        self._timeout_seconds = timeout_seconds

    async def apply(self, document: Document, condition: Condition) -> None:
        """Bring an object about, or up to a manifest."""
        await self._ask("apply", document, condition)

    async def patch(self, key: ObjectKey, patch: Document, condition: Condition) -> None:
        """Change an object by a merge patch."""
        named = {"kind": key.kind, "namespace": key.namespace, "name": key.name, "patch": patch}
        await self._ask("patch", named, condition)

    async def delete(self, key: ObjectKey, condition: Condition) -> None:
        """Delete an object; one that is gone is no error."""
        try:
            await self._ask(f"delete.{key.tail}", None, condition)
        except NotFound:
            return

    async def bind(self, shoot: ObjectKey, seed: str, condition: Condition) -> None:
        """Move a shoot to another seed."""
        await self._ask("bind", {"namespace": shoot.namespace, "name": shoot.name, "seed": seed}, condition)

    async def _ask(self, tail: str, body: Document | None, condition: Condition) -> None:
        answer = await self._bus.request(
            self._subjects.spoken_by(USER, f"api.{tail}"),
            b"" if body is None else encode(body),
            headers=condition.headers,
            timeout_seconds=self._timeout_seconds,
        )
        try:
            read = msgspec.json.decode(answer, type=_Answer)
        except msgspec.DecodeError as error:
            raise Unavailable(f"the apiserver's answer cannot be read: {error}") from error
        if not read.ok:
            raise _error(read.error)


def _error(error: dict[str, Any]) -> GardenbusError:
    code = error.get("code")
    kind = _ERRORS.get(str(error.get("reason"))) or _BY_CODE.get(code if isinstance(code, int) else 0, Unavailable)
    return kind(str(error.get("message") or "refused without a reason"))
