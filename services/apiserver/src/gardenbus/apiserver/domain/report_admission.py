"""Rules of reports: responsibility of gardenlets, and the consequences of a reported status.

Source: Gardener's SeedRestriction admission and the status strategy of Shoots.
"""

from typing import Any, Literal, cast, get_args

from gardenbus.apiserver.domain.annotations import annotated
from gardenbus.apiserver.domain.migration import source_of
from gardenbus.apiserver.domain.operations import without_operation
from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.document_parts import (
    FINALIZER,
    is_deleted,
    is_deleting,
    with_finalizer,
    with_metadata,
    without_finalizer,
)
from gardenbus.common.api.garden.bastions import BASTION_DELETED, BASTION_READY
from gardenbus.common.api.garden.migration_feasibility import seeds_of
from gardenbus.common.api.garden.seed_management import CORDONED_BY, REMOVAL_ANNOTATION, SEED_REGISTERED
from gardenbus.common.api.garden.shoot_operations import OPERATION, RECONCILE
from gardenbus.common.api.identity.signing_requests import RENEWALS
from gardenbus.common.errors import BadRequest, Forbidden
from gardenbus.common.ports.clock import parse_timestamp

ReportVerb = Literal["status", "apply", "delete", "event"]
VERBS: tuple[str, ...] = get_args(ReportVerb)

SEED_DELETED = "Deleted"
"""The reason of SeedRegistered when nothing is left of the seed that was."""

_OF_GENERATED = frozenset({"apiVersion", "kind", "metadata", "data", "name", "namespace", "ownerReferences"})
"""Fields of a Secret with generated credentials, and of its metadata."""

EVENT_TYPES = ("Normal", "Warning")


def concerns(shoot: Document, seed: str) -> bool:
    """True when a seed is the present or the target seed of a shoot."""
    return seed in seeds_of(shoot)


def is_responsible(shoot: Document, seed: str) -> bool:
    """True when a seed is the present seed of a shoot or, before any has claimed it, its target."""
    return source_of(shoot) == seed


def check_object(stored: StoredObject | None, *, uid: str, reported_at: str, what: str) -> StoredObject:
    """The object of a report: the one with its uid, and without uid one that is not younger than the report.

    `reported_at` is when the report was stored in the stream (RFC 3339, whole seconds). Raises Forbidden.
    """
    if stored is None:
        raise Forbidden(f"{what} not found")
    if uid and uid != stored.uid:
        raise Forbidden(f"{what} has another uid than the report's: it was created anew meanwhile")
    if not uid and reported_at < stored.created_at:
        raise Forbidden(f"the report without uid is older than {what}")
    return stored


def check_shoot(shoot: Document, seed: str, what: str) -> None:
    """Raise Forbidden unless the gardenlet of `seed` is responsible for the shoot."""
    responsible = source_of(shoot)
    if responsible != seed:
        raise Forbidden(f"{what} belongs to {f'seed {responsible}' if responsible else 'no seed yet'}, not to {seed}")


def check_seed_claim(shoot: Document, reported: Document) -> None:
    """Raise Forbidden when a report moves status.seedName in a way that is not the gardenlet's.

    It may be set to spec.seedName when it is empty (the claim) or when the source has prepared the migration; anything
    else would have two gardenlets run one control plane.
    """
    if "seedName" not in reported:
        return
    now = section(shoot, "status").get("seedName") or ""
    claimed: Any = reported["seedName"]
    if claimed == now:
        return
    target = section(shoot, "spec").get("seedName") or ""
    operation = {**section(shoot, "status", "lastOperation"), **section(reported, "lastOperation")}
    has_migrated = operation.get("type") == "Migrate" and operation.get("state") == "Succeeded"
    if claimed != target or (now and not has_migrated):
        raise Forbidden(f"status.seedName: {claimed!r} cannot be reported: it is {now or 'empty'}, spec has {target!r}")


def check_own_claim(reported: Document, seed: str) -> None:
    """Raise Forbidden when a report names another seed than its gardenlet's as the one that has a BackupEntry."""
    if (claimed := reported.get("seedName")) not in (None, seed):
        raise Forbidden(f"status.seedName: {claimed!r} cannot be reported by the gardenlet of seed {seed}")


def with_highest_observed_generation(status: Document, reported: Document) -> Document:
    """The `reported` status with the highest observedGeneration so far: it never decreases."""
    before: Any = status.get("observedGeneration")
    now: Any = reported.get("observedGeneration")
    if not isinstance(before, int) or (isinstance(now, int) and now >= before):
        return reported
    return {**reported, "observedGeneration": before}


def bumps_generation(old: Document, new: Document) -> bool:
    """True when the generation increases: a migration was prepared or aborted, so the destination has work to do."""
    return _has_migrated(new) and not _has_migrated(old)


def finish_deletion(document: Document) -> Document:
    """The object without its gardenlet's finalizer, when it reports that the deletion is complete; else as it is."""
    is_gone = is_deleted(document) and is_deleting(document)
    return without_finalizer(document, FINALIZER) if is_gone else document


def without_observed_operation(managed_seed: Document) -> Document:
    """The ManagedSeed without a requested reconciliation that its gardenlet has observed.

    It counts as observed with its generation, which a write past admission increases as well.
    """
    metadata = section(managed_seed, "metadata")
    observed = section(managed_seed, "status").get("observedGeneration")
    if section(metadata, "annotations").get(OPERATION) != RECONCILE or observed != metadata.get("generation"):
        return managed_seed
    return without_operation(managed_seed)


def without_met_renewal(seed: Document, before: Document) -> Document:
    """The Seed (or MemberCluster) without a demand for a new certificate once a later end of it is reported."""
    ends = [
        parse_timestamp(section(each, "status").get("clientCertificateExpirationTimestamp")) for each in (before, seed)
    ]
    if section(seed, "metadata", "annotations").get(OPERATION) not in RENEWALS or ends[1] is None:
        return seed
    return without_operation(seed) if ends[0] is None or ends[0] < ends[1] else seed


def is_torn_down(managed_seed: Document) -> bool:
    """True when the gardenlet of a ManagedSeed that is being deleted reports that nothing is left of it."""
    condition = get_condition(conditions_of(managed_seed), SEED_REGISTERED) if is_deleting(managed_seed) else None
    return condition is not None and condition.get("reason") == SEED_DELETED


def with_bastion_finalizer(bastion: Document) -> Document:
    """A reported Bastion with its gardenlet's finalizer, or without it once nothing is left of its host."""
    if not is_deleting(bastion):
        return with_finalizer(bastion, FINALIZER)
    condition = get_condition(conditions_of(bastion), BASTION_READY)
    is_gone = condition is not None and condition.get("reason") == BASTION_DELETED
    return without_finalizer(bastion, FINALIZER) if is_gone else bastion


def check_generated(secret: Document, what: str) -> None:
    """Raise Forbidden for a Secret with generated credentials that says more than its data."""
    if more := {*secret, *section(secret, "metadata")} - _OF_GENERATED:
        raise Forbidden(f"{what}: a gardenlet sets its data, and not {', '.join(sorted(more))}")


def with_operator_settings_kept(current: Document | None, merged: Document) -> Document:
    """A merged Seed that keeps what a gardenlet must not change: the removal annotation, and a cordon."""
    if merged.get("kind") != "Seed":
        return merged
    before = section(current or {}, "metadata", "annotations")
    for name in (REMOVAL_ANNOTATION, CORDONED_BY):
        merged = annotated(merged, name, before.get(name))
    if CORDONED_BY not in before:
        return merged
    spec, settings = section(merged, "spec"), section(merged, "spec", "settings")
    scheduling = {**section(settings, "scheduling"), "visible": False}
    return {**merged, "spec": {**spec, "settings": {**settings, "scheduling": scheduling}}}


def at_version_of(manifest: Document, stored: StoredObject) -> Document:
    """A manifest that counts only as long as the object is as it was read."""
    return with_metadata(manifest, "resourceVersion", str(stored.version))


def reported_status(body: Document) -> Document:
    """The status in a report's body. Raises BadRequest."""
    status: Any = body.get("status")
    if not isinstance(status, dict):
        raise BadRequest('status: a report is {"status": {…}}')
    for name in ("conditions", "constraints"):
        entries: Any = cast("Document", status).get(name)
        if entries is None:
            continue
        if not isinstance(entries, list):
            raise BadRequest(f"status.{name}: must be a list")
        for index, entry in enumerate(cast("list[Any]", entries)):
            kind: Any = cast("Document", entry).get("type") if isinstance(entry, dict) else None
            if not isinstance(kind, str) or not kind:
                raise BadRequest(f"status.{name}[{index}].type: is needed")
    for name in ("lastOperation", "networking", "allocatable", "capacity"):
        value: Any = cast("Document", status).get(name)
        if value is not None and not isinstance(value, dict):
            raise BadRequest(f"status.{name}: must be a mapping")
    return cast("Document", status)


def reported_event(body: Document) -> tuple[Literal["Normal", "Warning"], str, str, str]:
    """Type, reason, message and action of a reported Event. Raises BadRequest."""
    values = {name: body.get(name) or "" for name in ("type", "reason", "message", "action")}
    for name, value in values.items():
        if not isinstance(value, str):
            raise BadRequest(f"{name}: must be text")
    if values["type"] not in EVENT_TYPES:
        raise BadRequest(f"type: must be one of {', '.join(EVENT_TYPES)}")
    if not values["reason"]:
        raise BadRequest("reason: is needed")
    kind: Literal["Normal", "Warning"] = "Warning" if values["type"] == "Warning" else "Normal"
    return kind, str(values["reason"])[:128], str(values["message"])[:1024], str(values["action"])[:128]


def _has_migrated(shoot: Document) -> bool:
    operation = section(shoot, "status", "lastOperation")
    return operation.get("type") == "Migrate" and operation.get("state") in ("Succeeded", "Aborted")
