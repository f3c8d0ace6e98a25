"""Client of `garden.api.` that acts as the user of each request, and passes manifests on as they come."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.field_validation import FieldValidation
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.api.verbs import verb_of
from gardenbus.common.errors import NoResponse, Unavailable
from gardenbus.common.ports.bus import Bus
from gardenbus.kubeapi.domain.acting_users import ActingUser
from gardenbus.kubeapi.domain.statuses import Rejected, UnknownOutcome

REQUEST_SECONDS = 10.0

CONFIRMATION = b"confirmation.gardener.cloud/"
"""Beginning of the annotations that confirm a deletion, as they stand in what is sent: nothing of it is escaped."""


class WriteOptions(NamedTuple):
    """Options of a write: the version that its object must have (0: none there), a dry run, unknown fields."""

    condition: "tuple[ObjectKey, int] | None" = None
    is_dry_run: bool = False
    validation: FieldValidation = FieldValidation.WARN

    @property
    def headers(self) -> dict[str, str]:
        """The request's headers."""
        found = {Header.VALIDATE: self.validation.value}
        if self.is_dry_run:
            found[Header.DRY_RUN] = "true"
        if self.condition is not None:
            key, version = self.condition
            found[Header.CONDITION] = f"{key.tail}={version}"
        return found


class ApiResult(NamedTuple):
    """Result of a request, as JSON, and the warnings about it."""

    body: bytes
    warnings: Sequence[str] = ()


class _ApiResponse(msgspec.Struct, frozen=True):
    ok: bool = False
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: dict[str, Any] = {}
    warnings: tuple[str, ...] = ()


_decode = json_decoder(_ApiResponse)
_decode_any = json_decoder()


class ImpersonatingClient:
    """Requests as users."""

    def __init__(self, bus: Bus, subjects: Subjects) -> None:
        self._bus = bus
        self._subjects = subjects

    async def request(
        self, user: ActingUser, tail: str, body: object = None, options: WriteOptions | None = None
    ) -> ApiResult:
        """Send a request. Raises Rejected with the response's error; without one Unavailable, or UnknownOutcome."""
        headers: dict[str, str] = options.headers if options is not None else {}
        if user.groups:
            headers[Header.GROUPS] = msgspec.json.encode(user.groups).decode()
        payload = b"" if body is None else msgspec.json.encode(body)
        if user.impersonator:
            _check_own_name(user, tail, payload)
        subject = self._subjects.as_user(user.name, f"api.{tail}")
        try:
            response = _decode(
                await self._bus.request(subject, payload, headers=headers, timeout_seconds=REQUEST_SECONDS)
            )
        except NoResponse as error:
            raise _without_response(tail, error.message) from error
        except msgspec.MsgspecError as error:
            raise _without_response(tail, f"the response cannot be read: {error}") from error
        if response.ok:
            return ApiResult(bytes(response.result), response.warnings)
        raise _rejected(response.error)

    async def result(self, user: ActingUser, tail: str, body: object = None) -> Any:
        """Send a request that reads; its result, decoded."""
        return _decode_any((await self.request(user, tail, body)).body)


def _without_response(tail: str, problem: str) -> UnknownOutcome | Unavailable:
    """The error of a request that was sent: a write may have been carried out."""
    verb, _ = verb_of(tail)
    if verb is not None and not verb.writes:
        return Unavailable(f"{tail}: {problem}")
    return UnknownOutcome(f"{tail}: {problem}; whether it was carried out is unknown")


def _check_own_name(user: ActingUser, tail: str, payload: bytes) -> None:
    """Raise Rejected for a deletion, or the confirmation of one, by an operator as somebody else.

    Where two people have to approve a deletion one operator would be both.
    """
    if tail.startswith("delete.") or CONFIRMATION in payload:
        about = f'User "{user.impersonator}" cannot delete anything, nor confirm a deletion, as {user.name!r}'
        raise Rejected(403, "Forbidden", f"{about}: use your own name")


def _rejected(error: Mapping[str, Any]) -> Rejected:
    code = error.get("code")
    causes = [
        {"reason": "FieldValueInvalid", "message": str(each.get("message", "")), "field": str(each.get("field", ""))}
        for each in error.get("details") or ()
    ]
    return Rejected(
        code if isinstance(code, int) else 500,
        str(error.get("reason") or "InternalError"),
        str(error.get("message") or "rejected without a reason"),
        causes,
        int(error.get("retryAfterSeconds") or 0),
    )
