"""Failures that are requested for tests and demonstrations: of a shoot's steps, or of a member cluster's manifests.

Requests are separated by `;`. A shoot's are `<step>=<error code>[,times=<number>]`. A member cluster's are
`<apply|available|delete>[=<target>][,times=<number>]`; in a manifest's annotation the target is a cluster, in an
agent's configuration a manifest (`<Kind>/<name>`), with the wildcards `*` and `?`; all targets without one.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Literal, NamedTuple

from gardenbus.common.api.garden.error_codes import ERROR_CODES

_SHOOT_STEPS = (
    "namespace secrets cloud-provider-secret infrastructure dns-record etcd control-plane wait-for-api-server network "
    "machines system-components tunnel clean-up-cluster delete-machines delete-network delete-control-plane "
    "delete-etcd delete-infrastructure delete-dns-record delete-namespace stop-control-plane save-state "
    "release-infrastructure release-etcd release-namespace"
)
SHOOT_STEPS = frozenset(_SHOOT_STEPS.split())
"""Steps of a gardenlet's flows."""

ManifestStep = Literal["apply", "available", "delete"]

_TIMES = r"(?:,\s*times=([0-9]{1,6}))?"
_STEP = re.compile(rf"([a-z0-9-]+)=([A-Z_]+){_TIMES}")
_MANIFEST = re.compile(rf"(apply|available|delete)(?:=([^,;=\s]+))?{_TIMES}")


class FailureRequest(NamedTuple):
    """A requested failure of a step, `times` times (None: always). The argument is an error code, or a target."""

    step: str
    argument: str = "*"
    times: int | None = None

    @property
    def text(self) -> str:
        """The request as written; its occurrences are counted by it."""
        return f"{self.step}={self.argument}" + ("" if self.times is None else f",times={self.times}")

    def matches(self, step: str, target: str) -> bool:
        """True for this step of this target."""
        return self.step == step and fnmatchcase(target, self.argument)


def parse_step_failures(text: str) -> tuple[FailureRequest, ...]:
    """Read the requests for a shoot. Raises ValueError for anything else."""
    requests = _requests(text, _STEP, "<step>=<error code>[,times=<number>]")
    for request in requests:
        if request.argument not in ERROR_CODES:
            raise ValueError(f"{request.argument} is no error code; known are {', '.join(sorted(ERROR_CODES))}")
    return requests


def parse_manifest_failures(text: str) -> tuple[FailureRequest, ...]:
    """Read the requests for a member cluster. Raises ValueError for anything else."""
    return _requests(text, _MANIFEST, "<apply|available|delete>[=<target>][,times=<number>]")


def first_match(requests: Iterable[FailureRequest], step: str, target: str) -> FailureRequest | None:
    """The first request for a step of a target."""
    return next((request for request in requests if request.matches(step, target)), None)


def _requests(text: str, pattern: re.Pattern[str], form: str) -> tuple[FailureRequest, ...]:
    requests: list[FailureRequest] = []
    for part in filter(None, (each.strip() for each in text.split(";"))):
        match = pattern.fullmatch(part)
        if match is None:
            raise ValueError(f"{part!r} is not {form}")
        step, argument, times = match.groups()
        requests.append(FailureRequest(step, argument or "*", None if times is None else int(times)))
    return tuple(requests)
