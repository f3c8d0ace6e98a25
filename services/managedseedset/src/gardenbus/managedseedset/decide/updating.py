"""How changed templates reach the replicas that are there: from the highest ordinal down, one at a time.

A replica's Shoot is brought up to the new templates first, then, once that is reconciled, its ManagedSeed. The next one
has its turn when all that were updated are well; one that is not holds up the rest, and the condition says so.
Replicas below `rollingUpdate.partition` keep the templates that they have.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from gardenbus.common.resources.document import Document, section
from gardenbus.managedseedset.decide.actions import Apply, SetEvent
from gardenbus.managedseedset.decide.memory import Record, Records
from gardenbus.managedseedset.decide.replicas import Replica
from gardenbus.managedseedset.decide.steps import (
    MANAGED_SEED_PREPARING,
    SHOOT_NOT_HEALTHY,
    SHOOT_RECONCILE_FAILED,
    SHOOT_RECONCILING,
    Making,
    Step,
    step_for,
)

PROGRESSING = "Progressing"
UPDATE_FAILED = "UpdateFailed"
UPDATING = "Updating"
UPDATE_COMPLETE = "UpdateComplete"
PARTITIONED = "Partitioned"


class Progress(msgspec.Struct, frozen=True):
    """How an update goes, as the condition `Progressing` tells it."""

    status: str
    reason: str
    message: str


class Update(msgspec.Struct, frozen=True):
    """What to wait for, if anything, and how it goes (None: there is nothing to tell)."""

    step: Step | None
    progress: Progress | None


class Updating(msgspec.Struct, frozen=True, kw_only=True):
    """How a set updates. `waiting_since`: since when the pending replica is waited for, by name.

    `deadline`: an updated replica that is not well for so long has failed; `refused`: why the update is not tried now.
    """

    making: Making
    partition: int
    waiting_since: Mapping[str, datetime]
    now: datetime
    deadline: timedelta
    refused: str = ""


def partition_of(managed_seed_set: Document) -> int:
    """The lowest ordinal that updates reach."""
    partition = section(managed_seed_set, "spec", "updateStrategy", "rollingUpdate").get("partition")
    return partition if isinstance(partition, int) else 0


def is_outdated(replica: Replica, how: Updating) -> bool:
    """Whether the newest templates have yet to reach a replica."""
    return replica.ordinal >= how.partition and not replica.is_leaving and not replica.is_at(how.making.update)


def next_update(replicas: Sequence[Replica], records: Records, how: Updating) -> Update:
    """Carry the update one step on; `replicas` in the order of their ordinals."""
    outdated = [replica for replica in reversed(replicas) if is_outdated(replica, how)]
    if not outdated:
        return Update(None, _completed(replicas, how))
    if how.refused:
        return Update(None, Progress("False", UPDATE_FAILED, how.refused))
    next_one = outdated[0]
    if next_one.shoot_revision != how.making.update:
        updated = [each for each in replicas if each.ordinal >= how.partition and each.is_at(how.making.update)]
        unwell = [each for each in updated if not (each.is_ready and each.shoot_settled)]
        if unwell:
            return _held_up(unwell[-1], records, how, left=len(outdated))
    step = update_step(next_one, records, how)
    if step.reason == SHOOT_RECONCILE_FAILED:
        message = f"The shoot of {next_one.name} fails: {len(outdated)} of {len(replicas)} replicas are not updated"
        return Update(step, Progress("False", UPDATE_FAILED, message))
    message = f"Updating {next_one.name}; {len(outdated)} of {len(replicas)} replicas are left"
    return Update(step, Progress("True", UPDATING, message))


def update_step(replica: Replica, records: Records, how: Updating) -> Step:
    """Bring one replica up to the newest templates: the Shoot, then the ManagedSeed."""
    making, name = how.making, replica.name
    if replica.shoot_revision != making.update:
        event = SetEvent("UpdatingShoot", f"Updating shoot {name} to revision {making.update}")
        action = Apply(document=making.shoot(name, making.update), event=event, updates=name)
        return Step(name=name, reason=SHOOT_RECONCILING, actions=(action,))
    if not replica.shoot_settled:
        record = records.get(name, Record())
        failing = step_for(replica, record, making) if replica.shoot_failed else None
        event = SetEvent("WaitingForShootReconciled", f"Waiting for shoot {name} to be reconciled")
        return failing or Step(name=name, reason=SHOOT_RECONCILING, event=event, retries=_retries(record))
    event = SetEvent("UpdatingManagedSeed", f"Updating managed seed {name} to revision {making.update}")
    action = Apply(document=making.managed_seed(name, making.update), event=event, updates=name)
    return Step(name=name, reason=MANAGED_SEED_PREPARING, actions=(action,))


def _held_up(replica: Replica, records: Records, how: Updating, *, left: int) -> Update:
    record = records.get(replica.name, Record())
    step = step_for(replica, record, how.making)
    if step is None:  # it is well but for its Shoot's last operation, which is still running
        event = SetEvent("WaitingForShootReconciled", f"Waiting for shoot {replica.name} to be reconciled")
        step = Step(name=replica.name, reason=SHOOT_NOT_HEALTHY, event=event)
    since = how.waiting_since.get(replica.name)
    is_late = since is not None and how.now - since >= how.deadline
    given_up = step.record is not None and step.record.retry is not None and step.record.retry.exhausted
    if given_up or is_late:
        message = f"{replica.name} is not well after its update ({step.reason}): {left} replicas are not updated"
        return Update(step, Progress("False", UPDATE_FAILED, message))
    message = f"Waiting for {replica.name} to be well after its update ({step.reason}); {left} replicas are left"
    return Update(step, Progress("True", UPDATING, message))


def _completed(replicas: Sequence[Replica], how: Updating) -> Progress:
    kept = [replica.name for replica in replicas if not replica.is_leaving and not replica.is_at(how.making.update)]
    if kept:
        message = f"{len(kept)} replicas below the partition {how.partition} keep their templates"
        return Progress("True", PARTITIONED, message)
    return Progress("True", UPDATE_COMPLETE, "All replicas are made from the set's templates.")


def _retries(record: Record) -> int | None:
    return record.retry.retries if record.retry is not None else None
