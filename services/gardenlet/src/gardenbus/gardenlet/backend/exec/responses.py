"""Responses of commands: `{"kept": {…}, "problems": {…}}`, or `{"message", "codes"}` when it has failed.

| exit code | meaning                                                          |
|-----------|------------------------------------------------------------------|
| 0         | done                                                             |
| 75        | not yet: tried again, whatever codes it names (EX_TEMPFAIL)      |
| other     | failed, with the codes; tried again unless one of them forbids it |
"""

from typing import Any, NamedTuple

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.error_codes import ERROR_CODES, NON_RETRYABLE
from gardenbus.gardenlet.backend.exec.command import CommandEnded
from gardenbus.gardenlet.backend.port import StepFailed
from gardenbus.gardenlet.domain.shoot_state import PASSING
from gardenbus.gardenlet.domain.shoot_status import CONDITIONS, CONSTRAINTS

DONE, AGAIN_LATER = 0, 75
_MOST_MESSAGE = 2000
_EXCERPT = 200


class CommandResponse(NamedTuple):
    """`kept` is None where the command says nothing about it: what is kept stays as it is."""

    kept: Document | None
    problems: dict[str, str]


class _Done(msgspec.Struct, forbid_unknown_fields=True):
    kept: dict[str, Any] | None = None
    problems: dict[str, str] = {}


class _Failed(msgspec.Struct):
    message: str = ""
    codes: list[str] = []


def read_response(ended: CommandEnded, *, what: str) -> CommandResponse:
    """Read the response. Raises StepFailed, whose message begins with `what`: the step and the command."""
    if ended.exit_code != DONE:
        raise _failure(ended, what)
    if not ended.output.strip():
        return CommandResponse(None, {})
    try:
        response = msgspec.json.decode(ended.output, type=_Done)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise StepFailed(f"{what} has answered no JSON as asked for ({error}): {_excerpt(ended.output)}") from error
    if reserved := sorted(PASSING & (response.kept or {}).keys()):
        raise StepFailed(f"{what} must not keep {', '.join(reserved)}: these are the gardenlet's own fields")
    if unknown := sorted(response.problems.keys() - CONDITIONS.keys() - CONSTRAINTS.keys()):
        conditions = ", ".join(sorted({*CONDITIONS, *CONSTRAINTS}))
        raise StepFailed(f"{what} has problems of unknown conditions: {', '.join(unknown)}; known are {conditions}")
    return CommandResponse(response.kept, response.problems)


def _failure(ended: CommandEnded, what: str) -> StepFailed:
    try:
        failed = msgspec.json.decode(ended.output, type=_Failed) if ended.output.strip() else _Failed()
    except (msgspec.DecodeError, UnicodeDecodeError):
        failed = _Failed(_excerpt(ended.output))
    manner = f"ended by signal {-ended.exit_code}" if ended.exit_code < 0 else f"ended with {ended.exit_code}"
    reason = failed.message or ended.last_line or "it has not said why"
    if unknown := sorted(set(failed.codes) - ERROR_CODES):
        reason = f"{reason} (unknown codes: {', '.join(unknown)})"
    codes = [code for code in failed.codes if code in ERROR_CODES]
    if ended.exit_code == AGAIN_LATER:
        codes = [code for code in codes if code not in NON_RETRYABLE]
        return StepFailed(f"{what} is not done yet: {reason}"[:_MOST_MESSAGE], tuple(codes))
    return StepFailed(f"{what} {manner}: {reason}"[:_MOST_MESSAGE], tuple(codes))


def _excerpt(output: bytes) -> str:
    text = " ".join(output[: 4 * _EXCERPT].decode(errors="replace").split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
