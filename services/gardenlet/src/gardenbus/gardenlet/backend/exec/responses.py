"""Responses of commands: `{"kept": {…}, "problems": {…}}`, or `{"message", "codes"}` when it has failed.

| exit code | meaning                                                          |
|-----------|------------------------------------------------------------------|
| 0         | done                                                             |
| 75        | not yet: tried again, whatever codes it names (EX_TEMPFAIL)      |
| other     | failed, with the codes; tried again unless one of them forbids it |
"""

from typing import Any

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.gardenlet.backend.exec.command import CommandEnded
from gardenbus.gardenlet.backend.port import StepFailed
from gardenbus.gardenlet.backend.step_responses import (
    NO_REASON,
    StepResponse,
    done,
    excerpt,
    has_failed,
    is_unreadable,
    not_yet,
)

DONE, AGAIN_LATER = 0, 75


class _Done(msgspec.Struct, forbid_unknown_fields=True):
    kept: dict[str, Any] | None = None
    problems: dict[str, str] = {}


class _Failed(msgspec.Struct):
    message: str = ""
    codes: list[str] = []


def read_response(ended: CommandEnded, *, what: str) -> StepResponse:
    """Read the response. Raises StepFailed, whose message begins with `what`: the step and the command."""
    if ended.exit_code != DONE:
        raise _failure(ended, what)
    if not ended.output.strip():
        return StepResponse(None, {})
    try:
        response = decode_json(ended.output, _Done)
    except msgspec.DecodeError as error:
        raise is_unreadable(ended.output, error, what=what) from error
    return done(response.kept, response.problems, what=what)


def _failure(ended: CommandEnded, what: str) -> StepFailed:
    try:
        failed = decode_json(ended.output, _Failed) if ended.output.strip() else _Failed()
    except msgspec.DecodeError:
        failed = _Failed(excerpt(ended.output))
    reason = failed.message or ended.last_line or NO_REASON
    if ended.exit_code == AGAIN_LATER:
        return not_yet(reason, failed.codes, what=what)
    manner = f"ended by signal {-ended.exit_code}" if ended.exit_code < 0 else f"ended with {ended.exit_code}"
    return has_failed(reason, failed.codes, what=what, manner=manner)
