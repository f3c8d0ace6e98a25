"""What one replica is waited for, and what is done about it, in Gardener's order of precedence.

| what is found                                | while the set grows or stands           | while it shrinks |
|----------------------------------------------|-----------------------------------------|------------------|
| the Shoot's reconciliation has failed        | retry, at most so many times, then wait | nothing          |
| the Shoot's deletion has failed              | retry, at most so many times, then wait | the same         |
| Shoot reconciling                            | wait                                    | nothing          |
| Shoot deleting                               | wait                                    | wait             |
| Shoot reconciled, no ManagedSeed             | create the ManagedSeed                  | nothing          |
| ManagedSeed preparing                        | wait                                    | nothing          |
| ManagedSeed deleting                         | wait                                    | wait             |
| Seed not ready                               | wait                                    | nothing          |
| Shoot not healthy                            | wait                                    | nothing          |

Nothing: the replica does not hold the set up. Which one is removed is decided in `shrinking`.
Source: Gardener's `managedseedset/actuator.go`.
"""

from typing import Any

import msgspec

from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.managed_seed_sets import replica_managed_seed, replica_shoot, with_templates
from gardenbus.managedseedset.decide.actions import Action, Apply, MarkSeed, Patch, SetEvent
from gardenbus.managedseedset.decide.memory import DELETION, RECONCILIATION, Record, Retry, asked_again
from gardenbus.managedseedset.decide.replicas import Replica, Stage, is_deleting

SHOOT_RECONCILING = "ShootReconciling"
SHOOT_DELETING = "ShootDeleting"
SHOOT_RECONCILE_FAILED = "ShootReconcileFailed"
SHOOT_DELETE_FAILED = "ShootDeleteFailed"
MANAGED_SEED_PREPARING = "ManagedSeedPreparing"
MANAGED_SEED_DELETING = "ManagedSeedDeleting"
SEED_NOT_READY = "SeedNotReady"
SHOOT_NOT_HEALTHY = "ShootNotHealthy"
SEED_DRAINING = "SeedDraining"
"""Ours: the shoots on its Seed are being moved away, so that it can go."""

REMOVING = frozenset({SHOOT_DELETING, SHOOT_DELETE_FAILED, MANAGED_SEED_DELETING})
RETRY = {"gardener.cloud/operation": "retry"}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """The set waits for a replica: why, and what is done meanwhile.

    `event` is told when the reason is new, `record` replaces what is remembered of the replica. `removes`: it is on
    its way out by this set's own decision. `after_seconds`: when to look again, if sooner than usual.
    """

    name: str
    reason: str
    event: SetEvent | None = None
    actions: tuple[Action, ...] = ()
    retries: int | None = None
    record: Record | None = None
    removes: bool = False
    after_seconds: float | None = None


class Making(msgspec.Struct, frozen=True, kw_only=True):
    """What replicas are made from. `max_retries`: how often a failed operation of a Shoot is asked to go on."""

    managed_seed_set: Document
    generation: int
    templates: dict[str, Document]
    update: str
    max_retries: int

    def shoot(self, name: str, revision: str) -> Document:
        """The manifest of a replica's Shoot, from the templates of a revision."""
        return replica_shoot(self._at(revision), name, revision=revision)

    def managed_seed(self, name: str, revision: str) -> Document:
        """The manifest of its ManagedSeed."""
        return replica_managed_seed(self._at(revision), name, revision=revision)

    def _at(self, revision: str) -> Document:
        return with_templates(self.managed_seed_set, self.templates[revision])


def step_for(replica: Replica, record: Record, making: Making, *, shrinking: bool = False) -> Step | None:
    """What the set has to wait for in a replica; None when there is nothing. See the module."""
    stage = replica.stage
    if stage == Stage.SHOOT_DELETE_FAILED:
        return _retried(replica, record, making, DELETION)
    if stage == Stage.SHOOT_DELETING:
        message = f"Waiting for shoot {replica.name} to be deleted"
        return _waiting(replica, SHOOT_DELETING, SetEvent("WaitingForShootDeleted", message), record)
    if stage == Stage.MANAGED_SEED_DELETING:
        return _managed_seed_deleting(replica)
    if shrinking:
        return None
    if replica.shoot_failed:
        return _retried(replica, record, making, RECONCILIATION)
    if stage == Stage.SHOOT_RECONCILING:
        message = f"Waiting for shoot {replica.name} to be reconciled"
        return _waiting(replica, SHOOT_RECONCILING, SetEvent("WaitingForShootReconciled", message), record)
    if stage == Stage.SHOOT_RECONCILED:
        return _managed_seed_created(replica, making)
    return _unready(replica)


def _unready(replica: Replica) -> Step | None:
    name = replica.name
    if replica.stage == Stage.MANAGED_SEED_PREPARING:
        event = SetEvent("WaitingForManagedSeedRegistered", f"Waiting for managed seed {name} to be registered")
        return _waiting(replica, MANAGED_SEED_PREPARING, event)
    if not replica.seed_ready:
        return _waiting(
            replica, SEED_NOT_READY, SetEvent("WaitingForSeedReady", f"Waiting for seed {name} to be ready")
        )
    if not replica.is_healthy:
        event = SetEvent("WaitingForShootHealthy", f"Waiting for shoot {name} to be healthy")
        return _waiting(replica, SHOOT_NOT_HEALTHY, event)
    return None


def _waiting(replica: Replica, reason: str, event: SetEvent, record: Record | None = None) -> Step:
    """A retry that is under way is still counted while its outcome is awaited."""
    retry = record.retry if record is not None else None
    return Step(name=replica.name, reason=reason, event=event, retries=retry.retries if retry else None)


def _managed_seed_deleting(replica: Replica) -> Step:
    event = SetEvent("WaitingForManagedSeedDeleted", f"Waiting for managed seed {replica.name} to be deleted")
    step = _waiting(replica, MANAGED_SEED_DELETING, event)
    late = replica.seed is not None and not replica.mark and not replica.usage and not is_deleting(replica.seed)
    if late and not replica.is_foreign:  # it was registered while its ManagedSeed was being deleted
        return msgspec.structs.replace(step, actions=(MarkSeed(seed=replica.name, marked=True),))
    return step


def _managed_seed_created(replica: Replica, making: Making) -> Step:
    revision = replica.shoot_revision if replica.shoot_revision in making.templates else making.update
    event = SetEvent("CreatingManagedSeed", f"Creating managed seed {replica.name}")
    action = Apply(document=making.managed_seed(replica.name, revision), event=event)
    return Step(name=replica.name, reason=MANAGED_SEED_PREPARING, actions=(action,))


def _retried(replica: Replica, record: Record, making: Making, operation: str) -> Step:
    retry = asked_again(record.retry, operation, replica, making.generation, making.max_retries)
    deleting = operation == DELETION
    word, noun = ("ShootDeletion", "deletion") if deleting else ("ShootReconciliation", "reconciliation")
    known: dict[str, Any] = {"name": replica.name, "retries": retry.retries, "record": _with(record, retry)}
    if retry.exhausted:
        message = f"Not retrying the {noun} of shoot {replica.name} after {retry.retries} retries"
        reason = SHOOT_DELETE_FAILED if deleting else SHOOT_RECONCILE_FAILED
        return Step(reason=reason, event=SetEvent(f"NotRetrying{word}", message), **known)
    message = f"Retrying the {noun} of shoot {replica.name} (retry {retry.retries} of {making.max_retries})"
    action = Patch(key=shoot_key(replica), patch=_retry(replica), event=SetEvent(f"Retrying{word}", message))
    return Step(reason=SHOOT_DELETING if deleting else SHOOT_RECONCILING, actions=(action,), **known)


def _retry(replica: Replica) -> Document:
    """Only while the Shoot is as it was seen: two retries would raise its generation twice."""
    metadata = replica.shoot["metadata"]
    seen = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return {"metadata": {**seen, "annotations": RETRY}}


def _with(record: Record, retry: Retry) -> Record:
    return msgspec.structs.replace(record, retry=retry)


def shoot_key(replica: Replica) -> ObjectKey:
    """The key of a replica's Shoot."""
    return ObjectKey("shoot", str(replica.shoot["metadata"]["namespace"]), replica.name)


def managed_seed_key(replica: Replica) -> ObjectKey:
    """The key of its ManagedSeed."""
    return ObjectKey("managedseed", str(replica.shoot["metadata"]["namespace"]), replica.name)
