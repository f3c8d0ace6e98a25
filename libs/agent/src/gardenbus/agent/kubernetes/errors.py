"""Errors of a Kubernetes API: what its responses mean for the caller, as kinds of the errors that there are.

| error           | response                                                                                    |
|-----------------|---------------------------------------------------------------------------------------------|
| Unreachable     | none: nothing is known of the request's effect                                              |
| UntrustedServer | none, as the server has a certificate of another authority, or another name: an Unreachable |
| Unauthorized    | 401: the credentials are wrong, or have expired                                             |
| Throttled       | 429: again after `retry_after_seconds`                                                      |
| FieldConflict   | 409 of an apply: others manage `fields`                                                     |
| Expired         | 410: the version is too old for a watch or a page; list anew                                |
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from gardenbus.common.errors import BadRequest, Conflict, Forbidden, GardenbusError, Unavailable

DEFAULT_RETRY_AFTER_SECONDS = 1.0
_LONGEST_RETRY_AFTER_SECONDS = 300.0
_MOST_FIELDS = 5


class Unreachable(Unavailable):
    """The server gave no response."""

    reason = "ClusterUnreachable"


class UntrustedServer(Unreachable):
    """The server's certificate is not signed by the authority that is trusted, or is for another name."""

    reason = "UntrustedServer"


class Unauthorized(Forbidden):
    """The server does not accept the credentials."""

    code = 401
    reason = "Unauthorized"


class KubeconfigInvalid(BadRequest):
    """A kubeconfig cannot be read, or lacks something."""

    reason = "KubeconfigInvalid"


class Throttled(Unavailable):
    """The server has too much to do, and says when to come again."""

    code = 429
    reason = "TooManyRequests"

    def __init__(self, message: str, retry_after_seconds: float = DEFAULT_RETRY_AFTER_SECONDS) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class Expired(Conflict):
    """The resourceVersion, or the continuation, is too old."""

    code = 410
    reason = "Expired"


class ManagedField(NamedTuple):
    """A field that somebody else manages."""

    manager: str
    field: str


class FieldConflict(Conflict):
    """Fields of an apply belong to other managers."""

    def __init__(self, message: str, fields: Sequence[ManagedField]) -> None:
        super().__init__(message)
        self.fields = tuple(fields)


def field_conflicts(status: dict[str, Any]) -> list[ManagedField]:
    """Conflicting fields in a Status of 409; empty for a conflict of versions."""
    details = status.get("details")
    causes: Any = cast("dict[str, Any]", details).get("causes") if isinstance(details, dict) else None
    return [
        ManagedField(_manager(str(each.get("message") or "")), str(each.get("field") or ""))
        for each in cast("list[dict[str, Any]]", causes if isinstance(causes, list) else [])
        if each.get("reason") == "FieldManagerConflict"
    ]


def conflict_message(fields: Sequence[ManagedField]) -> str:
    """`kubectl-edit manages .spec.replicas`, by manager."""
    managers = sorted({each.manager for each in fields})
    texts: list[str] = []
    for manager in managers:
        names = [each.field for each in fields if each.manager == manager]
        more = f" and {len(names) - _MOST_FIELDS} more" if len(names) > _MOST_FIELDS else ""
        texts.append(f"{manager} manages {', '.join(names[:_MOST_FIELDS])}{more}")
    return "; ".join(texts)


def retry_after(header: str | None) -> float:
    """Seconds of a Retry-After header, at most five minutes; a second where it has none, or a date."""
    try:
        seconds = float(header or DEFAULT_RETRY_AFTER_SECONDS)
    except ValueError:
        seconds = DEFAULT_RETRY_AFTER_SECONDS
    return min(max(seconds, 0.1), _LONGEST_RETRY_AFTER_SECONDS)


def _manager(message: str) -> str:
    """The manager in `conflict with "kubectl" using apps/v1`."""
    return message.split('"')[1] if message.count('"') > 1 else message


def api_message(error: GardenbusError) -> str:
    """The server's own text of an error, without the request and the status in front of it."""
    status, _, text = error.message.partition(": ")[2].partition(" ")
    return text if status.isdigit() else error.message
