"""Decides when an operation is tried again that failed because the infrastructure limits the rate of requests.

Source: Gardener's `pkg/controllermanager/controller/shoot/retry`. The jitter follows from the shoot and its failure, so
that it is the same one whenever, and by whichever replica, it is calculated.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.controllermanager.domain.failed_shoots import has_failed
from gardenbus.controllermanager.domain.jitter import fraction_of

RATE_LIMITED = "ERR_INFRA_RATE_LIMITS_EXCEEDED"
RETRY_PATCH: Document = {"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}}


class RetryPeriod(NamedTuple):
    """Time from a failure until it is tried again, and the most that is added to it."""

    period: timedelta
    jitter: timedelta


class NoRetry(NamedTuple):
    """The shoot has not failed for its rate limits."""


class RetryAt(NamedTuple):
    """The operation is tried again at this instant."""

    at: datetime


class RetryNow(NamedTuple):
    """The operation is tried again."""


RetryDecision = NoRetry | RetryAt | RetryNow


def decide_retry(shoot: Document, now: datetime, retry: RetryPeriod) -> RetryDecision:
    """Decide about a shoot. Without the time of its failure, it is tried again at once."""
    if section(shoot, "metadata").get("deletionTimestamp") and not section(shoot, "metadata").get("finalizers"):
        return NoRetry()
    if not is_rate_limited(shoot):
        return NoRetry()
    written = section(shoot, "status", "lastOperation").get("lastUpdateTime")
    failed_at = parse_timestamp(written)
    if failed_at is None:
        return RetryNow()
    due_at = failed_at + retry.period + retry.jitter * fraction_of(section(shoot, "metadata").get("uid"), written)
    return RetryNow() if due_at <= now else RetryAt(due_at)


def is_rate_limited(shoot: Document) -> bool:
    """True when the last operation failed, with the code of exceeded rate limits among its errors."""
    if not has_failed(shoot):
        return False
    errors = mappings(section(shoot, "status").get("lastErrors"))
    return any(RATE_LIMITED in _codes(error) for error in errors)


def _codes(error: Document) -> Sequence[Any]:
    codes = error.get("codes")
    return cast("list[Any]", codes) if isinstance(codes, list) else ()
