"""Validation of manifests by kind, and the rules that hold for every kind."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from gardenbus.apiserver.domain.defaults import with_defaults
from gardenbus.apiserver.domain.validation import (
    backups,
    bastion,
    cloudprofile,
    config_map,
    controller_deployment,
    controller_registration,
    credentials_binding,
    envelope,
    exposure_class,
    gardenlet,
    lease,
    managed_seed,
    managed_seed_set,
    member_cluster,
    namespaced_cloudprofile,
    openidconnect_preset,
    override,
    placement,
    placement_parts,
    plant,
    project,
    quota,
    resource_quota,
    secret,
    seed,
    seed_autoscaler,
    shoot,
    shoot_state,
    signing_request,
    workload_identity,
)
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, FieldErrors, invalid
from gardenbus.apiserver.domain.validation.member_work import check_work_status
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.apiserver.domain.validation.status import (
    check_project_status_update,
    check_seed_status,
    check_seed_status_update,
    check_shoot_status,
    check_shoot_status_update,
    check_status,
)
from gardenbus.apiserver.domain.validation.stored_problems import without_stored
from gardenbus.common.api.document import Document, encode, section
from gardenbus.common.api.keys import LEASE_NAMESPACE, ObjectKey
from gardenbus.common.api.members import Members
from gardenbus.common.api.shown_values import shown
from gardenbus.common.errors import FieldProblem, InvalidResource, Unsupported

Check = Callable[[FieldCursor, Document | None], None]

_CHECKS: Mapping[str, Check] = {
    "Shoot": shoot.check,
    "Seed": seed.check,
    "CloudProfile": cloudprofile.check,
    "NamespacedCloudProfile": namespaced_cloudprofile.check,
    "Project": project.check,
    "ExposureClass": exposure_class.check,
    "Quota": quota.check,
    "SecretBinding": credentials_binding.check_secret_binding,
    "CredentialsBinding": credentials_binding.check_credentials_binding,
    "WorkloadIdentity": workload_identity.check,
    "Bastion": bastion.check,
    "Plant": plant.check,
    "BackupBucket": backups.check_bucket,
    "BackupEntry": backups.check_entry,
    "ControllerDeployment": controller_deployment.check,
    "ControllerRegistration": controller_registration.check_registration,
    "ControllerInstallation": controller_registration.check_installation,
    "ConfigMap": config_map.check,
    "Secret": secret.check,
    "InternalSecret": secret.check,
    "ShootState": shoot_state.check,
    "Lease": lease.check,
    "CertificateSigningRequest": signing_request.check,
    "ResourceQuota": resource_quota.check,
    "OpenIDConnectPreset": openidconnect_preset.check,
    "ClusterOpenIDConnectPreset": openidconnect_preset.check,
    "Gardenlet": gardenlet.check,
    "ManagedSeed": managed_seed.check,
    "ManagedSeedSet": managed_seed_set.check,
    "SeedAutoscaler": seed_autoscaler.check,
    "MemberCluster": member_cluster.check,
    "ClusterResourcePlacement": placement.check,
    "ResourcePlacement": placement.check,
    "ClusterResourceEnvelope": envelope.check,
    "ResourceEnvelope": envelope.check,
    "ClusterResourceOverride": override.check,
    "ResourceOverride": override.check,
    "ClusterResourcePlacementEviction": placement_parts.check_eviction,
    "ClusterResourcePlacementDisruptionBudget": placement_parts.check_disruption_budget,
}

KINDS_WITH_RULES = frozenset(_CHECKS)
"""Kinds with rules of their own."""

_STATUS_CHECKS: Mapping[str, Callable[[FieldCursor], object]] = {
    "Shoot": check_shoot_status,
    "Seed": check_seed_status,
    "MemberCluster": member_cluster.check_member_cluster_status,
    "Work": check_work_status,
}

_STATUS_UPDATES: Mapping[str, Callable[[FieldCursor, Document], None]] = {
    "Shoot": check_shoot_status_update,
    "Seed": check_seed_status_update,
    "Project": check_project_status_update,
}

_SMALL_BYTES = 16 * 1024
"""Size of a manifest up to which more than its metadata is checked where that is wrong: it may hold up others."""

_OF_TECHNICAL_IDS = frozenset({"Shoot", "Project"})
"""Kinds whose names are parts of `shoot--<project>--<shoot>`."""


def key_of_applied(document: Document) -> ObjectKey:
    """The key of a manifest that is applied. Raises what `metadata.key_of` raises.

    Where its metadata is wrong, the other problems that it would have as a new object are told at once.
    """
    try:
        return key_of(document)
    except InvalidResource as error:
        if document["kind"] not in _CHECKS or len(encode(document)) > _SMALL_BYTES:
            raise
        rest = [each for each in problems_of_new(with_defaults(document)) if each not in error.problems]
        if not rest:
            raise
        subject = error.message.partition(" is invalid: ")[0]
        raise invalid((*error.problems, *rest), f"{subject} is invalid: ") from error


def validate(document: Document, old: Document | None) -> None:
    """Check a manifest whose metadata passed `metadata.key_of`, as it will be stored.

    `old` is the stored object, None on creation. Raises InvalidResource with every field problem (also in status, so
    that a report with a wrong type is rejected), and Unsupported for what only services write: Events, heartbeats.
    """
    kind = str(document["kind"])
    if kind == "Event":
        raise Unsupported("kind: Events are recorded by the services: read them with garden.api.list.event")
    if kind == "Lease" and old is None and section(document, "metadata").get("namespace") == LEASE_NAMESPACE:
        raise Unsupported(
            f"metadata.namespace: Leases of {LEASE_NAMESPACE} are heartbeats, which gardenlets send: read them with "
            "garden.api.list.lease"
        )
    errors = FieldErrors()
    _check(document, old, errors)
    if old is not None and errors.problems:
        errors = without_stored(document, old, lambda one, found: _check(one, old, found))
    _raise_if_any(document, errors)


def problems_of_new(document: Document) -> Sequence[FieldProblem]:
    """Every problem that an object of a kind with rules would have, were it new; its metadata is checked elsewhere."""
    errors = FieldErrors()
    _check(document, None, errors)
    return errors.problems


def _check(document: Document, old: Document | None, errors: FieldErrors) -> None:
    """Note every problem of a manifest that replaces `old`; of the stored one itself where both are the same."""
    kind = str(document["kind"])
    manifest = FieldCursor.root(document, errors)
    for part in ("spec", "status"):
        manifest.section(part)
    _check_new_labels(manifest.section("metadata"), section(old or {}, "metadata", "labels"))
    if old is not None:
        _check_identity(manifest, old)
    elif kind in _OF_TECHNICAL_IDS and "--" in str(section(document, "metadata").get("name")):
        manifest.add_error(
            "metadata.name", "must not have two hyphens in a row: they separate the parts of a technical ID"
        )
    if check := _CHECKS.get(kind):
        check(manifest, old)


def validate_status(document: Document, old: Document) -> None:
    """Check the status of a stored object as a report has changed it. Raises InvalidResource."""
    _raise_if_any(document, _new_status_errors(document, old))


def validate_status_update(document: Document, old: Document, now: datetime) -> None:
    """Check the status of a stored object as a request changes it, identities included. Raises InvalidResource."""
    errors = _new_status_errors(document, old)
    manifest, kind = FieldCursor.root(document, errors), str(document["kind"])
    if check := _STATUS_UPDATES.get(kind):
        check(manifest, old)
    if kind == "Bastion" and section(document, "status") != section(old, "status"):
        bastion.check_heartbeat(manifest, now)
    _raise_if_any(document, errors)


def _new_status_errors(document: Document, old: Document) -> FieldErrors:
    """Problems of a status, without those that the stored one has already."""
    errors = FieldErrors()
    _check_status(document, errors)
    return without_stored(document, old, _check_status) if errors.problems else errors


def _check_status(document: Document, errors: FieldErrors) -> None:
    _STATUS_CHECKS.get(str(document["kind"]), check_status)(FieldCursor.root(document, errors))


def _raise_if_any(document: Document, errors: FieldErrors) -> None:
    metadata = section(document, "metadata")
    key = ObjectKey(str(document["kind"]), str(metadata.get("namespace") or ""), str(metadata.get("name")))
    errors.raise_if_any(str(key))


def _check_identity(manifest: FieldCursor, old: Document) -> None:
    """Kind, group, name and namespace stay, and so does the uid where it is stated."""
    group, before = (str(one.get("apiVersion")).rpartition("/")[0] for one in (manifest.content, old))
    if group != before:
        manifest.add_error("apiVersion", f"an object of that kind and name is stored in the group {before or 'v1'}")
    manifest.same_as(old, "kind", "make a new object")
    if metadata := manifest.section("metadata"):
        for field in ("name", "namespace", "uid"):
            if field != "uid" or metadata.has("uid"):
                metadata.same_as(section(old, "metadata"), field, "make a new object")
        _check_new_finalizers(metadata, section(old, "metadata"))


def _check_new_labels(metadata: FieldCursor, before: Document) -> None:
    """The prefix of a new label is a DNS subdomain; an earlier version took capitals in it."""
    for key in section(metadata.content, "labels").keys() - before.keys():
        prefix = str(key).rpartition("/")[0]
        if prefix != prefix.lower():
            metadata.add_error("labels", f"{shown(key)}: the part before the / has no capitals: write {prefix.lower()}")


def _check_new_finalizers(metadata: FieldCursor, before: Document) -> None:
    """An object that is being deleted gets no new finalizer. Source: apimachinery's `validation/objectmeta.go`."""
    if not before.get("deletionTimestamp"):
        return
    held = Members(before.get("finalizers") or ())
    if new := [finalizer for _, finalizer in metadata.texts("finalizers") if finalizer not in held]:
        metadata.add_error(
            "finalizers", f"none can be added while the object is being deleted: leave out {', '.join(new)}"
        )
