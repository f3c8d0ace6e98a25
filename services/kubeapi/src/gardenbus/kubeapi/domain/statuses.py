"""Status objects: errors of the API in Kubernetes' words."""

from collections.abc import Mapping, Sequence
from typing import Any

from gardenbus.common.api.document import Document
from gardenbus.common.errors import GardenbusError, InvalidResource
from gardenbus.kubeapi.domain.resources import ApiResource

_REASONS: Mapping[int, str] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    406: "NotAcceptable",
    408: "Timeout",
    409: "Conflict",
    410: "Expired",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}
_OWN_REASONS = frozenset({*_REASONS.values(), "AlreadyExists"})

RETRY_SECONDS = 1
_INVALID = 422


class Rejected(GardenbusError):
    """An error response of the API: any code and reason, with its fields at fault."""

    def __init__(
        self, code: int, reason: str, message: str, causes: Sequence[Mapping[str, str]] = (), retry_seconds: int = 0
    ) -> None:
        super().__init__(message)
        self.code = code  # pyright: ignore[reportAttributeAccessIssue] - of this response, not of the class
        self.reason = reason  # pyright: ignore[reportAttributeAccessIssue]
        self.causes = causes
        self.retry_seconds = retry_seconds


class ResourceExpired(GardenbusError):
    """A version whose later changes are not kept any more: list again."""

    code = 410
    reason = "Expired"


class TooLargeVersion(GardenbusError):
    """A version that was not reached in time."""

    code = 504
    reason = "Timeout"


def status_of(error: GardenbusError, resource: ApiResource | None = None, name: str = "", uid: str = "") -> Document:
    """The Status of an error about an object."""
    code = error.code
    reason = error.reason if error.reason in _OWN_REASONS else _REASONS.get(code, "InternalError")
    details: dict[str, Any] = {}
    if name:
        details["name"] = name
    if resource is not None:
        details |= {"group": resource.group, "kind": resource.plural} if resource.group else {"kind": resource.plural}
    if uid:
        details["uid"] = uid
    if causes := _causes(error):
        details["causes"] = causes
    if code in (429, 503, 504):
        details["retryAfterSeconds"] = retry_seconds(error)
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": _message(error, reason, resource, name),
        "reason": reason,
        "details": details,
        "code": code,
    }


def retry_seconds(error: GardenbusError) -> int:
    """Time after which a client tries again."""
    return (error.retry_seconds if isinstance(error, Rejected) else 0) or RETRY_SECONDS


def _causes(error: GardenbusError) -> list[Mapping[str, str]]:
    if isinstance(error, TooLargeVersion):
        return [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    if isinstance(error, Rejected) and (error.causes or error.code != _INVALID):
        return [*error.causes]
    if isinstance(error, Rejected):
        return [{"reason": "FieldValueInvalid", "message": error.message}]
    if isinstance(error, InvalidResource):
        return [
            {"reason": "FieldValueInvalid", "message": each.message, "field": each.field} for each in error.problems
        ]
    return []


def _message(error: GardenbusError, reason: str, resource: ApiResource | None, name: str) -> str:
    if resource is None or not name:
        return error.message
    about = f'{resource.qualified} "{name}"'
    match reason:
        case "NotFound":
            return f"{about} not found"
        case "AlreadyExists":
            return f"{about} already exists"
        case "Forbidden":
            return f"{about} is forbidden: {error.message}"
        case "Invalid":
            return (
                f'{resource.kind}{f".{resource.group}" if resource.group else ""} "{name}" is invalid: {error.message}'
            )
        case "Conflict":
            return f"Operation cannot be fulfilled on {about}: {error.message}"
        case _:
            return error.message


def success(resource: ApiResource, name: str, uid: str) -> Document:
    """The Status of a deletion that is done."""
    kind = {"group": resource.group, "kind": resource.plural} if resource.group else {"kind": resource.plural}
    details = {"name": name, **kind, **({"uid": uid} if uid else {})}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
