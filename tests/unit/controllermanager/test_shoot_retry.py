"""Retries of what failed for the infrastructure's rate limits."""

from datetime import UTC, datetime, timedelta

import pytest

from gardenbus.common.api.document import Document
from gardenbus.controllermanager.domain.shoot_retry import NoRetry, RetryAt, RetryNow, RetryPeriod, decide_retry
from tests.support.builders import a_shoot, merged

FAILED_AT = datetime(2026, 3, 10, 20, tzinfo=UTC)
PERIOD = RetryPeriod(timedelta(minutes=10), timedelta(minutes=5))


def a_failed_shoot(uid: str = "u", **status: object) -> Document:
    default: Document = {
        "observedGeneration": 2,
        "lastOperation": {"type": "Create", "state": "Failed", "lastUpdateTime": "2026-03-10T20:00:00Z"},
        "lastErrors": [
            {"description": "x", "codes": ["ERR_INFRA_DEPENDENCIES"]},
            {"codes": ["ERR_INFRA_RATE_LIMITS_EXCEEDED"]},
        ],
    }
    return a_shoot(metadata={"uid": uid, "generation": 2}, status=merged(default, status))


def test_it_is_tried_again_within_the_jitter_after_the_period() -> None:
    first = decide_retry(a_failed_shoot(), FAILED_AT, PERIOD)
    assert isinstance(first, RetryAt)
    assert timedelta(minutes=10) <= first.at - FAILED_AT <= timedelta(minutes=15)
    assert decide_retry(a_failed_shoot(), FAILED_AT + timedelta(minutes=9), PERIOD) == first
    assert decide_retry(a_failed_shoot(), first.at, PERIOD) == RetryNow()
    others = {decide_retry(a_failed_shoot(f"u-{number}"), FAILED_AT, PERIOD) for number in range(50)}
    assert len(others) == 50


def test_without_the_time_of_the_failure_it_is_tried_at_once() -> None:
    assert decide_retry(a_failed_shoot(lastOperation={"lastUpdateTime": None}), FAILED_AT, PERIOD) == RetryNow()


@pytest.mark.parametrize(
    "shoot",
    [
        a_shoot(),
        a_failed_shoot(lastErrors=None),
        a_failed_shoot(lastErrors=[{"codes": ["ERR_INFRA_QUOTA_EXCEEDED"]}]),
        a_failed_shoot(lastErrors=[{"codes": None}, {"description": "x"}]),
        a_failed_shoot(lastOperation={"state": "Error"}),
        a_failed_shoot(observedGeneration=1),
    ],
)
def test_nothing_else_is_tried_again(shoot: Document) -> None:
    assert decide_retry(shoot, FAILED_AT + timedelta(days=1), PERIOD) == NoRetry()
