"""Expiry of shoots whose Quotas limit their lifetime. Cases as in Gardener's reconciler test."""

from datetime import UTC, datetime, timedelta

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.quotas import EXPIRATION_ANNOTATION, limits_of, shortest_lifetime
from gardenbus.controllermanager.domain.shoot_expiry import (
    AnnotateExpiration,
    DeleteExpired,
    ExpiryDecision,
    KeepShoot,
    decide_expiry,
)
from tests.support.builders import a_shoot

CREATED_AT = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def a_guest(expiration: str | None = None, **metadata: object) -> Document:
    annotations = {} if expiration is None else {EXPIRATION_ANNOTATION: expiration}
    return a_shoot(metadata={"creationTimestamp": "2026-03-01T00:00:00Z", "annotations": annotations, **metadata})


@pytest.mark.parametrize(
    ("shoot", "days", "age", "expected"),
    [
        (a_guest(), None, 400, KeepShoot(None)),
        (a_guest("2026-03-02T00:00:00Z"), None, 400, AnnotateExpiration(None)),
        (a_guest(), 7, 1, AnnotateExpiration(CREATED_AT + 7 * DAY)),
        (a_guest(), 7, 30, AnnotateExpiration(CREATED_AT + 7 * DAY)),
        (a_guest("2026-03-08T00:00:00Z"), 7, 6, KeepShoot(CREATED_AT + 7 * DAY)),
        (a_guest("2026-03-08T00:00:00Z"), 7, 7, KeepShoot(CREATED_AT + 7 * DAY)),
        (a_guest("2026-03-08T00:00:00Z"), 7, 7.1, DeleteExpired(CREATED_AT + 7 * DAY)),
        (a_guest("2026-03-12T00:00:00Z"), 7, 7.1, KeepShoot(CREATED_AT + 11 * DAY)),
        (a_guest("2026-03-12T02:00:00+02:00"), 7, 7.1, KeepShoot(CREATED_AT + 11 * DAY)),
        (a_guest("2026-06-01T00:00:00Z"), 7, 1, AnnotateExpiration(CREATED_AT + 8 * DAY)),
        (a_guest("soon"), 7, 1, AnnotateExpiration(CREATED_AT + 7 * DAY)),
        (a_guest("2026-03-08T00:00:00Z", deletionTimestamp="2026-03-09T00:00:00Z"), 7, 30, KeepShoot(None)),
    ],
)
def test_the_annotation_decides_within_the_limit(
    shoot: Document, days: int | None, age: float, expected: ExpiryDecision
) -> None:
    lifetime = None if days is None else days * DAY
    assert decide_expiry(shoot, lifetime, CREATED_AT + age * DAY) == expected


@pytest.mark.parametrize("days", [2_900_000, 2**31 - 1])
def test_a_lifetime_beyond_all_dates_is_one_of_a_hundred_years(days: int) -> None:
    lifetime = shortest_lifetime([limits_of({"spec": {"clusterLifetimeDays": days}})])
    assert decide_expiry(a_guest(), lifetime, CREATED_AT) == AnnotateExpiration(CREATED_AT + 36_500 * DAY)
    assert decide_expiry(a_guest("9999-12-31T00:00:00Z"), lifetime, CREATED_AT) == AnnotateExpiration(
        CREATED_AT + 36_500 * DAY
    )


def test_the_patch_writes_or_removes_the_annotation() -> None:
    written = AnnotateExpiration(CREATED_AT).patch["metadata"]["annotations"]
    assert written == {EXPIRATION_ANNOTATION: "2026-03-01T00:00:00Z"}
    assert AnnotateExpiration(None).patch["metadata"]["annotations"] == {EXPIRATION_ANNOTATION: None}
