"""Next step of one replica, in Gardener's order of precedence.

| state                                        | while the set grows or stays            | while it shrinks |
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

Nothing: the replica does not hold the set up. `scale_in` decides which one is removed.
Source: Gardener's `managedseedset/actuator.go`.
"""

from typing import Any

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import is_deleting
from gardenbus.common.api.garden.managed_seed_sets import replica_managed_seed, replica_shoot, with_templates
from gardenbus.common.api.keys import ObjectKey
from gardenbus.managedseedset.domain.actions import AnnotateForRemoval, Apply, Patch, SetAction, SetEvent
from gardenbus.managedseedset.domain.replica_history import DELETION, RECONCILIATION, ReplicaRecord, Retry, count_retry
from gardenbus.managedseedset.domain.replicas import Replica, Stage

SHOOT_RECONCILING = "ShootReconciling"
SHOOT_DELETING = "ShootDeleting"
SHOOT_RECONCILE_FAILED = "ShootReconcileFailed"
SHOOT_DELETE_FAILED = "ShootDeleteFailed"
MANAGED_SEED_PREPARING = "ManagedSeedPreparing"
MANAGED_SEED_DELETING = "ManagedSeedDeleting"
SEED_NOT_READY = "SeedNotReady"
SHOOT_NOT_HEALTHY = "ShootNotHealthy"
SEED_DRAINING = "SeedDraining"
"""Ours: the shoots on its Seed are being migrated, so that it can be removed."""

REMOVING = frozenset({SHOOT_DELETING, SHOOT_DELETE_FAILED, MANAGED_SEED_DELETING})
RETRY = {"gardener.cloud/operation": "retry"}


class ReplicaStep(msgspec.Struct, frozen=True, kw_only=True):
    """A replica that the set waits for, and the actions meanwhile.

    `event` is recorded when the reason is new, `record` replaces the replica's history. `removes`: this set is removing
    it. `after_seconds`: delay of the next reconciliation, if sooner than usual.
    """

    name: str
    reason: str
    event: SetEvent | None = None
    actions: tuple[SetAction, ...] = ()
    retries: int | None = None
    record: ReplicaRecord | None = None
    removes: bool = False
    after_seconds: float | None = None


class ReplicaFactory(msgspec.Struct, frozen=True, kw_only=True):
    """Manifests of replicas. `max_retries`: the maximum number of retries of a Shoot's failed operation."""

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


def step_for(
    replica: Replica, record: ReplicaRecord, factory: ReplicaFactory, *, shrinking: bool = False
) -> ReplicaStep | None:
    """The step that the set has to wait for in a replica; None when there is none. See the module."""
    stage = replica.stage
    if stage == Stage.SHOOT_DELETE_FAILED:
        return _retried(replica, record, factory, DELETION)
    if stage == Stage.SHOOT_DELETING:
        message = f"Waiting for shoot {replica.name} to be deleted"
        return _waiting(replica, SHOOT_DELETING, SetEvent("WaitingForShootDeleted", message), record)
    if stage == Stage.MANAGED_SEED_DELETING:
        return _managed_seed_deleting(replica)
    if shrinking:
        return None
    if replica.shoot_failed:
        return _retried(replica, record, factory, RECONCILIATION)
    if stage == Stage.SHOOT_RECONCILING:
        message = f"Waiting for shoot {replica.name} to be reconciled"
        return _waiting(replica, SHOOT_RECONCILING, SetEvent("WaitingForShootReconciled", message), record)
    if stage == Stage.SHOOT_RECONCILED:
        return _managed_seed_created(replica, factory)
    return _unready(replica)


def _unready(replica: Replica) -> ReplicaStep | None:
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


def _waiting(replica: Replica, reason: str, event: SetEvent, record: ReplicaRecord | None = None) -> ReplicaStep:
    """A retry under way still counts while its result is pending."""
    retry = record.retry if record is not None else None
    return ReplicaStep(name=replica.name, reason=reason, event=event, retries=retry.retries if retry else None)


def _managed_seed_deleting(replica: Replica) -> ReplicaStep:
    event = SetEvent("WaitingForManagedSeedDeleted", f"Waiting for managed seed {replica.name} to be deleted")
    step = _waiting(replica, MANAGED_SEED_DELETING, event)
    late = (
        replica.seed is not None and not replica.removal_owner and not replica.usage and not is_deleting(replica.seed)
    )
    if late and not replica.is_foreign:  # it was registered while its ManagedSeed was being deleted
        return msgspec.structs.replace(step, actions=(AnnotateForRemoval(seed=replica.name, annotated=True),))
    return step


def _managed_seed_created(replica: Replica, factory: ReplicaFactory) -> ReplicaStep:
    revision = replica.shoot_revision if replica.shoot_revision in factory.templates else factory.update
    event = SetEvent("CreatingManagedSeed", f"Creating managed seed {replica.name}")
    action = Apply(document=factory.managed_seed(replica.name, revision), event=event)
    return ReplicaStep(name=replica.name, reason=MANAGED_SEED_PREPARING, actions=(action,))


def _retried(replica: Replica, record: ReplicaRecord, factory: ReplicaFactory, operation: str) -> ReplicaStep:
    retry = count_retry(record.retry, operation, replica, factory.generation, factory.max_retries)
    deleting = operation == DELETION
    word, noun = ("ShootDeletion", "deletion") if deleting else ("ShootReconciliation", "reconciliation")
    common_fields: dict[str, Any] = {"name": replica.name, "retries": retry.retries, "record": _with(record, retry)}
    if retry.exhausted:
        message = f"Not retrying the {noun} of shoot {replica.name} after {retry.retries} retries"
        reason = SHOOT_DELETE_FAILED if deleting else SHOOT_RECONCILE_FAILED
        return ReplicaStep(reason=reason, event=SetEvent(f"NotRetrying{word}", message), **common_fields)
    message = f"Retrying the {noun} of shoot {replica.name} (retry {retry.retries} of {factory.max_retries})"
    action = Patch(key=shoot_key(replica), patch=_retry(replica), event=SetEvent(f"Retrying{word}", message))
    return ReplicaStep(reason=SHOOT_DELETING if deleting else SHOOT_RECONCILING, actions=(action,), **common_fields)


def _retry(replica: Replica) -> Document:
    """A retry on the Shoot as it was read: two retries would raise its generation twice."""
    metadata = replica.shoot["metadata"]
    seen = {name: metadata[name] for name in ("uid", "resourceVersion") if name in metadata}
    return {"metadata": {**seen, "annotations": RETRY}}


def _with(record: ReplicaRecord, retry: Retry) -> ReplicaRecord:
    return msgspec.structs.replace(record, retry=retry)


def shoot_key(replica: Replica) -> ObjectKey:
    """The key of a replica's Shoot."""
    return ObjectKey("shoot", str(replica.shoot["metadata"]["namespace"]), replica.name)


def managed_seed_key(replica: Replica) -> ObjectKey:
    """The key of its ManagedSeed."""
    return ObjectKey("managedseed", str(replica.shoot["metadata"]["namespace"]), replica.name)
