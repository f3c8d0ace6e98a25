"""The replicas of a set: which Shoots they are, with their ManagedSeeds and Seeds, and the stage that each is in.

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
reconciled, a failed deletion that was asked to go on is no failure any more, and the failure of a Shoot shows
(`shoot_failed`) when there is a ManagedSeed, too.
"""

import re
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import msgspec

from gardenbus.common.resources.conditions import TRUE, condition_status, conditions_of
from gardenbus.common.resources.document import STATUS_LABEL, Document, section
from gardenbus.common.resources.managed_seed_sets import ordinal_of
from gardenbus.common.resources.seed_management import (
    CORDONED_BY,
    DEFAULT_PRIORITY,
    MARKED_FOR_REMOVAL,
    PRIORITY,
    PROTECT_FROM_DELETION,
    REVISION_LABEL,
    SEED_REGISTERED,
)
from gardenbus.common.resources.seeds import BACKUP_BUCKETS_READY, GARDENLET_READY, SEED_SYSTEM_COMPONENTS_HEALTHY
from gardenbus.common.resources.shoot_status import PROGRESSING_STATUS, UNHEALTHY, WORST_FIRST

_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
_SETTLED = ("Create", "Reconcile", "Restore")


class Stage(IntEnum):
    """Where a replica is on its way; the lower goes first when a set shrinks."""

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
    """One replica as it stood. `usage`: how many shoots are on its Seed, those moving to or from it included.

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
        """Whether something of it is being deleted already."""
        return self.stage in LEAVING

    @property
    def shoot_generation(self) -> int:
        """The generation of its Shoot."""
        return int(section(self.shoot, "metadata").get("generation") or 0)

    @property
    def shoot_failed(self) -> bool:
        """Whether its Shoot's reconciliation has failed, and nothing was changed since."""
        return _stage_of_shoot(self.shoot) == Stage.SHOOT_RECONCILE_FAILED

    @property
    def shoot_settled(self) -> bool:
        """Whether its Shoot was reconciled with success, and nothing was changed since."""
        return _stage_of_shoot(self.shoot) == Stage.SHOOT_RECONCILED

    @property
    def seed_ready(self) -> bool:
        """Whether its Seed is there and all that is known of it is well."""
        return self.seed is not None and seed_is_ready(self.seed)

    @property
    def hears(self) -> bool:
        """Whether the gardenlet of its Seed is there to let shoots go, even if it has yet to see the newest spec."""
        seed = self.seed or {}
        return not is_deleting(seed) and condition_status(conditions_of(seed), GARDENLET_READY) == TRUE

    @property
    def health(self) -> int:
        """How well its Shoot is, the worst being 0: unhealthy, unknown, progressing, healthy."""
        label = str(section(self.shoot, "metadata", "labels").get(STATUS_LABEL) or PROGRESSING_STATUS)
        return WORST_FIRST.index(label if label in WORST_FIRST else UNHEALTHY)

    @property
    def is_healthy(self) -> bool:
        """Whether its Shoot is healthy."""
        return self.health == len(WORST_FIRST) - 1

    @property
    def is_ready(self) -> bool:
        """Whether it does what it is there for."""
        return self.stage == Stage.MANAGED_SEED_REGISTERED and self.seed_ready and self.is_healthy

    @property
    def is_protected(self) -> bool:
        """Whether it must not be removed."""
        return self.is_foreign or any(
            section(document or {}, "metadata", "annotations").get(PROTECT_FROM_DELETION) == "true"
            for document in (self.shoot, self.managed_seed)
        )

    @property
    def stated_priority(self) -> Any:
        """The annotation as it is written, on its ManagedSeed or else on its Shoot; None without."""
        for document in (self.managed_seed, self.shoot):
            stated = section(document or {}, "metadata", "annotations").get(PRIORITY)
            if stated is not None:
                return stated
        return None

    @property
    def has_invalid_priority(self) -> bool:
        """Whether the annotation is no integer."""
        stated = self.stated_priority
        return stated is not None and not (isinstance(stated, str) and _INTEGER.fullmatch(stated.strip()))

    @property
    def priority(self) -> int:
        """The lower goes first when the set shrinks; 3 unless stated."""
        stated = self.stated_priority
        return DEFAULT_PRIORITY if stated is None or self.has_invalid_priority else int(stated)

    @property
    def shoot_revision(self) -> str:
        """The hash of the templates that its Shoot was made from; "" when nobody knows."""
        return str(section(self.shoot, "metadata", "labels").get(REVISION_LABEL) or "")

    @property
    def managed_seed_revision(self) -> str:
        """The same of its ManagedSeed."""
        return str(section(self.managed_seed or {}, "metadata", "labels").get(REVISION_LABEL) or "")

    def is_at(self, revision: str) -> bool:
        """Whether all of it was made from these templates."""
        return self.shoot_revision == revision and (
            self.managed_seed is None or self.is_foreign or self.managed_seed_revision == revision
        )

    @property
    def mark(self) -> str:
        """Who marked its Seed for removal; "" when nobody has."""
        return str(section(self.seed or {}, "metadata", "annotations").get(MARKED_FOR_REMOVAL) or "")

    @property
    def cordon(self) -> str:
        """Which set cordoned its Seed; "" when none has."""
        return str(section(self.seed or {}, "metadata", "annotations").get(CORDONED_BY) or "")

    @property
    def is_visible(self) -> bool:
        """Whether the scheduler may use its Seed."""
        return section(self.seed or {}, "spec", "settings", "scheduling").get("visible") is not False

    @property
    def unschedulable(self) -> str:
        """What the scheduler said when it found no seed for its Shoot; "" when it has one, or was not looked at yet."""
        operation = section(self.shoot, "status", "lastOperation")
        if section(self.shoot, "spec").get("seedName") or is_deleting(self.shoot):
            return ""
        refused = operation.get("type") == "Create" and operation.get("state") == "Pending"
        return str(operation.get("description") or "") if refused else ""


def seed_is_ready(seed: Document) -> bool:
    """Whether a Seed's generation was observed, it is not deleting, and gardenlet, components and backups are well."""
    conditions = conditions_of(seed)
    return (
        is_observed(seed)
        and not is_deleting(seed)
        and condition_status(conditions, GARDENLET_READY) == TRUE
        and condition_status(conditions, SEED_SYSTEM_COMPONENTS_HEALTHY) == TRUE
        and condition_status(conditions, BACKUP_BUCKETS_READY) in ("", TRUE)
    )


def is_deleting(document: Document) -> bool:
    """Whether its deletion was asked for."""
    return bool(section(document, "metadata").get("deletionTimestamp"))


def is_observed(document: Document) -> bool:
    """Whether whoever is in charge of it has seen its current spec."""
    return section(document, "metadata").get("generation") == section(document, "status").get("observedGeneration")


def _stage_of_shoot(shoot: Document) -> Stage:
    operation: Mapping[str, Any] = section(shoot, "status", "lastOperation")
    kind, state = operation.get("type"), operation.get("state")
    has_failed = is_observed(shoot) and state == "Failed"
    if is_deleting(shoot):
        return Stage.SHOOT_DELETE_FAILED if has_failed and kind == "Delete" else Stage.SHOOT_DELETING
    if has_failed:
        return Stage.SHOOT_RECONCILE_FAILED
    if is_observed(shoot) and state == "Succeeded" and kind in _SETTLED:
        return Stage.SHOOT_RECONCILED
    return Stage.SHOOT_RECONCILING


def _stage_of_managed_seed(managed_seed: Document) -> Stage:
    if is_deleting(managed_seed):
        return Stage.MANAGED_SEED_DELETING
    registered = condition_status(conditions_of(managed_seed), SEED_REGISTERED) == TRUE
    return Stage.MANAGED_SEED_REGISTERED if registered and is_observed(managed_seed) else Stage.MANAGED_SEED_PREPARING
