"""Reconciliation of a set: its new status, and the actions that follow.

1. The pending replica comes first. While it is being created or removed, nothing else happens: one at a time.
2. Too few: unfinished replicas are completed, then the next one is created. Its ordinal is above all earlier ones; gaps
   are not filled.
3. Too many: one is removed, or drained to be removed; those that cannot be removed are reported.
4. Otherwise, and while none can be removed: unfinished replicas are completed, changed templates are rolled out, and
   unhealthy replicas are waited for.

The intent is written to the status before it is executed (`pendingReplica`, `nextReplicaNumber`), and every action
happens only while the set is at exactly that version: an outdated decision changes nothing.
A replica that is not ready any more does not hold up others, other than in Gardener, where it stops a set from growing.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting
from gardenbus.common.api.garden.managed_seed_sets import ordinal_of, replica_name
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.ports.clock import parse_timestamp, timestamp
from gardenbus.managedseedset.domain.actions import (
    AnnotateForRemoval,
    Apply,
    Delete,
    DrainForecastNeeded,
    SetAction,
    SetDecision,
    SetEvent,
)
from gardenbus.managedseedset.domain.conditions import ConditionBuilder
from gardenbus.managedseedset.domain.rejections import REJECTION_FIELD, update_rejection
from gardenbus.managedseedset.domain.replica_history import (
    ReplicaRecord,
    decode_records,
    encode_records,
    refresh_record,
)
from gardenbus.managedseedset.domain.replica_steps import (
    REMOVING,
    SEED_DRAINING,
    SHOOT_RECONCILING,
    ReplicaFactory,
    ReplicaStep,
    step_for,
)
from gardenbus.managedseedset.domain.replicas import Replica, Stage
from gardenbus.managedseedset.domain.revisions import Revisions, plan_revisions, revision_name
from gardenbus.managedseedset.domain.rolling_update import (
    UpdateOptions,
    is_outdated,
    next_update,
    partition_of,
    update_step,
)
from gardenbus.managedseedset.domain.scale_in import (
    DrainForecast,
    ScaleInOptions,
    blocked_condition,
    scale_in,
    uncordon,
)


class ActuatorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a reconciliation."""

    max_shoot_retries: int = 3
    """Maximum number of retries of a Shoot's failed operation."""

    sync_period: timedelta = timedelta(minutes=30)
    """Maximum delay between two reconciliations of a set."""

    blocked_period: timedelta = timedelta(seconds=10)
    """The same while replicas cannot be removed: no event reports that a seed is empty."""

    drain_period: timedelta = timedelta(seconds=2)
    """The same while a seed is drained."""

    moves_at_once: int = 5
    """Number of shoots of a seed that migrate at the same time."""

    intent_lifetime: timedelta = timedelta(seconds=5)
    """Time until the ordinal of an announced replica that is missing is free again: its creation may be under way."""

    update_deadline: timedelta = timedelta(minutes=10)
    """An updated replica that is not ready for so long counts as failed."""


class ReconcileInput(msgspec.Struct, frozen=True, kw_only=True):
    """A set and all that belongs to it, read after it. `used_names`: names that no new replica can have.

    `revisions` are all ControllerRevisions of the namespace; `drains`: drain forecasts by seed.
    """

    managed_seed_set: Document
    replicas: tuple[Replica, ...]
    used_names: frozenset[str] = frozenset()
    revisions: tuple[Document, ...] = ()
    drains: Mapping[str, DrainForecast] = {}
    now: datetime

    def with_drain(self, seed: str, drain: DrainForecast) -> "ReconcileInput":
        """The same with the drain forecast of a seed."""
        return msgspec.structs.replace(self, drains={**self.drains, seed: drain})


def decide(
    inputs: ReconcileInput,
    settings: ActuatorSettings = ActuatorSettings(),  # noqa: B008
) -> SetDecision | DrainForecastNeeded:
    """Decide about a set, or request a drain forecast first. `replicas` in the order of their ordinals."""
    return _Reconciliation(inputs, settings).decision()


class _Reconciliation:
    """State of one decision under construction."""

    def __init__(self, inputs: ReconcileInput, settings: ActuatorSettings) -> None:
        self.inputs = inputs
        self.settings = settings
        self.set = inputs.managed_seed_set
        self.replicas = inputs.replicas
        metadata, spec, status = (section(self.set, part) for part in ("metadata", "spec", "status"))
        self.generation = int(metadata.get("generation") or 0)
        self.owner = f"{metadata.get('namespace')}/{metadata.get('name')}"
        self.is_deleting = is_deleting(self.set)
        replicas = spec.get("replicas")
        self.target = 0 if self.is_deleting else (replicas if isinstance(replicas, int) else 1)
        self.surplus = len(self.replicas) - self.target
        self.pending = section(status, "pendingReplica")
        self.next_number = int(status.get("nextReplicaNumber") or 0)
        history = decode_records(status)
        self.records = {
            each.name: refresh_record(history.get(each.name, ReplicaRecord()), each, self.generation)
            for each in self.replicas
        }
        in_use = {each.shoot_revision for each in self.replicas} | {
            each.managed_seed_revision for each in self.replicas
        }
        self.revisions: Revisions = plan_revisions(self.set, inputs.revisions, frozenset(in_use))
        self.factory = ReplicaFactory(
            managed_seed_set=self.set,
            generation=self.generation,
            templates=dict(self.revisions.templates),
            update=self.revisions.update,
            max_retries=settings.max_shoot_retries,
        )
        self.update_options = self._update_options()
        self.condition_builder = ConditionBuilder(self.set, inputs.now)
        self.created: str | None = None
        self.rejected = ""
        self.absent: list[ObjectKey] = []
        self.after = settings.sync_period

    def decision(self) -> SetDecision | DrainForecastNeeded:
        """The decision, or the missing input."""
        early_decision = self._missing_intent()
        if early_decision is not None:
            return early_decision
        if self.is_deleting and not self.replicas:
            return SetDecision(
                status=section(self.set, "status"), absent=tuple(self.absent), after_seconds=0.0, released=True
            )
        step = self._step()
        if isinstance(step, DrainForecastNeeded):
            return step
        self.condition_builder.recovering("")
        self.condition_builder.unschedulable(self.replicas)
        self.condition_builder.priorities(self.replicas)
        if step is not None and step.record is not None:
            self.records[step.name] = step.record
        actions = [*self._revision_actions(), *self._cleanup_actions(step), *(step.actions if step is not None else ())]
        if step is not None and step.after_seconds is not None:
            self.after = min(self.after, timedelta(seconds=step.after_seconds))
        pending, events = self._pending(step)
        return SetDecision(
            status=self._status(step, pending),
            actions=tuple(actions),
            events=(*events, *self.condition_builder.events),
            absent=tuple(self.absent),
            after_seconds=self.after.total_seconds(),
        )

    # ------------------------------------------------------------------------------------------ what is to be done

    def _step(self) -> ReplicaStep | DrainForecastNeeded | None:
        pending = self._replica(str(self.pending.get("name") or ""))
        shrinking = self.surplus > 0
        if pending is not None and (self._is_unfinished(pending) or pending.is_leaving):
            step = self._completion_step(pending, shrinking=shrinking)
            if step is not None:
                return step
        if shrinking:
            step = self._scale_in()
            if step is not None:
                return step
        else:
            self.condition_builder.blocked(None)
        for replica in self.replicas:
            if self._is_unfinished(replica) or (replica.is_leaving and self.surplus >= 0):
                step = self._completion_step(replica, shrinking=False)
                if step is not None:
                    return step
        if self.surplus < 0:
            return self._scale_out()
        return self._maintain()

    def _missing_intent(self) -> SetDecision | None:
        """Free the ordinal of an announced replica that does not exist, unless its creation may be under way.

        The replica must not come to exist afterwards: its absence is a precondition of the new status, and a late
        creator acts on an outdated version.
        """
        name = str(self.pending.get("name") or "")
        if not name or self._replica(name) is not None:
            return None
        namespace = str(section(self.set, "metadata").get("namespace"))
        is_used = name in self.inputs.used_names
        since = None if self.pending.get(REJECTION_FIELD) else parse_timestamp(self.pending.get("since"))
        if not is_used and self.pending.get("reason") == SHOOT_RECONCILING and since is not None and self.surplus < 0:
            left = self.settings.intent_lifetime - (self.inputs.now - since)
            if timedelta() < left <= self.settings.intent_lifetime:
                status = section(self.set, "status")
                return SetDecision(status=status, after_seconds=max(left.total_seconds(), 1.0))
        if self.pending.get(REJECTION_FIELD) and not is_used:
            self.rejected = name
        if not is_used:
            self.absent.append(ObjectKey("shoot", namespace, name))
        return None

    def _completion_step(self, replica: Replica, *, shrinking: bool) -> ReplicaStep | None:
        """The step of an unfinished replica; changed templates reach it at once, which may repair it."""
        outdated = not replica.is_leaving and is_outdated(replica, self.update_options)
        if outdated and not shrinking and not self.update_options.rejected:
            return update_step(replica, self.records, self.update_options)
        return step_for(replica, self.records[replica.name], self.factory, shrinking=shrinking)

    def _scale_in(self) -> ReplicaStep | DrainForecastNeeded | None:
        leaving = next((replica for replica in self.replicas if replica.is_leaving), None)
        if leaving is not None:  # it counts already
            return step_for(leaving, self.records[leaving.name], self.factory, shrinking=True)
        reason = self.pending.get("reason")
        chosen = str(self.pending.get("name") or "") if reason in REMOVING or reason == SEED_DRAINING else ""
        scale_in_result = scale_in(
            self.replicas,
            ScaleInOptions(
                owner=self.owner,
                surplus=self.surplus,
                first=chosen,
                drain=section(self.set, "spec", "scaleIn").get("drain") is True,
                drains=self.inputs.drains,
                max_moves=self.settings.moves_at_once,
                poll_seconds=self.settings.drain_period.total_seconds(),
            ),
        )
        if isinstance(scale_in_result, DrainForecastNeeded):
            return scale_in_result
        if scale_in_result.step is None:
            self.after = self.settings.blocked_period
            self.condition_builder.blocked(blocked_condition(scale_in_result.obstacles, self.surplus))
        else:
            self.condition_builder.blocked(None)
        if chosen and reason == SEED_DRAINING:
            self._report_stopped_drain(
                chosen, [each.message for each in scale_in_result.obstacles if each.name == chosen]
            )
        return scale_in_result.step

    def _report_stopped_drain(self, seed: str, obstacles: Sequence[str]) -> None:
        for message in obstacles:
            self.condition_builder.events.append(
                SetEvent("DrainStopped", f"Not draining {seed} any more: {message}", "Warning")
            )

    def _scale_out(self) -> ReplicaStep:
        number = max([self.next_number, *(replica.ordinal + 1 for replica in self.replicas)])
        if self.rejected and ordinal_of(self.rejected) == number - 1:  # it was never created
            number -= 1
        while replica_name(self.set, number) in self.inputs.used_names:
            number += 1
        name = replica_name(self.set, number)
        old = self.revisions.current if number < self.update_options.partition else self.revisions.update
        event = SetEvent("CreatingShoot", f"Creating shoot {name}")
        self.created = name
        self.next_number = number + 1
        action = Apply(document=self.factory.shoot(name, old), event=event, creates=name)
        return ReplicaStep(name=name, reason=SHOOT_RECONCILING, actions=(action,))

    def _maintain(self) -> ReplicaStep | None:
        update = next_update(self.replicas, self.records, self.update_options)
        self.condition_builder.progress(update.progress)
        if update.step is not None:
            self.after = min(self.after, self.settings.update_deadline)
            return update.step
        for replica in self.replicas:
            step = step_for(replica, self.records[replica.name], self.factory)
            if step is not None:
                return step
        return None

    # ------------------------------------------------------------------------------------------ what goes with it

    def _revision_actions(self) -> list[SetAction]:
        stored = [Apply(document=document) for document in self.revisions.apply]
        return [*stored, *(Delete(key=key) for key in self.revisions.drop)]

    def _cleanup_actions(self, step: ReplicaStep | None) -> list[SetAction]:
        """Remove this set's annotations and cordons from seeds that are no longer to be removed."""
        removing = step.name if step is not None and step.removes else ""
        actions: list[SetAction] = []
        for replica in self.replicas:
            if replica.name == removing or replica.is_leaving or replica.seed is None or is_deleting(replica.seed):
                continue
            if replica.removal_owner == self.owner:
                message = f"Seed {replica.name} stays: it takes shoots again"
                actions.append(
                    AnnotateForRemoval(seed=replica.name, annotated=False, event=SetEvent("UnmarkingSeed", message))
                )
            if replica.cordon_owner == self.owner:
                actions.append(uncordon(replica.name))
        return actions

    def _pending(self, step: ReplicaStep | None) -> tuple[Document | None, tuple[SetEvent, ...]]:
        """The pending replica to be written, with a new time when name or reason differ."""
        if step is None:
            return None, ()
        wanted: Document = {"name": step.name, "reason": step.reason}
        if step.retries is not None:
            wanted["retries"] = step.retries
        events = (step.event,) if step.event is not None else ()
        if all(
            self.pending.get(field) == wanted.get(field) for field in ("name", "reason", "retries", REJECTION_FIELD)
        ):
            return self.pending, events if step.after_seconds is None else ()  # polled steps record their event once
        return {**wanted, "since": timestamp(self.inputs.now)}, events

    def _status(self, step: ReplicaStep | None, pending: Document | None) -> Document:
        replicas, revisions = self.replicas, self.revisions
        removing = step.name if step is not None and step.removes and step.reason != SEED_DRAINING else ""
        outdated = [each for each in replicas if not each.is_at(revisions.update)]
        current = revisions.current if outdated else revisions.update
        at_update = len(replicas) - len(outdated) + (self._is_new_at(revisions.update))
        at_current = sum(each.is_at(current) for each in replicas) + self._is_new_at(current)
        status: Document = {
            **section(self.set, "status"),
            "observedGeneration": self.generation,
            "replicas": len(replicas) + (self.created is not None),
            "readyReplicas": sum(each.is_ready and each.name != removing for each in replicas),
            "nextReplicaNumber": self._next_number(),
            "currentReplicas": at_current,
            "updatedReplicas": at_update,
            "currentRevision": revision_name(self.set, current),
            "updateRevision": revision_name(self.set, revisions.update),
            "collisionCount": revisions.collision_count,
            "replicaRecords": encode_records(self.records),
            "conditions": self.condition_builder.conditions,
            "pendingReplica": pending,
        }
        return {name: value for name, value in status.items() if value not in (None, {}, [])}

    def _next_number(self) -> int:
        """Above every ordinal that was ever used, also by replicas that were adopted."""
        return max([self.next_number, *(replica.ordinal + 1 for replica in self.replicas)])

    def _is_new_at(self, revision: str) -> int:
        if self.created is None:
            return 0
        old = ordinal_of(self.created) < self.update_options.partition
        return int(revision == (self.revisions.current if old else self.revisions.update))

    # ------------------------------------------------------------------------------------------ what is known

    def _update_options(self) -> UpdateOptions:
        since = parse_timestamp(self.pending.get("since"))
        name = str(self.pending.get("name") or "")
        return UpdateOptions(
            factory=self.factory,
            partition=partition_of(self.set),
            pending_since={name: since} if since is not None else {},
            now=self.inputs.now,
            deadline=self.settings.update_deadline,
            rejected=update_rejection(self.set, self.inputs.now, self.settings.sync_period),
        )

    def _replica(self, name: str) -> Replica | None:
        return next((replica for replica in self.replicas if replica.name == name), None)

    def _is_unfinished(self, replica: Replica) -> bool:
        """True if it was never ready yet, or needs a new ManagedSeed."""
        without = replica.stage < Stage.MANAGED_SEED_PREPARING and not replica.is_leaving
        return without or (not self.records[replica.name].established and not replica.is_leaving)
