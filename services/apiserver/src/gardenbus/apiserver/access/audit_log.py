"""Audit log: a line for each request that was rejected, and for each privileged write.

Of rejections of one user, verb, kind and rule there is a line at once and then one a minute, with `times`.
"""

import structlog

from gardenbus.apiserver.domain.authorization.actions import Action, Rejection, Requester
from gardenbus.common.controller.repeated_lines import RepeatedLines
from gardenbus.common.ports.clock import Clock

_log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class AuditLog:
    """Writes the lines. One for all requests."""

    def __init__(self, clock: Clock) -> None:
        self._lines = RepeatedLines("request.forbidden", clock.monotonic)

    def forbidden(self, requester: Requester, action: Action, rejection: Rejection) -> None:
        """Log a rejection, or count it when the same was logged less than a minute ago."""
        described = _described(requester, action)
        rule, reason = rejection.rule, rejection.detail[:500]
        self._lines.warn(requester.user, action.verb, action.kind, rule, **described, rule=rule, reason=reason)

    def written(self, requester: Requester, action: Action, outcome: str) -> None:
        """Log a privileged write that was carried out."""
        _log.info("request.audited", **_described(requester, action), outcome=outcome)

    def close(self) -> None:
        """Log what was only counted so far: nothing comes any more."""
        self._lines.close_windows(all_of_them=True)


def _described(requester: Requester, action: Action) -> dict[str, object]:
    return {
        "user": requester.user,
        "groups": sorted(requester.groups),
        "verb": action.verb,
        "object": str(action.key) if action.name else str(action),
        "request_id": requester.request_id,
    }
