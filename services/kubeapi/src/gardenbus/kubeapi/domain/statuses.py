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

_WITHOUT_OBJECT = frozenset({"BadRequest", "MethodNotAllowed", "UnsupportedMediaType", "NotAcceptable", "Unauthorized"})
"""Reasons that are about the request alone."""

_NO_FIELD: Mapping[str, str] = {}
"""Details of a Status that is invalid for no field: kubectl prints the message of such a one, else the causes alone."""

RETRY_SECONDS = 1
_RETRIED = frozenset({429, 503, 504})
"""Codes with Retry-After: client-go sends the request again by itself, a write too."""
_INVALID = 422
_IS_INVALID = " is invalid: "


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
        self.about: Mapping[str, str] | None = None
        """Details of the Status, where it is about something else than the path says: `{}` is the request alone."""
        self.named = ""
        """The object, where no path names it: one that was to be created."""


def invalid_option(kind: str, field: str, reason: str, message: str) -> Rejected:
    """The error of an option of a request. `kind`: that of Kubernetes' struct, as `PatchOptions`."""
    described = f'{kind}.meta.k8s.io "" is invalid: {field}: {message}'
    error = Rejected(_INVALID, "Invalid", described, [{"reason": reason, "message": message, "field": field}])
    error.about = {"group": "meta.k8s.io", "kind": kind}
    return error


def failed_patch(message: str) -> Rejected:
    """The error of a JSON patch that cannot be carried out: about the request alone, as kube-apiserver has it."""
    error = Rejected(_INVALID, "Invalid", message)
    error.about = {}
    return error


class ResourceExpired(GardenbusError):
    """A version whose later changes are not kept any more: list again."""

    code = 410
    reason = "Expired"


class TooLargeVersion(GardenbusError):
    """A version that was not reached in time."""

    code = 504
    reason = "Timeout"


class UnknownOutcome(GardenbusError):
    """A write that may have been stored or not: clients read before they send it again."""

    code = 504
    reason = "Timeout"


def status_of(error: GardenbusError, resource: ApiResource | None = None, name: str = "", uid: str = "") -> Document:
    """The Status of an error about an object."""
    code = error.code
    reason = error.reason if error.reason in _OWN_REASONS else _REASONS.get(code, "InternalError")
    about = error.about if isinstance(error, Rejected) else None
    name = name or (error.named if isinstance(error, Rejected) else "")
    message = error.message if about is not None else _message(error, reason, resource, name)
    causes = _causes(error)
    if about is None:
        about = _about(reason, resource, name) if causes or reason != "Invalid" else _NO_FIELD
    details: dict[str, Any] = {**about}
    if uid:
        details["uid"] = uid
    if causes:
        details["causes"] = causes
    if (seconds := retry_seconds(error)) is not None:
        details["retryAfterSeconds"] = seconds
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "details": details,
        "code": code,
    }


def _about(reason: str, resource: ApiResource | None, name: str) -> dict[str, str]:
    """Details that name an object: one that is invalid by its kind, others by their resource."""
    if reason in _WITHOUT_OBJECT or resource is None:
        return {}
    named = {"name": name} if name else {}
    group = {"group": resource.group} if resource.group else {}
    return {**named, **group, "kind": resource.kind if reason == "Invalid" else resource.plural}


def retry_seconds(error: GardenbusError) -> int | None:
    """Time after which a client sends its request again; None where it shall not by itself."""
    if error.code not in _RETRIED or isinstance(error, UnknownOutcome):
        return None
    return (error.retry_seconds if isinstance(error, Rejected) else 0) or RETRY_SECONDS


def _causes(error: GardenbusError) -> list[Mapping[str, str]]:
    if isinstance(error, TooLargeVersion):
        return [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    if isinstance(error, Rejected):
        return [*error.causes]
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
            kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
            return f'{kind} "{name}" is invalid: {error.message.partition(_IS_INVALID)[2] or error.message}'
        case "Conflict":
            return f"Operation cannot be fulfilled on {about}: {error.message}"
        case _:
            return error.message


def success(resource: ApiResource, name: str, uid: str) -> Document:
    """The Status of a deletion that is done."""
    kind = {"group": resource.group, "kind": resource.plural} if resource.group else {"kind": resource.plural}
    details = {"name": name, **kind, **({"uid": uid} if uid else {})}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
