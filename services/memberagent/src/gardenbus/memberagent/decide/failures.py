"""Failures that are asked for, so that one can see what a fleet does about them.

    <step>[=<target>][,times=<number>]         several separated by `;`

`step` is `apply`, `available` or `delete`. In a manifest's annotation the target is a cluster, in an agent's
configuration a manifest (`<Kind>/<name>`); `*` and `?` are wildcards, and without a target all are meant.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple, cast

Step = Literal["apply", "available", "delete"]

_REQUEST = re.compile(r"(apply|available|delete)(?:=([^,;=\s]+))?(?:,\s*times=([0-9]{1,6}))?")


class FailureRequest(NamedTuple):
    """A failure that somebody asked for, `times` times (None: always)."""

    step: Step
    target: str = "*"
    times: int | None = None

    @property
    def text(self) -> str:
        """As it is counted."""
        return f"{self.step}={self.target}" + ("" if self.times is None else f",times={self.times}")

    def concerns(self, step: Step, target: str) -> bool:
        """Whether it is about this step of this target."""
        return self.step == step and fnmatchcase(target, self.target)


def parse_failure_requests(text: str) -> tuple[FailureRequest, ...]:
    """Read what the module describes. Raises ValueError for anything else."""
    requests: list[FailureRequest] = []
    for part in filter(None, (each.strip() for each in text.split(";"))):
        match = _REQUEST.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is not <apply|available|delete>[=<target>][,times=<number>]")
        step, target, times = match.groups()
        requests.append(FailureRequest(cast("Step", step), target or "*", None if times is None else int(times)))
    return tuple(requests)


def first_that_concerns(requests: Iterable[FailureRequest], step: Step, target: str) -> FailureRequest | None:
    """The first request about a step of a target."""
    return next((request for request in requests if request.concerns(step, target)), None)
