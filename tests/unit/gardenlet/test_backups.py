"""Buckets of seeds, entries of shoots: what is requested of an extension, and what is reported, row by row."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import timestamp
from gardenbus.gardenlet.domain.extension_objects.backups import (
    NO_OPERATION,
    RENEWED_AFTER,
    ObjectPlan,
    backup_problem,
    begun,
    bucket_object,
    core_bucket,
    core_entry,
    ended,
    entry_object,
    entry_problem,
    failed,
    is_ready,
    is_responsible,
    kept_until,
    operation_type,
    pending,
    plan_backup,
)
from gardenbus.gardenlet.domain.extension_objects.contract import LastError, request_time
from gardenbus.gardenlet.domain.operations import ObservedShoot
from tests.support.builders import NOW, a_seed, a_shoot, merged

INSTANT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SEED = merged(a_seed(spec={"backup": {"provider": "aws", "region": "eu-west-3"}}), {"metadata": {"uid": "u1"}})
BUCKET: Document = merged(core_bucket(SEED, ObjectKey("secret", "garden", "b")), {"metadata": {"generation": 1}})
WANTED = bucket_object(BUCKET)
LE = LastError("error during reconciliation: No.", ("ERR_INFRA_UNAUTHORIZED",))


def ago(seconds: float) -> datetime:
    return INSTANT - timedelta(seconds=seconds)


def an_object(requested: float, ended_ago: float | None, state: str = "Succeeded", **changes: Any) -> Document:
    """An object that was requested, and whose last operation was ended, so many seconds ago."""
    annotations = {"gardener.cloud/timestamp": request_time(ago(requested))}
    last = {} if ended_ago is None else {"state": state, "lastUpdateTime": timestamp(ago(ended_ago))}
    live: Document = {"metadata": {"generation": 1, "annotations": annotations}, "spec": WANTED.spec}
    return merged({**live, "status": {"observedGeneration": 1, "lastOperation": last}}, changes)


def plan(live: Document | None, *, written: float = 100_000) -> ObjectPlan:
    return plan_backup(live, WANTED, credentials_at=ago(written), now=INSTANT, renewed_after=RENEWED_AFTER)


REQUESTED = ObjectPlan(is_requested=True)
PENDING = {"annotations": {"gardener.cloud/operation": "reconcile"}}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (None, REQUESTED),
        (an_object(9, 8, spec={"region": "eu-west-1"}), REQUESTED),
        (an_object(9, 8), ObjectPlan(is_ready=True)),
        (an_object(8, 9), ObjectPlan()),
        (an_object(9, None, metadata=PENDING), ObjectPlan()),
        (an_object(1, None, metadata={"annotations": {"gardener.cloud/operation": "wait-for-state"}}), REQUESTED),
        (an_object(31, None, metadata=PENDING), ObjectPlan(is_requested=True, error=NO_OPERATION)),
        (an_object(31, 40, metadata=PENDING), REQUESTED),
        (an_object(31, 40), REQUESTED),
        (an_object(31, 30, "Processing"), ObjectPlan()),
        (an_object(9, 8, "Error"), ObjectPlan(error=LastError("extension state is not Succeeded but Error"))),
        (an_object(9, 8, "Failed"), ObjectPlan(error=LastError("extension state is not Succeeded but Failed"))),
        (
            an_object(31, 30, "Failed"),
            ObjectPlan(is_requested=True, error=LastError("extension state is not Succeeded but Failed")),
        ),
        (
            an_object(9, 8, "Error", status={"lastError": {"description": "No.", "codes": list(LE.codes)}}),
            ObjectPlan(error=LE),
        ),
        (an_object(12 * 3600, 11 * 3600), ObjectPlan(is_requested=True, is_ready=True)),
        (an_object(12 * 3600 - 1, 11 * 3600), ObjectPlan(is_ready=True)),
    ],
)
def test_an_object_is_requested_waited_for_or_ready(live: Document | None, expected: ObjectPlan) -> None:
    assert plan(live) == expected


def test_an_object_is_requested_once_for_other_credentials() -> None:
    assert plan(an_object(20, 19), written=5) == REQUESTED
    assert plan(an_object(4, 19), written=5) == ObjectPlan()
    assert plan(an_object(4, 3), written=5) == ObjectPlan(is_ready=True)


def test_a_bucket_is_in_the_provider_and_the_region_of_the_backup_and_belongs_to_the_seed() -> None:
    assert WANTED.spec == {
        "type": "aws",
        "region": "eu-west-3",
        "secretRef": {"name": "bucket-u1", "namespace": "garden"},
    }
    assert (WANTED.namespace, WANTED.name) == ("", "u1")
    (owner,) = BUCKET["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Seed", "u1", True)
    elsewhere = merged(SEED, {"spec": {"backup": {"region": None}}})
    assert core_bucket(elsewhere, ObjectKey("secret", "garden", "b"))["spec"]["provider"]["region"] == "eu-west-1"


def reported(core: Document, patch: Document) -> Document:
    """The core object after a report."""
    status = {name: value for name, value in {**core.get("status", {}), **patch}.items() if value is not None}
    return {**core, "status": status}


def last(core: Document) -> tuple[str, str, int, str]:
    operation = core["status"]["lastOperation"]
    return operation["type"], operation["state"], operation["progress"], operation["description"]


def test_what_is_reported_of_a_bucket_has_gardeners_words_and_is_reported_once() -> None:
    bucket = reported(BUCKET, begun(BUCKET, INSTANT))
    assert last(bucket) == ("Create", "Processing", 0, "Reconciliation of BackupBucket state initialized.")
    assert begun(bucket, INSTANT) == {}
    bucket = reported(bucket, failed(bucket, LE, INSTANT))
    assert last(bucket) == ("Create", "Error", 50, LE.description)
    assert bucket["status"]["lastError"] == {"description": LE.description, "codes": list(LE.codes)}
    assert backup_problem(bucket) == f"Name: u1, Error: {LE.description}"
    assert failed(bucket, LE, INSTANT) == {}
    bucket = reported(bucket, ended(bucket, INSTANT, {"providerStatus": {"a": 1}}))
    assert last(bucket) == ("Create", "Succeeded", 100, "Backup Bucket has been successfully reconciled.")
    assert is_ready(bucket)
    assert backup_problem(bucket) is None
    assert ended(bucket, INSTANT, {"providerStatus": {"a": 1}}) == {}
    bucket = reported(bucket, begun(bucket, INSTANT))
    assert last(bucket)[:2] == ("Reconcile", "Processing")
    bucket = merged(bucket, {"metadata": {"deletionTimestamp": NOW}})
    bucket = reported(bucket, begun(bucket, INSTANT))
    assert last(bucket) == ("Delete", "Processing", 0, "Deletion of BackupBucket state initialized.")
    bucket = reported(bucket, failed(bucket, LE, INSTANT))
    assert last(bucket)[3] == f"{LE.description} Operation will be retried."
    bucket = reported(bucket, ended(bucket, INSTANT))
    assert last(bucket) == ("Delete", "Succeeded", 100, "Backup Bucket has been successfully deleted.")


# ------------------------------------------------------------------------------------------------ entries

SHOOT = ObservedShoot.of(a_shoot(spec={"purpose": "production"}), uid="s1", version=1, role="run")
ENTRY: Document = merged(core_entry(SHOOT, seed_name="one", bucket="u1"), {"metadata": {"generation": 1}})


def an_entry(has_it: str = "", wanted_on: str = "one", operation: str = "", state: str = "Succeeded") -> Document:
    """An entry that a seed has, and another shall, after an operation."""
    status: Document = {"seedName": has_it} if has_it else {}
    if operation:
        status["lastOperation"] = {"type": operation, "state": state, "description": "Done."}
    return merged(ENTRY, {"spec": {"seedName": wanted_on}, "status": status})


def test_an_entry_is_called_as_the_directory_of_the_backups_of_its_shoot() -> None:
    assert ENTRY["metadata"]["name"] == "shoot--dev--apollo--s1"
    assert ENTRY["metadata"]["annotations"] == {"shoot.gardener.cloud/purpose": "production"}
    bucket = reported(BUCKET, ended(BUCKET, INSTANT, {"providerStatus": {"a": 1}}))
    assert entry_object(ENTRY, bucket).spec == {
        **WANTED.spec,
        "secretRef": {"name": "entry-shoot--dev--apollo--s1", "namespace": "garden"},
        "bucketName": "u1",
        "backupBucketProviderStatus": {"a": 1},
    }


@pytest.mark.parametrize(
    ("entry", "operation", "seed"),
    [
        (an_entry(), "Create", "one"),
        (an_entry("one", operation="Create", state="Error"), "Create", "one"),
        (an_entry("one", operation="Create"), "Reconcile", "one"),
        (an_entry("one", "two", operation="Reconcile"), "Migrate", "one"),
        (an_entry("one", "two", operation="Migrate", state="Processing"), "Migrate", "one"),
        (an_entry("", "two", operation="Migrate"), "Restore", "two"),
        (an_entry("two", "two", operation="Restore", state="Processing"), "Restore", "two"),
        (an_entry("two", "two", operation="Restore"), "Reconcile", "two"),
        (merged(an_entry("one", "two"), {"metadata": {"deletionTimestamp": NOW}}), "Delete", "one"),
    ],
)
def test_an_entry_is_the_matter_of_the_seed_that_has_it_until_that_has_migrated_it(
    entry: Document, operation: str, seed: str
) -> None:
    assert operation_type(entry) == operation
    assert [each for each in ("one", "two") if is_responsible(entry, each)] == [seed]


def test_an_entry_that_was_migrated_is_no_seeds_and_one_that_is_restored_the_others() -> None:
    leaving = an_entry("one", "two", operation="Reconcile")
    leaving = reported(leaving, begun(leaving, INSTANT))
    assert last(leaving) == ("Migrate", "Processing", 0, "Migration of BackupEntry state initialized.")
    left = reported(leaving, ended(leaving, INSTANT, {"seedName": None}))
    assert last(left) == ("Migrate", "Succeeded", 100, "Migration of BackupEntry succeeded.")
    assert entry_problem(left, "two") == "no seed has it yet"
    coming = reported(left, begun(left, INSTANT, {"seedName": "two"}))
    assert last(coming) == ("Restore", "Processing", 0, "Restoration of BackupEntry state initialized.")
    assert entry_problem(coming, "two") == "extension state is not succeeded but Processing"
    there = reported(coming, ended(coming, INSTANT, {"seedName": "two"}))
    assert last(there) == ("Restore", "Succeeded", 100, "Restoration of BackupEntry succeeded.")
    assert entry_problem(there, "two") is None
    assert entry_problem(there, "one") == "it is on seed two"
    assert ended(there, INSTANT, {"seedName": "two"}) == {}, "at rest nothing is reported"


@pytest.mark.parametrize(
    ("purpose", "hours", "purposes", "forced", "expected"),
    [
        ("production", 0, (), "", timedelta()),
        ("production", 24, (), "", timedelta(hours=24)),
        ("production", 24, ("production", "infrastructure"), "", timedelta(hours=24)),
        ("testing", 24, ("production", "infrastructure"), "", None),
        (None, 24, ("production",), "", timedelta(hours=24)),
        ("production", 24, (), "true", None),
        ("production", 24, (), "false", timedelta(hours=24)),
    ],
)
def test_a_deleted_entry_lives_on_by_the_purpose_of_its_shoot(
    purpose: str | None, hours: int, purposes: tuple[str, ...], forced: str, expected: timedelta | None
) -> None:
    annotations = {
        "shoot.gardener.cloud/purpose": purpose,
        "backupentry.core.gardener.cloud/force-deletion": forced or None,
    }
    entry = merged(ENTRY, {"metadata": {"deletionTimestamp": timestamp(INSTANT), "annotations": annotations}})
    until = kept_until(entry, hours=hours, purposes=purposes)
    assert until == (None if expected is None else INSTANT + expected)


def test_a_deletion_that_is_put_off_says_until_when() -> None:
    patch = pending(merged(ENTRY, {"metadata": {"deletionTimestamp": NOW}}), INSTANT + timedelta(hours=24), INSTANT)
    text = "Deletion of backup entry is scheduled for 2026-01-03 03:04:05 +0000 UTC"
    assert last({"status": patch}) == ("Delete", "Pending", 0, text)


def test_an_object_that_was_migrated_is_requested_again() -> None:
    live = an_object(9, 8, status={"lastOperation": {"type": "Migrate"}})
    assert plan(live) == REQUESTED
