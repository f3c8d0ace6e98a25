"""Log of requests that were rejected or failed: each such response carries the id of its lines in the log.

Reads that found nothing, conflicts and requests over budget have neither: they are part of what clients do. Of one
requester's rejections that are alike there is a line at once and then one a minute, with the id of the last.
"""

from collections.abc import Callable

from gardenbus.apiserver.domain.responses import RequestResponse
from gardenbus.common.api.verbs import verb_of
from gardenbus.common.controller.reconcile_ids import current_reconcile_id
from gardenbus.common.controller.repeated_lines import RepeatedLines
from gardenbus.common.errors import Conflict, Forbidden, TooManyRequests, Unavailable

_CODES_WITHOUT = frozenset({Conflict.code, TooManyRequests.code})
LONGEST = 500


class RejectionLog:
    """Writes the lines. One for all requests."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._lines = RepeatedLines("request.rejected", monotonic)

    def record(self, response: RequestResponse, *, tail: str, user: str) -> None:
        """Put the id of the log's lines into a response with an error, and write the line unless another place does."""
        code, reason, message = (response.error[name] for name in ("code", "reason", "message"))
        verb, _ = verb_of(tail)
        is_write = verb is not None and verb.writes
        if code in _CODES_WITHOUT or (code < Unavailable.code and code != Forbidden.code and not is_write):
            return
        reconcile_id = current_reconcile_id()
        response.error["reconcileId"] = reconcile_id
        if code == Forbidden.code:  # the audit log has it
            return
        fields = {"user": user, "request": tail[:LONGEST], "code": code, "reason": message[:LONGEST]}
        self._lines.warn(user, tail[:LONGEST], reason, message[:LONGEST], **fields, reconcile_id=reconcile_id)
