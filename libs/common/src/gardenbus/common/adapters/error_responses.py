"""Error responses: the error object that a requester receives when a handler fails."""

import msgspec

from gardenbus.common.errors import GardenbusError, InvalidResource

_REASON_LENGTH = 500
_INTERNAL = 500


def error_response(error: Exception, reconcile_id: str) -> tuple[int, str, bytes]:
    """Code, one-line description and JSON body of an error response; of a crash where its log is, and no details."""
    code, reason = _INTERNAL, "InternalError"
    message = f"the service failed on this request; its log: gardenbus logs --grep {reconcile_id}"
    details: list[dict[str, str]] = []
    if isinstance(error, GardenbusError):
        code, reason, message = error.code, error.reason, error.message
    if isinstance(error, InvalidResource):
        details = [{"field": problem.field, "message": problem.message} for problem in error.problems]
    body = {"ok": False, "error": {"code": code, "reason": reason, "message": message, "details": details}}
    return code, " ".join(message.split())[:_REASON_LENGTH], msgspec.json.encode(body)
