"""BackupBuckets and BackupEntries of the garden: their objects in the seed's API, and what is reported of them.

| object in the seed | done | reported: lastOperation |
|---|---|---|
| none, of another spec, or older than its credentials | requested | Processing, initialized |
| that awaits its state: the gardenlet died amid a restoration | requested | Processing, initialized |
| requested, and not picked up for 30 s | requested again | Processing; Error without any last operation |
| with an error | nothing; one that has failed is requested again after 30 s | Error, with the error |
| ready | nothing; a bucket is requested again each 12 h | Succeeded |

An entry is requested once its bucket is ready. It is the matter of the seed in `status.seedName`, and before there is
one of that in `spec.seedName`: where the two differ, the former migrates it, and the latter restores it.

Source: Gardener's `pkg/gardenlet/controller/{backupbucket,backupentry}`, and `pkg/api/core/v1beta1/helper/common.go`.
"""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import FINALIZER, is_deleting, name_of
from gardenbus.common.api.garden.backup_references import generated_secret_key
from gardenbus.common.api.garden.extensions import KindType
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.api.owners import controller_reference
from gardenbus.common.ports.clock import parse_timestamp, timestamp
from gardenbus.gardenlet.domain.extension_objects.cluster import CORE
from gardenbus.gardenlet.domain.extension_objects.contract import (
    TIMESTAMP,
    WAIT_FOR_STATE,
    LastError,
    is_migrated,
    is_not_picked_up,
    last_error,
    ready_problem,
)
from gardenbus.gardenlet.domain.extension_objects.kinds import ExtensionObject, path_of
from gardenbus.gardenlet.domain.managed_resources.names import OPERATION, annotations_of
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_status import technical_id

RENEWED_AFTER = timedelta(hours=12)
"""Time after which a bucket is requested again, as in Gardener."""

REQUESTED_AGAIN_AFTER = timedelta(seconds=30)
NO_OPERATION = LastError("extension did not record a last operation yet")
BUCKET_RECONCILED = "Backup Bucket has been successfully reconciled."
BUCKET_DELETED = "Backup Bucket has been successfully deleted."
_GENERATED_INTO = "backupbucket.extensions.gardener.cloud/generated-secret-namespace"

PURPOSE = "shoot.gardener.cloud/purpose"
FORCE_DELETION = "backupentry.core.gardener.cloud/force-deletion"
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})

BackupOperation = Literal["Create", "Reconcile", "Restore", "Migrate", "Delete"]
_WORDS: dict[BackupOperation, str] = {
    "Create": "Reconciliation",
    "Reconcile": "Reconciliation",
    "Restore": "Restoration",
    "Migrate": "Migration",
    "Delete": "Deletion",
}
_PROGRESS = {"Pending": 0, "Processing": 0, "Error": 50, "Succeeded": 100}
_COMPARED = ("type", "providerConfig", "region", "secretRef", "backupBucketProviderStatus")
_SUCCEEDED = "Succeeded"


class ObjectPlan(NamedTuple):
    """Step for one object: it is requested, is ready, or has an error."""

    is_requested: bool = False
    is_ready: bool = False
    error: LastError | None = None


class BucketFinding(NamedTuple):
    """State of a seed's bucket. `problem`: its error. One that is not ready yet has neither of these."""

    is_gone: bool = False
    is_ready: bool = False
    problem: str | None = None


def bucket_finding(bucket: Document | None) -> BucketFinding:
    """The state of a bucket; None: there is none."""
    if bucket is None:
        return BucketFinding(is_gone=True)
    return BucketFinding(is_ready=is_ready(bucket) and not is_deleting(bucket), problem=backup_problem(bucket))


def has_all_of(core: Document, wanted: Document) -> bool:
    """True if a core object has the spec and the annotations that are wanted, whatever else it has."""
    return all(
        section(core, *path).get(field) == value
        for path in (("spec",), ("metadata", "annotations"))
        for field, value in section(wanted, *path).items()
    )


def kinds_present(bucket: Document | None, entries: Collection[Document]) -> frozenset[KindType]:
    """Kinds and types of a seed's bucket, and of the entries in it."""
    if bucket is None:
        return frozenset()
    provider = str(section(bucket, "spec", "provider").get("type"))
    return frozenset({("BackupBucket", provider)} | ({("BackupEntry", provider)} if entries else set()))


def core_bucket(seed: Document, credentials: ObjectKey) -> Document:
    """The BackupBucket of a Seed, in the provider and region of its backup."""
    spec = section(seed, "spec")
    backup, uid = section(spec, "backup"), str(section(seed, "metadata").get("uid"))
    owner = controller_reference({**seed, "apiVersion": CORE, "kind": "Seed"})
    region = backup.get("region") or section(spec, "provider").get("region")
    wanted: Document = {
        "provider": {"type": backup.get("provider"), "region": region},
        "credentialsRef": {
            "apiVersion": "v1",
            "kind": "Secret",
            "name": credentials.name,
            "namespace": credentials.namespace,
        },
        "seedName": name_of(seed),
    }
    if backup.get("providerConfig"):
        wanted["providerConfig"] = backup["providerConfig"]
    metadata = {"name": uid, "finalizers": [FINALIZER], "ownerReferences": [owner]}
    return {"apiVersion": CORE, "kind": "BackupBucket", "metadata": metadata, "spec": wanted}


def bucket_object(bucket: Document) -> ExtensionObject:
    """The object in the seed of a BackupBucket."""
    spec, name = section(bucket, "spec"), name_of(bucket)
    provider = section(spec, "provider")
    wanted: Document = {
        "type": provider.get("type"),
        "region": provider.get("region"),
        "secretRef": {"name": secret_name(bucket), "namespace": GARDEN_NAMESPACE},
    }
    if spec.get("providerConfig"):
        wanted["providerConfig"] = spec["providerConfig"]
    annotations = {_GENERATED_INTO: GARDEN_NAMESPACE}
    return ExtensionObject("BackupBucket", "", name, wanted, annotations=annotations)


def entry_key(namespace: str, name: str, uid: str) -> ObjectKey:
    """The BackupEntry of a shoot, called as the directory of its backups."""
    return ObjectKey("backupentry", namespace, f"{technical_id(namespace, name)}--{uid}")


def core_entry(observed: ObservedShoot, *, seed_name: str, bucket: str) -> Document:
    """The BackupEntry of a shoot."""
    key = entry_key(observed.namespace, observed.name, observed.uid)
    owner = {
        "apiVersion": CORE,
        "kind": "Shoot",
        "name": observed.name,
        "uid": observed.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    metadata: Document = {
        "name": key.name,
        "namespace": key.namespace,
        "finalizers": [FINALIZER],
        "ownerReferences": [owner],
        "annotations": {PURPOSE: observed.spec.get("purpose") or "evaluation"},
    }
    spec = {"bucketName": bucket, "seedName": seed_name}
    return {"apiVersion": CORE, "kind": "BackupEntry", "metadata": metadata, "spec": spec}


def entry_object(entry: Document, bucket: Document) -> ExtensionObject:
    """The object in the seed of a BackupEntry."""
    of_bucket = bucket_object(bucket).spec
    wanted = {
        **of_bucket,
        "bucketName": name_of(bucket),
        "secretRef": {"name": secret_name(entry), "namespace": GARDEN_NAMESPACE},
    }
    if (made := section(bucket, "status").get("providerStatus")) is not None:
        wanted["backupBucketProviderStatus"] = made
    return ExtensionObject("BackupEntry", "", name_of(entry), wanted)


def secret_name(core: Document) -> str:
    """Name of the copy in the seed of the credentials of a bucket, or of an entry."""
    return f"{'entry' if core['kind'] == 'BackupEntry' else 'bucket'}-{name_of(core)}"


def path_of_core(core: Document) -> str:
    """Path of the object in the seed of a bucket or an entry."""
    return path_of(core["kind"], "", name_of(core))


def is_responsible(entry: Document, seed_name: str) -> bool:
    """True if an entry is the matter of this seed."""
    return (section(entry, "status").get("seedName") or section(entry, "spec").get("seedName")) == seed_name


def is_for(entry: Document, seed_name: str) -> bool:
    """True if an entry is to be on this seed, whichever has it."""
    return section(entry, "spec").get("seedName") == seed_name


def entry_problem(entry: Document | None, seed_name: str) -> str | None:
    """Reason why an entry is not ready on a seed; None when it is."""
    if entry is None:
        return "it does not exist"
    if (error := last_error(entry)) is not None:
        return error.description
    if (has_it := section(entry, "status").get("seedName")) != seed_name:
        return f"it is on seed {has_it}" if has_it else "no seed has it yet"
    return ready_problem(entry)


def is_moving(entry: Document) -> bool:
    """True while the seed that has an entry is not the one that it is to be on."""
    has_it = section(entry, "status").get("seedName")
    return bool(has_it) and not is_for(entry, str(has_it))


def kept_until(entry: Document, *, hours: int, purposes: Collection[str]) -> datetime | None:
    """Time until which a deleted entry lives on; None where its deletion is not put off."""
    metadata = section(entry, "metadata")
    annotations, deleted_at = section(metadata, "annotations"), parse_timestamp(metadata.get("deletionTimestamp"))
    purpose = annotations.get(PURPOSE)
    if annotations.get(FORCE_DELETION) in _TRUE or deleted_at is None:
        return None
    if purposes and purpose and purpose not in purposes:
        return None
    return deleted_at + timedelta(hours=hours)


def generated_secret(bucket: Document, in_seed: Document) -> Document:
    """The copy in the garden of credentials that an extension has made for a bucket."""
    key = generated_secret_key(bucket)
    owner = controller_reference({**bucket, "apiVersion": CORE, "kind": "BackupBucket"})
    metadata = {"name": key.name, "namespace": key.namespace, "ownerReferences": [owner]}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": dict(section(in_seed, "data"))}


def plan_backup(
    live: Document | None,
    wanted: ExtensionObject,
    *,
    credentials_at: datetime | None,
    now: datetime,
    renewed_after: timedelta | None = None,
) -> ObjectPlan:
    """Decide by the table of the module. `credentials_at`: when the copy of its credentials was written."""
    if live is None or _differs(section(live, "spec"), wanted.spec) or is_migrated(live) or _awaits_state(live):
        return ObjectPlan(is_requested=True)
    last, error = section(live, "status", "lastOperation"), last_error(live)
    requested_at = parse_timestamp(annotations_of(live).get(TIMESTAMP))
    is_late = requested_at is None or now - requested_at >= REQUESTED_AGAIN_AFTER
    if is_not_picked_up(live):
        return ObjectPlan(is_requested=is_late, error=NO_OPERATION if is_late and not last else None)
    done_at = parse_timestamp(last.get("lastUpdateTime"))
    if _is_before(done_at, credentials_at) and _is_before(requested_at, credentials_at):
        return ObjectPlan(is_requested=True)
    state = last.get("state")
    if error is not None or state in ("Error", "Failed"):
        text = f"extension state is not Succeeded but {state}"
        if error is not None:
            text = f"error during reconciliation: {error.description}"
        codes = () if error is None else error.codes
        return ObjectPlan(is_requested=state == "Failed" and is_late, error=LastError(text, codes))
    if ready_problem(live) is None:
        is_due = renewed_after is not None and (requested_at is None or now - requested_at >= renewed_after)
        return ObjectPlan(is_requested=is_due, is_ready=True)
    return ObjectPlan(
        is_requested=is_late and state != "Processing", error=NO_OPERATION if is_late and not last else None
    )


def operation_type(core: Document) -> BackupOperation:
    """Type of the operation that is done on a core object now."""
    last = section(core, "status", "lastOperation")
    kind, has_succeeded = last.get("type"), last.get("state") == _SUCCEEDED
    if is_deleting(core):
        return "Delete"
    if is_moving(core):
        return "Migrate"
    if kind == "Migrate" or (kind == "Restore" and not has_succeeded):
        return "Restore"
    return "Create" if not last or (kind == "Create" and not has_succeeded) else "Reconcile"


def begun(core: Document, now: datetime, results: Document | None = None) -> Document:
    """The status of an object whose operation has begun."""
    text = f"{_WORDS[operation_type(core)]} of {core['kind']} state initialized."
    return _status(core, "Processing", text, now=now, results=results)


def ended(core: Document, now: datetime, results: Document | None = None) -> Document:
    """The status of an object whose operation has succeeded, with its results; that of one at rest stays."""
    operation = operation_type(core)
    description = f"{_WORDS[operation]} of BackupEntry succeeded."
    if core["kind"] == "BackupBucket":
        description = BUCKET_DELETED if operation == "Delete" else BUCKET_RECONCILED
    if operation == "Reconcile" and is_ready(core):
        description = section(core, "status", "lastOperation")["description"]
    return _status(core, _SUCCEEDED, description, now=now, results=results)


def pending(entry: Document, until: datetime, now: datetime) -> Document:
    """The status of an entry whose deletion is put off."""
    text = f"Deletion of backup entry is scheduled for {until.astimezone(UTC):%Y-%m-%d %H:%M:%S} +0000 UTC"
    return _status(entry, "Pending", text, now=now)


def bucket_state(bucket: Document) -> str:
    """Reason why a bucket cannot take entries."""
    state = section(bucket, "status", "lastOperation").get("state")
    return f"associated BackupBucket state is not Succeeded but {state}"


def failed(core: Document, error: LastError, now: datetime) -> Document:
    """The status of an object whose operation has failed, and is tried again."""
    retried = " Operation will be retried." if is_deleting(core) and core["kind"] == "BackupBucket" else ""
    return _status(core, "Error", f"{error.description}{retried}", now=now, error=error)


def backup_problem(core: Document) -> str | None:
    """The error of a BackupBucket as the condition of its seed names it; None without one."""
    error = section(core, "status").get("lastError")
    return None if not error else f"Name: {name_of(core)}, Error: {section(core, 'status', 'lastError')['description']}"


def is_ready(core: Document) -> bool:
    """True once a core object is as it is wanted to be."""
    status, metadata = section(core, "status"), section(core, "metadata")
    is_observed = (status.get("observedGeneration") or 0) >= (metadata.get("generation") or 0)
    return is_observed and section(status, "lastOperation").get("state") == _SUCCEEDED and not status.get("lastError")


def _status(
    core: Document,
    state: str,
    description: str,
    *,
    now: datetime,
    error: LastError | None = None,
    results: Document | None = None,
) -> Document:
    """A patch of the status; empty where it is that already."""
    before = section(core, "status")
    last = section(before, "lastOperation")
    reported: Document = {**(results or {}), "lastError": None}
    reported["observedGeneration"] = section(core, "metadata").get("generation")
    if error is not None:
        reported["lastError"] = {"description": error.description} | (
            {"codes": list(error.codes)} if error.codes else {}
        )
    patch = {field: value for field, value in reported.items() if before.get(field) != value}
    if (last.get("state"), last.get("description")) != (state, description):
        patch["lastOperation"] = {
            "type": operation_type(core),
            "state": state,
            "progress": _PROGRESS[state],
            "description": description,
            "lastUpdateTime": timestamp(now),
        }
    return patch


def _differs(spec: Document, wanted: Document) -> bool:
    return any(spec.get(field) != wanted.get(field) for field in (*_COMPARED, *wanted))


def _awaits_state(live: Document) -> bool:
    return annotations_of(live).get(OPERATION) == WAIT_FOR_STATE


def _is_before(instant: datetime | None, other: datetime | None) -> bool:
    return other is not None and (instant is None or instant < other)
