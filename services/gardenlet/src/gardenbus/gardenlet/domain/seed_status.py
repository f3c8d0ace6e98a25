"""Reports of a Seed: its manifest at registration, and every field of its status that differs.

A sync does not turn conditions to Progressing, so that a ready seed stays schedulable.
Source: Gardener's `gardenlet/controller/seed/{seed,care,lease}` and `cmd/gardenlet/app/app.go`.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from gardenbus.agent.domain.allocatable import allocatable
from gardenbus.common.api.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    build_condition,
    conditions_of,
    failed_status,
    get_condition,
    get_or_init,
)
from gardenbus.common.api.configuration.gardenlet import GardenletConfiguration
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.seeds import (
    BACKUP_BUCKETS_READY,
    EMERGENCY_STOP,
    GARDENLET_READY,
    SEED_SYSTEM_COMPONENTS_HEALTHY,
)
from gardenbus.common.ports.clock import timestamp
from gardenbus.gardenlet.domain.operations import FINALIZER, SeedReadiness

EMERGENCY_STOP_CONDITION = "EmergencyStopShootReconciliations"


class SeedFindings(NamedTuple):
    """Results of the seed's health checks; a text is a problem. Those of the bucket count only with spec.backup."""

    system_problem: str | None = None
    bucket_problem: str | None = None
    bucket_is_gone: bool = False
    kubernetes_version: str = ""
    shoots_left: int = 0
    certificate_expires_at: datetime | None = None
    healthy_message: str = ""
    """Message instead of Gardener's, from a backend that has not looked at what those speak of."""


def gardener_identity(seed_name: str, version: str) -> Document:
    """Identity of this gardenlet for status.gardener; stable over restarts."""
    return {"id": f"gardenlet-{seed_name}", "name": "gardenlet", "version": version}


def seed_manifest(configuration: GardenletConfiguration) -> Document:
    """The Seed as it is registered."""
    metadata: Document = {
        "name": configuration.seed_name,
        "labels": {"gardener.cloud/role": "seed", **configuration.labels},
        "finalizers": [FINALIZER],
    }
    if configuration.annotations:
        metadata["annotations"] = dict(configuration.annotations)
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Seed",
        "metadata": metadata,
        "spec": configuration.spec,
    }


def seed_status_patch(
    seed: Document, configuration: GardenletConfiguration, findings: SeedFindings, *, identity: Document, now: datetime
) -> Document:
    """Patch of every status field that differs from its desired value; empty when none does.

    `seed` is the observed Seed. Conditions of other owners are left alone, and so is the certificate's expiry when the
    gardenlet has no certificate.
    """
    status = section(seed, "status")
    wanted: Document = {
        "gardener": identity,
        "observedGeneration": section(seed, "metadata").get("generation") or 0,
        "kubernetesVersion": findings.kubernetes_version,
        **_last_operation(seed, findings, now=now),
    }
    if configuration.capacity:
        wanted["capacity"] = dict(configuration.capacity)
        wanted["allocatable"] = dict(allocatable(configuration.capacity, configuration.reserved))
    if findings.certificate_expires_at is not None:
        wanted["clientCertificateExpirationTimestamp"] = timestamp(findings.certificate_expires_at)
    patch = {field: value for field, value in wanted.items() if status.get(field) != value}
    conditions = [
        each
        for each in _conditions(seed, findings, dict(configuration.seed_condition_thresholds), now=now)
        if each not in conditions_of(seed)
    ]
    return patch | ({"conditions": conditions} if conditions else {})


def seed_gone_patch(now: datetime) -> Document:
    """Status patch of a deleting Seed of which nothing is left: its finalizer goes with it."""
    operation = {"type": "Delete", "state": "Succeeded", "progress": 100}
    description = "Seed cluster has been successfully deleted."
    return {"lastOperation": {**operation, "description": description, "lastUpdateTime": timestamp(now)}}


def _last_operation(seed: Document, findings: SeedFindings, *, now: datetime) -> Document:
    """The Seed's last operation, only if more than its time differs."""
    if section(seed, "metadata").get("deletionTimestamp"):
        operation = {"type": "Delete", "state": "Processing", "progress": 0}
        operation["description"] = "Deletion of Seed cluster in progress."
        if findings.shoots_left:
            operation["description"] += f" Waiting for {findings.shoots_left} shoot(s) to be gone."
    elif findings.bucket_problem is not None and section(seed, "spec").get("backup"):
        operation = {"type": "Reconcile", "state": "Error", "progress": 50}
        operation["description"] = (
            f"Could not deploy backup bucket: {findings.bucket_problem} Operation will be retried."
        )
    else:
        operation = {"type": "Reconcile", "state": "Succeeded", "progress": 100}
        operation["description"] = "Seed cluster has been successfully reconciled."
    status = section(seed, "status")
    old = section(status, "lastOperation")
    is_observed = status.get("observedGeneration") == section(seed, "metadata").get("generation")
    if is_observed and all(old.get(field) == value for field, value in operation.items()):
        return {}
    return {"lastOperation": {**operation, "lastUpdateTime": timestamp(now)}}


def _conditions(
    seed: Document, findings: SeedFindings, thresholds: Mapping[str, timedelta], *, now: datetime
) -> list[Document]:
    def failed(kind: str, reason: str, problem: str) -> Document:
        old = get_or_init(conditions_of(seed), kind, timestamp(now))
        status = failed_status(old, reason, thresholds.get(kind), now=now)
        return _condition(seed, kind, status, (reason, problem), now=now)

    healthy = ("SystemComponentsRunning", findings.healthy_message or "All system components are healthy.")
    checks = [
        _condition(seed, GARDENLET_READY, TRUE, ("GardenletReady", "Gardenlet is posting ready status."), now=now),
        _condition(seed, SEED_SYSTEM_COMPONENTS_HEALTHY, TRUE, healthy, now=now)
        if findings.system_problem is None
        else failed(SEED_SYSTEM_COMPONENTS_HEALTHY, "SystemComponentsUnhealthy", findings.system_problem),
    ]
    if section(seed, "spec").get("backup"):
        available = ("BackupBucketsAvailable", findings.healthy_message or "Backup Buckets are available.")
        if findings.bucket_problem is not None:
            checks.append(failed(BACKUP_BUCKETS_READY, "BackupBucketsError", findings.bucket_problem))
        elif findings.bucket_is_gone:
            gone = ("BackupBucketsGone", "Backup Buckets are gone.")
            checks.append(_condition(seed, BACKUP_BUCKETS_READY, UNKNOWN, gone, now=now))
        else:
            checks.append(_condition(seed, BACKUP_BUCKETS_READY, TRUE, available, now=now))
    if is_stopped(seed):
        texts = ("EmergencyStopShootReconciliations", "Reconciliation of shoots is stopped by annotation.")
        checks.append(_condition(seed, EMERGENCY_STOP_CONDITION, TRUE, texts, now=now))
    elif get_condition(conditions_of(seed), EMERGENCY_STOP_CONDITION):
        texts = ("EmergencyStopLifted", "Shoots are reconciled.")
        checks.append(_condition(seed, EMERGENCY_STOP_CONDITION, FALSE, texts, now=now))
    return checks


def _condition(seed: Document, kind: str, status: str, texts: tuple[str, str], *, now: datetime) -> Document:
    old = get_or_init(conditions_of(seed), kind, timestamp(now))
    return build_condition(old, now=timestamp(now), status=status, reason=texts[0], message=texts[1])[0]


def is_stopped(seed: Document) -> bool:
    """True if the Seed is under emergency stop; only the exact text `true` counts."""
    return section(seed, "metadata", "annotations").get(EMERGENCY_STOP) == "true"


def readiness(seed: Document | None, identity: Document) -> SeedReadiness:
    """Readiness for operations: the Seed must be up to date, ready and healthy, unless it is deleting."""
    if seed is None:
        return SeedReadiness("seed is not registered yet.")
    metadata, status, conditions = section(seed, "metadata"), section(seed, "status"), conditions_of(seed)
    if metadata.get("deletionTimestamp"):
        return SeedReadiness(None, is_stopped(seed))
    if status.get("gardener") != identity:
        return SeedReadiness("observed Gardener version not up to date.", is_stopped(seed))
    if (status.get("observedGeneration") or 0) < (metadata.get("generation") or 0):
        return SeedReadiness("observed generation outdated.", is_stopped(seed))
    for kind in (GARDENLET_READY, SEED_SYSTEM_COMPONENTS_HEALTHY):
        condition = get_condition(conditions, kind)
        if condition is None or condition.get("status") != TRUE:
            return SeedReadiness(f"condition {kind} is not True.", is_stopped(seed))
    return SeedReadiness(None, is_stopped(seed))
