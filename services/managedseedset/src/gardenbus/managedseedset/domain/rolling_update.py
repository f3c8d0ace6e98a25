"""Rolling update of changed templates: from the highest ordinal down, one at a time.

A replica's Shoot is updated first, then, once that is reconciled, its ManagedSeed. The next replica follows when all
updated ones are ready; one that is not holds up the rest, as the condition reports.
Replicas below `rollingUpdate.partition` keep their templates.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.managedseedset.domain.actions import Apply, SetEvent
from gardenbus.managedseedset.domain.replica_history import ReplicaRecord, ReplicaRecords
from gardenbus.managedseedset.domain.replica_steps import (
    MANAGED_SEED_PREPARING,
    SHOOT_NOT_HEALTHY,
    SHOOT_RECONCILE_FAILED,
    SHOOT_RECONCILING,
    ReplicaFactory,
    ReplicaStep,
    step_for,
)
from gardenbus.managedseedset.domain.replicas import Replica

PROGRESSING = "Progressing"
UPDATE_FAILED = "UpdateFailed"
UPDATING = "Updating"
UPDATE_COMPLETE = "UpdateComplete"
PARTITIONED = "Partitioned"


class UpdateProgress(msgspec.Struct, frozen=True):
    """Progress of an update, for the condition `Progressing`."""

    status: str
    reason: str
    message: str


class UpdateResult(msgspec.Struct, frozen=True):
    """The step to wait for, if any, and the progress (None: nothing to report)."""

    step: ReplicaStep | None
    progress: UpdateProgress | None


class UpdateOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of a set's update. `pending_since`: start of the pending replica's wait, by name.

    `deadline`: an updated replica that is not ready for so long has failed; `rejected`: the reason why the update is
    not tried now.
    """

    factory: ReplicaFactory
    partition: int
    pending_since: Mapping[str, datetime]
    now: datetime
    deadline: timedelta
    rejected: str = ""


def partition_of(managed_seed_set: Document) -> int:
    """The lowest ordinal that updates reach."""
    partition = section(managed_seed_set, "spec", "updateStrategy", "rollingUpdate").get("partition")
    return partition if isinstance(partition, int) else 0


def is_outdated(replica: Replica, options: UpdateOptions) -> bool:
    """True if a replica has yet to get the newest templates."""
    return replica.ordinal >= options.partition and not replica.is_leaving and not replica.is_at(options.factory.update)


def next_update(replicas: Sequence[Replica], records: ReplicaRecords, options: UpdateOptions) -> UpdateResult:
    """The next step of the update; `replicas` in the order of their ordinals."""
    outdated = [replica for replica in reversed(replicas) if is_outdated(replica, options)]
    if not outdated:
        return UpdateResult(None, _completed(replicas, options))
    if options.rejected:
        return UpdateResult(None, UpdateProgress("False", UPDATE_FAILED, options.rejected))
    next_one = outdated[0]
    if next_one.shoot_revision != options.factory.update:
        updated = [
            each for each in replicas if each.ordinal >= options.partition and each.is_at(options.factory.update)
        ]
        unwell = [each for each in updated if not (each.is_ready and each.shoot_reconciled)]
        if unwell:
            return _blocked_update(unwell[-1], records, options, left=len(outdated))
    step = update_step(next_one, records, options)
    if step.reason == SHOOT_RECONCILE_FAILED:
        message = f"The shoot of {next_one.name} fails: {len(outdated)} of {len(replicas)} replicas are not updated"
        return UpdateResult(step, UpdateProgress("False", UPDATE_FAILED, message))
    message = f"Updating {next_one.name}; {len(outdated)} of {len(replicas)} replicas are left"
    return UpdateResult(step, UpdateProgress("True", UPDATING, message))


def update_step(replica: Replica, records: ReplicaRecords, options: UpdateOptions) -> ReplicaStep:
    """Update one replica to the newest templates: the Shoot, then the ManagedSeed."""
    factory, name = options.factory, replica.name
    if replica.shoot_revision != factory.update:
        event = SetEvent("UpdatingShoot", f"Updating shoot {name} to revision {factory.update}")
        action = Apply(document=factory.shoot(name, factory.update), event=event, updates=name)
        return ReplicaStep(name=name, reason=SHOOT_RECONCILING, actions=(action,))
    if not replica.shoot_reconciled:
        record = records.get(name, ReplicaRecord())
        failing = step_for(replica, record, factory) if replica.shoot_failed else None
        event = SetEvent("WaitingForShootReconciled", f"Waiting for shoot {name} to be reconciled")
        return failing or ReplicaStep(name=name, reason=SHOOT_RECONCILING, event=event, retries=_retries(record))
    event = SetEvent("UpdatingManagedSeed", f"Updating managed seed {name} to revision {factory.update}")
    action = Apply(document=factory.managed_seed(name, factory.update), event=event, updates=name)
    return ReplicaStep(name=name, reason=MANAGED_SEED_PREPARING, actions=(action,))


def _blocked_update(replica: Replica, records: ReplicaRecords, options: UpdateOptions, *, left: int) -> UpdateResult:
    record = records.get(replica.name, ReplicaRecord())
    step = step_for(replica, record, options.factory)
    if step is None:  # it is ready but for its Shoot's last operation, which is still running
        event = SetEvent("WaitingForShootReconciled", f"Waiting for shoot {replica.name} to be reconciled")
        step = ReplicaStep(name=replica.name, reason=SHOOT_NOT_HEALTHY, event=event)
    since = options.pending_since.get(replica.name)
    is_late = since is not None and options.now - since >= options.deadline
    given_up = step.record is not None and step.record.retry is not None and step.record.retry.exhausted
    if given_up or is_late:
        message = f"{replica.name} is not well after its update ({step.reason}): {left} replicas are not updated"
        return UpdateResult(step, UpdateProgress("False", UPDATE_FAILED, message))
    message = f"Waiting for {replica.name} to be well after its update ({step.reason}); {left} replicas are left"
    return UpdateResult(step, UpdateProgress("True", UPDATING, message))


def _completed(replicas: Sequence[Replica], options: UpdateOptions) -> UpdateProgress:
    kept = [
        replica.name for replica in replicas if not replica.is_leaving and not replica.is_at(options.factory.update)
    ]
    if kept:
        message = f"{len(kept)} replicas below the partition {options.partition} keep their templates"
        return UpdateProgress("True", PARTITIONED, message)
    return UpdateProgress("True", UPDATE_COMPLETE, "All replicas are made from the set's templates.")


def _retries(record: ReplicaRecord) -> int | None:
    return record.retry.retries if record.retry is not None else None
