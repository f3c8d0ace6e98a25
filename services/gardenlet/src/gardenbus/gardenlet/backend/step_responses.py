"""Responses of somebody outside the gardenlet about a step, however they come: checked, and put into words."""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.error_codes import ERROR_CODES, NON_RETRYABLE
from gardenbus.gardenlet.backend.port import StepFailed
from gardenbus.gardenlet.domain.shoot_state import PASSING
from gardenbus.gardenlet.domain.shoot_status import CONDITIONS, CONSTRAINTS

_MOST_MESSAGE = 2000
_EXCERPT = 200
NO_REASON = "it gave no reason"


class StepResponse(NamedTuple):
    """`kept` is None where nothing is said about it: what is kept stays as it is."""

    kept: Document | None
    problems: dict[str, str]


def done(kept: Document | None, problems: dict[str, str], *, what: str) -> StepResponse:
    """The response of a step that is done. Raises StepFailed, whose message begins with `what`."""
    if reserved := sorted(PASSING & (kept or {}).keys()):
        raise StepFailed(f"{what} must not keep {', '.join(reserved)}: these are the gardenlet's own fields")
    if unknown := sorted(problems.keys() - CONDITIONS.keys() - CONSTRAINTS.keys()):
        conditions = ", ".join(sorted({*CONDITIONS, *CONSTRAINTS}))
        raise StepFailed(f"{what} has problems of unknown conditions: {', '.join(unknown)}; known are {conditions}")
    return StepResponse(kept, problems)


def not_yet(reason: str, codes: Sequence[str], *, what: str) -> StepFailed:
    """The failure of a step that is to be tried again, whatever codes it names."""
    failed = has_failed(reason, codes, what=what, manner="is not done yet")
    return StepFailed(failed.message, tuple(code for code in failed.codes if code not in NON_RETRYABLE))


def has_failed(reason: str, codes: Sequence[str], *, what: str, manner: str) -> StepFailed:
    """The failure of a step with Gardener's error codes; those that Gardener does not have are said, and left out."""
    if unknown := sorted(set(codes) - ERROR_CODES):
        reason = f"{reason} (unknown codes: {', '.join(unknown)})"
    accepted = tuple(code for code in codes if code in ERROR_CODES)
    return StepFailed(f"{what} {manner}: {reason}"[:_MOST_MESSAGE], accepted)


def is_unreadable(output: bytes, error: Exception, *, what: str) -> StepFailed:
    """The failure of a step whose response is none."""
    return StepFailed(f"{what} has not returned the JSON that was requested ({error}): {excerpt(output)}")


def excerpt(output: bytes) -> str:
    """The beginning of a response, on one line."""
    text = " ".join(output[: 4 * _EXCERPT].decode(errors="replace").split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
