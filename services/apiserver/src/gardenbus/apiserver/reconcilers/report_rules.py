"""Which gardenlet may report what, and what a report on a Shoot brings with it. Pure.

Source: Gardener's SeedRestriction admission and the status strategy of Shoots.
"""

from typing import Any, Literal, cast, get_args

from gardenbus.apiserver.decide.annotations import annotated
from gardenbus.apiserver.decide.migration import seeds_of, source_of
from gardenbus.apiserver.reconcilers.operations import OPERATION, RECONCILE
from gardenbus.common.errors import BadRequest, Forbidden
from gardenbus.common.resources.conditions import conditions_of, get_condition
from gardenbus.common.resources.derived import FINALIZER
from gardenbus.common.resources.document import Document, StoredObject, section
from gardenbus.common.resources.seed_management import CORDONED_BY, MARKED_FOR_REMOVAL, SEED_REGISTERED

Verb = Literal["status", "apply", "delete", "event"]
VERBS: tuple[str, ...] = get_args(Verb)

SEED_DELETED = "Deleted"
"""The reason of SeedRegistered when nothing is left of the seed that was."""

EVENT_TYPES = ("Normal", "Warning")


def concerns(shoot: Document, seed: str) -> bool:
    """Whether a shoot stands on a seed or shall."""
    return seed in seeds_of(shoot)


def is_responsible(shoot: Document, seed: str) -> bool:
    """Whether a shoot stands on a seed or, where nobody has claimed it yet, shall."""
    return source_of(shoot) == seed


def check_object(stored: StoredObject | None, *, uid: str, reported_at: str, what: str) -> StoredObject:
    """The object that a report means: the one with its uid, and without uid one that is not younger than the report.

    `reported_at` is when the report came to the stream (RFC 3339, whole seconds). Raises Forbidden.
    """
    if stored is None:
        raise Forbidden(f"{what} is not there")
    if uid and uid != stored.uid:
        raise Forbidden(f"{what} has another uid than the report's: it was created anew meanwhile")
    if not uid and reported_at < stored.created_at:
        raise Forbidden(f"the report without uid is older than {what}")
    return stored


def check_shoot(shoot: Document, seed: str, what: str) -> None:
    """Raise Forbidden unless the gardenlet of `seed` is responsible: that of the seed where it stands, else shall."""
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
    wanted: Any = reported["seedName"]
    if wanted == now:
        return
    target = section(shoot, "spec").get("seedName") or ""
    operation = {**section(shoot, "status", "lastOperation"), **section(reported, "lastOperation")}
    has_migrated = operation.get("type") == "Migrate" and operation.get("state") == "Succeeded"
    if wanted != target or (now and not has_migrated):
        raise Forbidden(f"status.seedName: {wanted!r} cannot be reported: it is {now or 'empty'}, spec has {target!r}")


def never_fallen(status: Document, reported: Document) -> Document:
    """The `reported` status with what was observed before, where it says less: nobody unlearns a generation."""
    before: Any = status.get("observedGeneration")
    now: Any = reported.get("observedGeneration")
    if not isinstance(before, int) or (isinstance(now, int) and now >= before):
        return reported
    return {**reported, "observedGeneration": before}


def bumps_generation(old: Document, new: Document) -> bool:
    """Whether the generation grows: a migration was prepared or aborted, so the destination has work to do."""
    return _has_migrated(new) and not _has_migrated(old)


def finish_deletion(document: Document) -> Document:
    """The object without its gardenlet's finalizer, when it reports that the deletion is complete; else as it is."""
    metadata = section(document, "metadata")
    operation = section(document, "status", "lastOperation")
    is_gone = (operation.get("type"), operation.get("state"), operation.get("progress")) == ("Delete", "Succeeded", 100)
    finalizers = cast("list[str]", metadata.get("finalizers") or [])
    if not is_gone or not metadata.get("deletionTimestamp") or FINALIZER not in finalizers:
        return document
    return released(document)


def held(managed_seed: Document) -> Document:
    """The ManagedSeed with its gardenlet's finalizer, from the first report on; nobody takes hold of a deleting one."""
    metadata = section(managed_seed, "metadata")
    finalizers = cast("list[str]", metadata.get("finalizers") or [])
    if metadata.get("deletionTimestamp") or FINALIZER in finalizers:
        return managed_seed
    return {**managed_seed, "metadata": {**metadata, "finalizers": [*finalizers, FINALIZER]}}


def without_obeyed_operation(managed_seed: Document) -> Document:
    """The ManagedSeed without the wish to be reconciled once its gardenlet has observed it, so that it can come again.

    The wish counts when its generation is observed: whoever writes it past admission raises that with it.
    """
    metadata = section(managed_seed, "metadata")
    annotations = section(metadata, "annotations")
    observed = section(managed_seed, "status").get("observedGeneration")
    if annotations.get(OPERATION) != RECONCILE or observed != metadata.get("generation"):
        return managed_seed
    others = {name: value for name, value in annotations.items() if name != OPERATION}
    left = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**managed_seed, "metadata": {**left, "annotations": others} if others else left}


def is_taken_down(managed_seed: Document) -> bool:
    """Whether a deleting ManagedSeed's gardenlet says that nothing is left of it."""
    if not section(managed_seed, "metadata").get("deletionTimestamp"):
        return False
    condition = get_condition(conditions_of(managed_seed), SEED_REGISTERED)
    return condition is not None and condition.get("reason") == SEED_DELETED


def released(document: Document) -> Document:
    """The object without its gardenlet's finalizer."""
    metadata = section(document, "metadata")
    finalizers = cast("list[str]", metadata.get("finalizers") or [])
    left = {name: value for name, value in metadata.items() if name != "finalizers"}
    if others := [finalizer for finalizer in finalizers if finalizer != FINALIZER]:
        left["finalizers"] = others
    return {**document, "metadata": left}


def beyond_gardenlets(current: Document | None, merged: Document) -> Document:
    """A merged Seed with what is not a gardenlet's to set or to take off: the mark for removal, and a cordon."""
    if merged.get("kind") != "Seed":
        return merged
    before = section(current or {}, "metadata", "annotations")
    for name in (MARKED_FOR_REMOVAL, CORDONED_BY):
        merged = annotated(merged, name, before.get(name))
    if CORDONED_BY not in before:
        return merged
    spec, settings = section(merged, "spec"), section(merged, "spec", "settings")
    scheduling = {**section(settings, "scheduling"), "visible": False}
    return {**merged, "spec": {**spec, "settings": {**settings, "scheduling": scheduling}}}


def based_on(manifest: Document, stored: StoredObject) -> Document:
    """A manifest that counts only as long as the object is as it was read."""
    metadata = {**section(manifest, "metadata"), "resourceVersion": str(stored.version)}
    return {**manifest, "metadata": metadata}


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
