"""Requests to the apiserver from services that write as users do, so that admission applies to them."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    GardenbusError,
    InvalidResource,
    NotFound,
    TooManyRequests,
    Unavailable,
    Unsupported,
)
from gardenbus.common.ports.bus import Bus

_BY_REASON: dict[str, type[GardenbusError]] = {
    error.reason: error
    for error in (BadRequest, Conflict, Forbidden, InvalidResource, NotFound, TooManyRequests, Unsupported)
}
_BY_CODE: dict[int, type[GardenbusError]] = {
    error.code: error for error in (BadRequest, Conflict, Forbidden, InvalidResource, NotFound, Unavailable)
}


class RequestPrecondition(msgspec.Struct, frozen=True):
    """The version that an object must have for a request to be carried out; Conflict otherwise."""

    key: ObjectKey
    version: int

    @property
    def headers(self) -> dict[str, str]:
        """The request header that carries it."""
        return {Header.CONDITION: f"{self.key.tail}={self.version}"}


class _ResponseBody(msgspec.Struct, frozen=True):
    ok: bool = False
    result: Any = None
    error: dict[str, Any] = {}


_decode = json_decoder(_ResponseBody)


@dataclass(eq=False)
class ApiserverClient:
    """Client of `<prefix>.api.`, anonymous unless a `user` is given.

    `validation` is of fields that a kind does not have. A service passes on what is stored, also templates of an
    earlier time: their fields were reviewed when sent. `unknown_error` is raised for error responses whose reason and
    code are no library error's.
    """

    bus: Bus
    subjects: Subjects
    _: KW_ONLY
    user: str = ""
    timeout_seconds: float = 10.0
    validation: FieldValidation = FieldValidation.IGNORE
    unknown_error: type[GardenbusError] = Unavailable

    async def request(
        self,
        tail: str,
        body: object = None,
        *,
        precondition: RequestPrecondition | None = None,
        timeout_seconds: float | None = None,
        dry_run: bool = False,
    ) -> Any:
        """Send a request and return its result; `timeout_seconds` instead of the client's. A dry run writes nothing.

        Raises the error of the response, or Unavailable without a readable one (the write may have happened).
        """
        subject = self.subjects.as_user(self.user, f"api.{tail}") if self.user else self.subjects.api(tail)
        headers = {Header.VALIDATE: self.validation.value} | ({Header.DRY_RUN: "true"} if dry_run else {})
        payload = await self.bus.request(
            subject,
            b"" if body is None else msgspec.json.encode(body),
            headers=headers if precondition is None else headers | precondition.headers,
            timeout_seconds=self.timeout_seconds if timeout_seconds is None else timeout_seconds,
        )
        return response_result(payload, tail, unknown_error=self.unknown_error)

    async def patch(self, key: ObjectKey, patch: Document, precondition: RequestPrecondition) -> None:
        """Update an object by a merge patch; raises as `request` does."""
        body = {"kind": key.kind, "namespace": key.namespace, "name": key.name, "patch": patch}
        await self.request("patch", body, precondition=precondition)


def response_result(payload: bytes, request: str, *, unknown_error: type[GardenbusError] = Unavailable) -> Any:
    """Result of a response. Raises the error that it carries, or Unavailable when it cannot be read."""
    try:
        response = _decode(payload)
    except msgspec.MsgspecError as error:
        raise Unavailable(f"{request}: the response cannot be read: {error}") from error
    if response.ok:
        return response.result
    code = response.error.get("code")
    by_code = _BY_CODE.get(code if isinstance(code, int) else 0, unknown_error)
    message = str(response.error.get("message") or "rejected without a reason")
    raise _BY_REASON.get(str(response.error.get("reason")), by_code)(message)
