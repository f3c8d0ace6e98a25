"""What is reported of a Seed: its manifest at registration, and whatever of its status is not as it should be.

A sync does not turn conditions to Progressing, so that a ready seed stays schedulable.
Source: Gardener's `gardenlet/controller/seed/{seed,care,lease}` and `cmd/gardenlet/app/app.go`.
"""

from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from typing import NamedTuple

from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.conditions import (
    FALSE,
    TRUE,
    build_condition,
    conditions_of,
    get_condition,
    get_or_init,
)
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.quantities import parse_quantity
from gardenbus.common.resources.seeds import (
    BACKUP_BUCKETS_READY,
    EMERGENCY_STOP,
    GARDENLET_READY,
    SEED_SYSTEM_COMPONENTS_HEALTHY,
)
from gardenbus.gardenlet.decide.configuration import GardenletConfiguration, Quantity
from gardenbus.gardenlet.decide.operations import FINALIZER, SeedFitness

EMERGENCY_STOP_CONDITION = "EmergencyStopShootReconciliations"
_SUFFIXES = {"": Fraction(1), "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9)} | {
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
}
_FINE = {"m": 10**3, "u": 10**6, "n": 10**9}


class SeedFindings(NamedTuple):
    """What was found out on the seed; a text says what is wrong. `bucket_problem` counts only with spec.backup."""

    system_problem: str | None = None
    bucket_problem: str | None = None
    kubernetes_version: str = ""
    shoots_left: int = 0
    certificate_expires_at: datetime | None = None


def gardener_identity(seed_name: str, version: str) -> Document:
    """Who reports, for status.gardener; the same in every life of the gardenlet."""
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


def allocatable(capacity: Mapping[str, Quantity], reserved: Mapping[str, Quantity]) -> Mapping[str, Quantity]:
    """What is left of each resource; as written where nothing is reserved, else in the capacity's unit if it fits."""
    return {
        name: _remaining(quantity, reserved[name]) if name in reserved else quantity
        for name, quantity in capacity.items()
    }


def _remaining(capacity: Quantity, reserved: Quantity) -> Quantity:
    rest = parse_quantity(capacity) - parse_quantity(reserved)
    if not isinstance(capacity, str):
        return int(rest) if rest.denominator == 1 else float(rest)
    suffix = capacity.lstrip("+-.0123456789")
    unit = _SUFFIXES.get(suffix)
    if unit is not None and (rest / unit).denominator == 1:
        return f"{int(rest / unit)}{suffix}"
    if rest.denominator == 1:
        return str(int(rest))
    fine, parts = next((each for each in _FINE.items() if (rest * each[1]).denominator == 1), ("n", 10**9))
    return f"{int(rest * parts)}{fine}"


def seed_status_patch(
    seed: Document, configuration: GardenletConfiguration, findings: SeedFindings, *, identity: Document, now: datetime
) -> Document:
    """Whatever of the Seed's status is not as it should be, as a patch; empty when all is.

    `seed` is the Seed as it was seen last. Conditions that nobody here keeps are left alone, and so is the end of the
    client certificate when the gardenlet has none.
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
        condition for condition in _conditions(seed, findings, now=now) if condition not in conditions_of(seed)
    ]
    return patch | ({"conditions": conditions} if conditions else {})


def seed_gone_patch(now: datetime) -> Document:
    """What is reported of a deleting Seed when nothing of it is left: its finalizer goes with it."""
    operation = {"type": "Delete", "state": "Succeeded", "progress": 100}
    description = "Seed cluster has been successfully deleted."
    return {"lastOperation": {**operation, "description": description, "lastUpdateTime": timestamp(now)}}


def _last_operation(seed: Document, findings: SeedFindings, *, now: datetime) -> Document:
    """The operation's outcome, written only when something of it but the time is new."""
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
    observed = status.get("observedGeneration") == section(seed, "metadata").get("generation")
    if observed and all(old.get(field) == value for field, value in operation.items()):
        return {}
    return {"lastOperation": {**operation, "lastUpdateTime": timestamp(now)}}


def _conditions(seed: Document, findings: SeedFindings, *, now: datetime) -> list[Document]:
    healthy = ("SystemComponentsRunning", "All system components are healthy.")
    checks = [
        _condition(seed, GARDENLET_READY, TRUE, ("GardenletReady", "Gardenlet is posting ready status."), now=now),
        _condition(seed, SEED_SYSTEM_COMPONENTS_HEALTHY, TRUE, healthy, now=now)
        if findings.system_problem is None
        else _condition(
            seed, SEED_SYSTEM_COMPONENTS_HEALTHY, FALSE, ("SystemComponentsUnhealthy", findings.system_problem), now=now
        ),
    ]
    if section(seed, "spec").get("backup"):
        available = ("BackupBucketsAvailable", "Backup Buckets are available.")
        checks.append(
            _condition(seed, BACKUP_BUCKETS_READY, TRUE, available, now=now)
            if findings.bucket_problem is None
            else _condition(seed, BACKUP_BUCKETS_READY, FALSE, ("BackupBucketsError", findings.bucket_problem), now=now)
        )
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
    """Whether the Seed is under emergency stop; only the exact text `true` counts."""
    return section(seed, "metadata", "annotations").get(EMERGENCY_STOP) == "true"


def fitness(seed: Document | None, identity: Document) -> SeedFitness:
    """Whether shoots may be worked on: the Seed must be up to date, ready and healthy, unless it is deleting."""
    if seed is None:
        return SeedFitness("seed is not registered yet.")
    metadata, status, conditions = section(seed, "metadata"), section(seed, "status"), conditions_of(seed)
    if metadata.get("deletionTimestamp"):
        return SeedFitness(None, is_stopped(seed))
    if status.get("gardener") != identity:
        return SeedFitness("observed Gardener version not up to date.", is_stopped(seed))
    if (status.get("observedGeneration") or 0) < (metadata.get("generation") or 0):
        return SeedFitness("observed generation outdated.", is_stopped(seed))
    for kind in (GARDENLET_READY, SEED_SYSTEM_COMPONENTS_HEALTHY):
        condition = get_condition(conditions, kind)
        if condition is None or condition.get("status") != TRUE:
            return SeedFitness(f"condition {kind} is not True.", is_stopped(seed))
    return SeedFitness(None, is_stopped(seed))
