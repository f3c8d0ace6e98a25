"""Audit log: a line for each request that was refused, and for each privileged write.

Of refusals of one user, verb and kind there is a line a minute; it says how many were left out before it.
"""

import structlog

from gardenbus.apiserver.domain.authorization.actions import Action, Rejection, Requester
from gardenbus.common.ports.clock import Clock

QUIET_SECONDS = 60.0
"""Time without a further line about the same refusal."""

SUBJECTS_LIMIT = 1_000
"""Users, verbs and kinds that are remembered."""

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

_Subject = tuple[str, str, str]


class AuditLog:
    """Writes the lines. One for all requests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logged_at: dict[_Subject, float] = {}
        self._left_out: dict[_Subject, int] = {}

    def forbidden(self, requester: Requester, action: Action, rejection: Rejection) -> None:
        """Log a refusal, unless the same was logged less than a minute ago."""
        subject, now = (requester.user, action.verb, action.kind), self._clock.monotonic()
        logged_at = self._logged_at.get(subject)
        if logged_at is not None and now - logged_at < QUIET_SECONDS:
            self._left_out[subject] = self._left_out.get(subject, 0) + 1
            return
        self._logged_at.pop(subject, None)
        while len(self._logged_at) >= SUBJECTS_LIMIT:
            oldest = next(iter(self._logged_at))
            del self._logged_at[oldest]
            self._left_out.pop(oldest, None)
        self._logged_at[subject] = now
        _log.warning(
            "request.forbidden",
            **_described(requester, action),
            rule=rejection.rule,
            reason=rejection.detail[:500],
            left_out=self._left_out.pop(subject, 0),
        )

    def written(self, requester: Requester, action: Action, outcome: str) -> None:
        """Log a privileged write that was carried out."""
        _log.info("request.audited", **_described(requester, action), outcome=outcome)


def _described(requester: Requester, action: Action) -> dict[str, object]:
    return {
        "user": requester.user,
        "groups": sorted(requester.groups),
        "verb": action.verb,
        "object": str(action.key) if action.name else str(action),
        "request_id": requester.request_id,
    }
