"""Why a step of a flow failed, in Gardener's error codes, and failures that are asked for.

Source: Gardener's `v1beta1/helper/errors.go`.
"""

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

ErrorCode = Literal[
    "ERR_INFRA_UNAUTHENTICATED",
    "ERR_INFRA_UNAUTHORIZED",
    "ERR_INFRA_QUOTA_EXCEEDED",
    "ERR_INFRA_RATE_LIMITS_EXCEEDED",
    "ERR_INFRA_DEPENDENCIES",
    "ERR_RETRYABLE_INFRA_DEPENDENCIES",
    "ERR_INFRA_RESOURCES_DEPLETED",
    "ERR_CLEANUP_CLUSTER_RESOURCES",
    "ERR_CONFIGURATION_PROBLEM",
    "ERR_RETRYABLE_CONFIGURATION_PROBLEM",
    "ERR_PROBLEMATIC_WEBHOOK",
]

ERROR_CODES: frozenset[str] = frozenset(get_args(ErrorCode))

NON_RETRYABLE: frozenset[str] = frozenset(
    {
        "ERR_INFRA_UNAUTHENTICATED",
        "ERR_INFRA_UNAUTHORIZED",
        "ERR_INFRA_DEPENDENCIES",
        "ERR_INFRA_QUOTA_EXCEEDED",
        "ERR_INFRA_RATE_LIMITS_EXCEEDED",
        "ERR_CONFIGURATION_PROBLEM",
        "ERR_PROBLEMATIC_WEBHOOK",
    }
)
"""Codes after which trying again is left to a person."""


class StepFailure(NamedTuple):
    """One step that did not succeed: `step` is its name, `task` what it is called for people."""

    step: str
    task: str
    message: str
    codes: tuple[str, ...] = ()


class FailureRequest(NamedTuple):
    """A failure that somebody asked for: `step` fails with `code`, `times` times (None: always)."""

    step: str
    code: str
    times: int | None = None

    @property
    def text(self) -> str:
        """As it was asked for; what its occurrences are counted under."""
        return f"{self.step}={self.code}" + ("" if self.times is None else f",times={self.times}")


_REQUEST = re.compile(r"([a-z0-9-]+)=([A-Z_]+)(?:,\s*times=([0-9]{1,6}))?")


def parse_failure_requests(text: str) -> tuple[FailureRequest, ...]:
    """Read `<step>=<code>[,times=N]`, several separated by `;`. Raises ValueError for anything else."""
    requests: list[FailureRequest] = []
    for part in filter(None, (each.strip() for each in text.split(";"))):
        match = _REQUEST.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is not <step>=<error code>[,times=<number>]")
        step, code, times = match.groups()
        if code not in ERROR_CODES:
            raise ValueError(f"{code} is no error code; known are {', '.join(sorted(ERROR_CODES))}")
        requests.append(FailureRequest(step, code, None if times is None else int(times)))
    return tuple(requests)


def is_final(failures: Iterable[StepFailure]) -> bool:
    """Whether one of the failures is of a kind that is not tried again."""
    return any(code in NON_RETRYABLE for failure in failures for code in failure.codes)
