"""Responses to requests, and messages that are put on `garden.rejected.<verb>.<sender>`.

A response is `{"ok": true, "result": …, "warnings": […]}` or
`{"ok": false, "error": {"code", "reason", "message", "details": [{"field", "message"}]}, "warnings": […]}`.
An error that the log has a line of has `reconcileId`, which that line has too (`gardenbus logs --grep <reconcileId>`).
An error with code 429 has `retryAfterSeconds`, and `limit`: the name of what its sender has used up.
One to a write also has `outcome`: `created`, `configured`, `unchanged`, `deleting`, `deleted` or `superseded`.
One to a dry run that explains has `admission`, what each admission plug-in did: `[{"plugin", "outcome",
"changes": [{"path", "before", "after"}], "warnings", "messages"}]`.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from gardenbus.common.api.budgets import OverBudget, StoredOverBudget
from gardenbus.common.api.document import encode
from gardenbus.common.errors import FieldProblem, GardenbusError, InvalidResource, TooManyRequests

_FIELD_FIRST = re.compile(r"(?:document \d+: )?(?P<field>[A-Za-z][\w-]*(?:[.\[][^\s:]*)?): (?P<problem>.+)", re.DOTALL)


class RequestResponse(msgspec.Struct, omit_defaults=True):
    """One response; `result` may hold manifests as `msgspec.Raw`, so that they are not parsed to be sent.

    A successful one always has its list of warnings, an error only where there are any.
    """

    ok: bool
    outcome: Any = msgspec.UNSET
    result: Any = msgspec.UNSET
    error: Any = msgspec.UNSET
    warnings: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    admission: Any = msgspec.UNSET

    def encoded(self) -> bytes:
        """As JSON."""
        return encode(self)


def success_response(result: Any, warnings: Sequence[str] = (), *, outcome: str | None = None) -> RequestResponse:
    """Response to a request that succeeded."""
    return RequestResponse(ok=True, outcome=outcome or msgspec.UNSET, result=result, warnings=tuple(warnings))


def error_response(error: GardenbusError, warnings: Sequence[str] = ()) -> RequestResponse:
    """Response to a request that failed, with the fields that are at fault."""
    return RequestResponse(ok=False, error=error_body(error), warnings=tuple(warnings) or msgspec.UNSET)


def error_body(error: GardenbusError) -> dict[str, Any]:
    """Error object of a response. A message that begins with a field's path names that field."""
    problems = error.problems if isinstance(error, InvalidResource) else _named_field(error.message)
    body = {
        "code": error.code,
        "reason": error.reason,
        "message": error.message,
        "details": [{"field": problem.field, "message": problem.message} for problem in problems],
    }
    if isinstance(error, TooManyRequests):
        body["retryAfterSeconds"] = error.retry_after_seconds
    if isinstance(error, OverBudget | StoredOverBudget):
        body["limit"] = error.limit
    return body


def _named_field(message: str) -> tuple[FieldProblem, ...]:
    found = _FIELD_FIRST.fullmatch(message)
    return (FieldProblem(found["field"], found["problem"]),) if found else ()


def combined_response(responses: Sequence[RequestResponse]) -> RequestResponse:
    """One response for several documents: `result` lists theirs, in order; it is ok only if all of them are.

    The response for a single document is its own. If any failed, `error` counts them and has the code of the first, and
    `result` still has the response of each document.
    """
    if len(responses) == 1:
        return responses[0]
    failed = [response for response in responses if not response.ok]
    if not failed:
        return RequestResponse(
            ok=True,
            outcome=[response.outcome for response in responses],
            result=[response.result for response in responses],
            warnings=tuple(warning for response in responses for warning in response.warnings or ()),
            admission=_admissions(responses),
        )
    first: dict[str, Any] = failed[0].error
    message = f"{len(failed)} of {len(responses)} documents were rejected; the first: {first['message']}"
    return RequestResponse(ok=False, result=list(responses), error={**first, "message": message})


def _admissions(responses: Sequence[RequestResponse]) -> Any:
    is_explained = any(response.admission is not msgspec.UNSET for response in responses)
    return [response.admission for response in responses] if is_explained else msgspec.UNSET
