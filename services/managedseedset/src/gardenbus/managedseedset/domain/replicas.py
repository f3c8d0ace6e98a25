"""Replicas of a set with their ManagedSeeds and Seeds, and their stages.

A replica is a Shoot that the set controls; the ManagedSeed and the Seed of the same name belong to it. Its stage:

| stage                 | without ManagedSeed                                                        |
|-----------------------|----------------------------------------------------------------------------|
| SHOOT_DELETE_FAILED   | deleting, and the operation Delete has failed at the current generation    |
| SHOOT_DELETING        | deleting otherwise                                                         |
| SHOOT_RECONCILED      | Create, Reconcile or Restore has succeeded at the current generation       |
| SHOOT_RECONCILE_FAILED| any operation has failed at the current generation                         |
| SHOOT_RECONCILING     | otherwise                                                                  |
|                       | **with ManagedSeed**                                                       |
| MANAGED_SEED_DELETING | it is deleting                                                             |
| MANAGED_SEED_REGISTERED | its generation was observed and SeedRegistered is True                   |
| MANAGED_SEED_PREPARING| otherwise                                                                  |

Source: Gardener's `managedseedset/{replica,replicagetter}.go`. Other than there, a restored shoot counts as
reconciled, a failed deletion that is being retried is no failure any more, and the failure of a Shoot shows
(`shoot_failed`) when there is a ManagedSeed, too.
"""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import msgspec

from gardenbus.common.api.conditions import TRUE, condition_status, conditions_of
from gardenbus.common.api.document import STATUS_LABEL, Document, section
from gardenbus.common.api.document_parts import is_deleting
from gardenbus.common.api.garden.managed_seed_sets import ordinal_of
from gardenbus.common.api.garden.seed_management import (
    CORDONED_BY,
    DEFAULT_PRIORITY,
    PRIORITY,
    PROTECT_FROM_DELETION,
    REMOVAL_ANNOTATION,
    REVISION_LABEL,
    SEED_REGISTERED,
)
from gardenbus.common.api.garden.seeds import BACKUP_BUCKETS_READY, GARDENLET_READY, SEED_SYSTEM_COMPONENTS_HEALTHY
from gardenbus.common.api.garden.shoot_status import PROGRESSING_STATUS, UNHEALTHY, WORST_FIRST

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_RECONCILED = ("Create", "Reconcile", "Restore")


class Stage(IntEnum):
    """Stage of a replica; the lower goes first when a set shrinks."""

    UNKNOWN = 0
    SHOOT_RECONCILE_FAILED = 1
    SHOOT_DELETE_FAILED = 2
    SHOOT_RECONCILING = 3
    SHOOT_DELETING = 4
    SHOOT_RECONCILED = 5
    MANAGED_SEED_PREPARING = 6
    MANAGED_SEED_DELETING = 7
    MANAGED_SEED_REGISTERED = 8


LEAVING = frozenset({Stage.SHOOT_DELETE_FAILED, Stage.SHOOT_DELETING, Stage.MANAGED_SEED_DELETING})


class Replica(msgspec.Struct, frozen=True, kw_only=True):
    """One replica as it was read. `usage`: the shoots on its Seed, those migrating to or from it included.

    `is_foreign`: its ManagedSeed is another owner's, or nobody's: it is used, but neither changed nor deleted.
    """

    name: str
    shoot: Document
    managed_seed: Document | None = None
    seed: Document | None = None
    usage: int = 0
    is_foreign: bool = False

    @property
    def ordinal(self) -> int:
        """The number in its name."""
        return ordinal_of(self.name)

    @property
    def stage(self) -> Stage:
        """See the module."""
        if self.managed_seed is not None:
            return _stage_of_managed_seed(self.managed_seed)
        return _stage_of_shoot(self.shoot)

    @property
    def is_leaving(self) -> bool:
        """True if one of its objects is being deleted already."""
        return self.stage in LEAVING

    @property
    def shoot_generation(self) -> int:
        """The generation of its Shoot."""
        return int(section(self.shoot, "metadata").get("generation") or 0)

    @property
    def shoot_failed(self) -> bool:
        """True if its Shoot's reconciliation has failed at the current generation."""
        return _stage_of_shoot(self.shoot) == Stage.SHOOT_RECONCILE_FAILED

    @property
    def shoot_reconciled(self) -> bool:
        """True if its Shoot was reconciled at the current generation."""
        return _stage_of_shoot(self.shoot) == Stage.SHOOT_RECONCILED

    @property
    def seed_ready(self) -> bool:
        """True if its Seed exists and is ready."""
        return self.seed is not None and seed_is_ready(self.seed)

    @property
    def gardenlet_is_ready(self) -> bool:
        """True if its Seed's gardenlet can migrate shoots away, even if it has not observed the newest spec."""
        seed = self.seed or {}
        return not is_deleting(seed) and condition_status(conditions_of(seed), GARDENLET_READY) == TRUE

    @property
    def health(self) -> int:
        """Health of its Shoot, the worst being 0: unhealthy, unknown, progressing, healthy."""
        label = str(section(self.shoot, "metadata", "labels").get(STATUS_LABEL) or PROGRESSING_STATUS)
        return WORST_FIRST.index(label if label in WORST_FIRST else UNHEALTHY)

    @property
    def is_healthy(self) -> bool:
        """True if its Shoot is healthy."""
        return self.health == len(WORST_FIRST) - 1

    @property
    def is_ready(self) -> bool:
        """True if it is registered, its Seed ready and its Shoot healthy."""
        return self.stage == Stage.MANAGED_SEED_REGISTERED and self.seed_ready and self.is_healthy

    @property
    def is_protected(self) -> bool:
        """True if it must not be removed."""
        return self.is_foreign or any(
            section(document or {}, "metadata", "annotations").get(PROTECT_FROM_DELETION) == "true"
            for document in (self.shoot, self.managed_seed)
        )

    @property
    def priority_annotation(self) -> Any:
        """The annotation as it is written, on its ManagedSeed or else on its Shoot; None without."""
        for document in (self.managed_seed, self.shoot):
            annotation = section(document or {}, "metadata", "annotations").get(PRIORITY)
            if annotation is not None:
                return annotation
        return None

    @property
    def has_invalid_priority(self) -> bool:
        """True if the annotation is no integer."""
        annotation = self.priority_annotation
        return annotation is not None and not (isinstance(annotation, str) and _INTEGER.fullmatch(annotation.strip()))

    @property
    def priority(self) -> int:
        """The lower goes first when the set shrinks; 3 without the annotation."""
        annotation = self.priority_annotation
        return DEFAULT_PRIORITY if annotation is None or self.has_invalid_priority else int(annotation)

    @property
    def shoot_revision(self) -> str:
        """The revision hash of its Shoot's templates; "" when unknown."""
        return str(section(self.shoot, "metadata", "labels").get(REVISION_LABEL) or "")

    @property
    def managed_seed_revision(self) -> str:
        """The same of its ManagedSeed."""
        return str(section(self.managed_seed or {}, "metadata", "labels").get(REVISION_LABEL) or "")

    def is_at(self, revision: str) -> bool:
        """True if all of it was created from the templates of a revision."""
        return self.shoot_revision == revision and (
            self.managed_seed is None or self.is_foreign or self.managed_seed_revision == revision
        )

    @property
    def removal_owner(self) -> str:
        """The owner in the removal annotation of its Seed; "" without."""
        return str(section(self.seed or {}, "metadata", "annotations").get(REMOVAL_ANNOTATION) or "")

    @property
    def cordon_owner(self) -> str:
        """The owner in the cordon annotation of its Seed; "" without."""
        return str(section(self.seed or {}, "metadata", "annotations").get(CORDONED_BY) or "")

    @property
    def is_visible(self) -> bool:
        """True if the scheduler may use its Seed."""
        return section(self.seed or {}, "spec", "settings", "scheduling").get("visible") is not False

    @property
    def unschedulable(self) -> str:
        """The scheduler's message while its Shoot is unschedulable; "" otherwise."""
        operation = section(self.shoot, "status", "lastOperation")
        if section(self.shoot, "spec").get("seedName") or is_deleting(self.shoot):
            return ""
        rejected = operation.get("type") == "Create" and operation.get("state") == "Pending"
        return str(operation.get("description") or "") if rejected else ""


def seed_is_ready(seed: Document) -> bool:
    """True if a Seed is observed and not deleting, and its gardenlet, components and backups are healthy."""
    conditions = conditions_of(seed)
    return (
        is_observed(seed)
        and not is_deleting(seed)
        and condition_status(conditions, GARDENLET_READY) == TRUE
        and condition_status(conditions, SEED_SYSTEM_COMPONENTS_HEALTHY) == TRUE
        and condition_status(conditions, BACKUP_BUCKETS_READY) in ("", TRUE)
    )


def is_observed(document: Document) -> bool:
    """True if its current generation was observed."""
    return section(document, "metadata").get("generation") == section(document, "status").get("observedGeneration")


def _stage_of_shoot(shoot: Document) -> Stage:
    operation: Mapping[str, Any] = section(shoot, "status", "lastOperation")
    kind, state = operation.get("type"), operation.get("state")
    has_failed = is_observed(shoot) and state == "Failed"
    if is_deleting(shoot):
        return Stage.SHOOT_DELETE_FAILED if has_failed and kind == "Delete" else Stage.SHOOT_DELETING
    if has_failed:
        return Stage.SHOOT_RECONCILE_FAILED
    if is_observed(shoot) and state == "Succeeded" and kind in _RECONCILED:
        return Stage.SHOOT_RECONCILED
    return Stage.SHOOT_RECONCILING


def _stage_of_managed_seed(managed_seed: Document) -> Stage:
    if is_deleting(managed_seed):
        return Stage.MANAGED_SEED_DELETING
    registered = condition_status(conditions_of(managed_seed), SEED_REGISTERED) == TRUE
    return Stage.MANAGED_SEED_REGISTERED if registered and is_observed(managed_seed) else Stage.MANAGED_SEED_PREPARING
