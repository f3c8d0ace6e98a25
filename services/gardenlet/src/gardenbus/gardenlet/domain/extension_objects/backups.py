"""BackupBuckets of the garden: their objects in the seed's API, and what is reported of them.

| object in the seed | done | reported: lastOperation |
|---|---|---|
| none, of another spec, or older than its credentials | requested | Processing, initialized |
| requested, and not picked up for 30 s | requested again | Processing; Error without any last operation |
| with an error | nothing; one that has failed is requested again after 30 s | Error, with the error |
| ready | nothing; a bucket is requested again each 12 h | Succeeded |

Source: Gardener's `pkg/gardenlet/controller/backupbucket`, and `pkg/api/core/v1beta1/helper/common.go`.
"""

from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import FINALIZER, is_deleting, name_of
from gardenbus.common.api.garden.backup_references import generated_secret_key
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.api.owners import controller_reference
from gardenbus.common.ports.clock import parse_timestamp, timestamp
from gardenbus.gardenlet.domain.extension_objects.cluster import CORE
from gardenbus.gardenlet.domain.extension_objects.contract import (
    TIMESTAMP,
    LastError,
    is_not_picked_up,
    last_error,
    ready_problem,
)
from gardenbus.gardenlet.domain.extension_objects.kinds import ExtensionObject
from gardenbus.gardenlet.domain.managed_resources.names import annotations_of

RENEWED_AFTER = timedelta(hours=12)
"""Time after which a bucket is requested again, as in Gardener."""

REQUESTED_AGAIN_AFTER = timedelta(seconds=30)
NO_OPERATION = LastError("extension did not record a last operation yet")
BUCKET_RECONCILED = "Backup Bucket has been successfully reconciled."
BUCKET_DELETED = "Backup Bucket has been successfully deleted."
_GENERATED_INTO = "backupbucket.extensions.gardener.cloud/generated-secret-namespace"

BackupOperation = Literal["Create", "Reconcile", "Delete"]
_WORDS: dict[BackupOperation, str] = {
    "Create": "Reconciliation",
    "Reconcile": "Reconciliation",
    "Delete": "Deletion",
}
_PROGRESS = {"Processing": 0, "Error": 50, "Succeeded": 100}
_COMPARED = ("type", "providerConfig", "region", "secretRef")
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


def has_spec_of(core: Document, wanted: Document) -> bool:
    """True if a core object has the spec that is wanted, whatever else it has."""
    spec = section(core, "spec")
    return all(spec.get(field) == value for field, value in section(wanted, "spec").items())


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


def secret_name(bucket: Document) -> str:
    """Name of the copy in the seed of a bucket's credentials."""
    return f"bucket-{name_of(bucket)}"


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
    if live is None or _differs(section(live, "spec"), wanted.spec):
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
    if is_deleting(core):
        return "Delete"
    if not last or (last.get("type") == "Create" and last.get("state") != _SUCCEEDED):
        return "Create"
    return "Reconcile"


def begun(core: Document, now: datetime) -> Document:
    """The status of an object whose operation has begun."""
    text = f"{_WORDS[operation_type(core)]} of {core['kind']} state initialized."
    return _status(core, "Processing", text, now=now)


def ended(core: Document, description: str, now: datetime, results: Document | None = None) -> Document:
    """The status of an object whose operation has succeeded, with its results."""
    return _status(core, _SUCCEEDED, description, now=now, results=results)


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


def _is_before(instant: datetime | None, other: datetime | None) -> bool:
    return other is not None and (instant is None or instant < other)
