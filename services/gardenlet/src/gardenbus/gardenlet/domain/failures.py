"""Failed steps of a flow, with Gardener's error codes."""

from collections.abc import Iterable
from typing import NamedTuple

from gardenbus.common.api.garden.error_codes import NON_RETRYABLE


class StepFailure(NamedTuple):
    """One failed step: `step` is its name, `task` its display name."""

    step: str
    task: str
    message: str
    codes: tuple[str, ...] = ()


def is_final(failures: Iterable[StepFailure]) -> bool:
    """True if one of the failures is not retried."""
    return any(code in NON_RETRYABLE for failure in failures for code in failure.codes)
