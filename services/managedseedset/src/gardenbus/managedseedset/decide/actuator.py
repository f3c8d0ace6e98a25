"""One look at a set: what to write into its status, and what to do then.

1. The pending replica comes first. While it is in the making, or on its way out, nothing else happens: one at a time.
2. Too few: whatever else is in the making is finished, then the next replica is made. Its ordinal is above all that
   ever were; gaps are not filled.
3. Too many: one is removed, or drained to be removed; those that cannot go are told of.
4. Otherwise, and while none can go: what is in the making or leaving is finished, changed templates are carried on, and
   replicas that are not well are waited for.

The intent stands in the status before it is acted upon (`pendingReplica`, `nextReplicaNumber`), and every action
happens only while the set is at exactly that version: whoever acts on an older look changes nothing.
A replica that is not ready any more does not hold up others, other than in Gardener, where it stops a set from growing.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.managed_seed_sets import ordinal_of, replica_name
from gardenbus.managedseedset.decide.actions import Action, Apply, Decision, Delete, DrainUnknown, MarkSeed, SetEvent
from gardenbus.managedseedset.decide.memory import Record, records_of, refreshed, written
from gardenbus.managedseedset.decide.refusals import REFUSED, instant, refusal_of
from gardenbus.managedseedset.decide.replicas import Replica, Stage, is_deleting
from gardenbus.managedseedset.decide.revisions import Revisions, name_of, plan_revisions
from gardenbus.managedseedset.decide.shrinking import Drain, Shrinking, shrink, told, uncordon
from gardenbus.managedseedset.decide.steps import (
    REMOVING,
    SEED_DRAINING,
    SHOOT_RECONCILING,
    Making,
    Step,
    step_for,
)
from gardenbus.managedseedset.decide.telling import Telling
from gardenbus.managedseedset.decide.updating import (
    Updating,
    is_outdated,
    next_update,
    partition_of,
    update_step,
)


class ActuatorSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What may be configured of a look."""

    max_shoot_retries: int = 3
    """How often a Shoot's failed operation is asked to go on."""

    sync_period: timedelta = timedelta(minutes=30)
    """A set is looked at again after this time at the latest."""

    blocked_period: timedelta = timedelta(seconds=10)
    """The same while replicas cannot go: that seeds become empty is not announced."""

    drain_period: timedelta = timedelta(seconds=2)
    """The same while a seed is drained."""

    moves_at_once: int = 5
    """How many shoots of a seed move at the same time."""

    intent_lifetime: timedelta = timedelta(seconds=5)
    """So long somebody may be about to make the replica that the status announces; then its ordinal is given up."""

    update_deadline: timedelta = timedelta(minutes=10)
    """An updated replica that is not well for so long counts as failed."""


class World(msgspec.Struct, frozen=True, kw_only=True):
    """A set and everything about it, as read after it. `taken`: names that no new replica can have.

    `revisions` are all ControllerRevisions of the namespace; `drains`: what is known of draining, by seed.
    """

    managed_seed_set: Document
    replicas: tuple[Replica, ...]
    taken: frozenset[str] = frozenset()
    revisions: tuple[Document, ...] = ()
    drains: Mapping[str, Drain] = {}
    now: datetime

    def with_drain(self, seed: str, drain: Drain) -> "World":
        """The same, with what is known of draining a seed."""
        return msgspec.structs.replace(self, drains={**self.drains, seed: drain})


def decide(world: World, settings: ActuatorSettings = ActuatorSettings()) -> Decision | DrainUnknown:  # noqa: B008
    """Look at a set once; `DrainUnknown` asks for more to be read first. `replicas` in the order of their ordinals."""
    return _Look(world, settings).decision()


class _Look:
    """One look: what is known, and what is collected for the decision."""

    def __init__(self, world: World, settings: ActuatorSettings) -> None:
        self.world = world
        self.settings = settings
        self.set = world.managed_seed_set
        self.replicas = world.replicas
        metadata, spec, status = (section(self.set, part) for part in ("metadata", "spec", "status"))
        self.generation = int(metadata.get("generation") or 0)
        self.owner = f"{metadata.get('namespace')}/{metadata.get('name')}"
        self.is_deleting = is_deleting(self.set)
        replicas = spec.get("replicas")
        self.target = 0 if self.is_deleting else (replicas if isinstance(replicas, int) else 1)
        self.surplus = len(self.replicas) - self.target
        self.pending = section(status, "pendingReplica")
        self.next_number = int(status.get("nextReplicaNumber") or 0)
        known = records_of(status)
        self.records = {
            each.name: refreshed(known.get(each.name, Record()), each, self.generation) for each in self.replicas
        }
        in_use = {each.shoot_revision for each in self.replicas} | {
            each.managed_seed_revision for each in self.replicas
        }
        self.revisions: Revisions = plan_revisions(self.set, world.revisions, frozenset(in_use))
        self.making = Making(
            managed_seed_set=self.set,
            generation=self.generation,
            templates=dict(self.revisions.templates),
            update=self.revisions.update,
            max_retries=settings.max_shoot_retries,
        )
        self.updating = self._updating()
        self.telling = Telling(self.set, world.now)
        self.created: str | None = None
        self.refused = ""
        self.absent: list[ObjectKey] = []
        self.after = settings.sync_period

    def decision(self) -> Decision | DrainUnknown:
        """What comes of it."""
        missing = self._missing_intent()
        if missing is not None:
            return missing
        if self.is_deleting and not self.replicas:
            return Decision(
                status=section(self.set, "status"), absent=tuple(self.absent), after_seconds=0.0, released=True
            )
        step = self._step()
        if isinstance(step, DrainUnknown):
            return step
        self.telling.unschedulable(self.replicas)
        self.telling.priorities(self.replicas)
        if step is not None and step.record is not None:
            self.records[step.name] = step.record
        actions = [*self._of_revisions(), *self._tidied(step), *(step.actions if step is not None else ())]
        if step is not None and step.after_seconds is not None:
            self.after = min(self.after, timedelta(seconds=step.after_seconds))
        pending, events = self._pending(step)
        return Decision(
            status=self._status(step, pending),
            actions=tuple(actions),
            events=(*events, *self.telling.events),
            absent=tuple(self.absent),
            after_seconds=self.after.total_seconds(),
        )

    # ------------------------------------------------------------------------------------------ what is to be done

    def _step(self) -> Step | DrainUnknown | None:
        pending = self._replica(str(self.pending.get("name") or ""))
        shrinking = self.surplus > 0
        if pending is not None and (self._in_making(pending) or pending.is_leaving):
            step = self._finished(pending, shrinking=shrinking)
            if step is not None:
                return step
        if shrinking:
            step = self._shrunk()
            if step is not None:
                return step
        else:
            self.telling.blocked(None)
        for replica in self.replicas:
            if self._in_making(replica) or (replica.is_leaving and self.surplus >= 0):
                step = self._finished(replica, shrinking=False)
                if step is not None:
                    return step
        if self.surplus < 0:
            return self._grown()
        return self._maintained()

    def _missing_intent(self) -> Decision | None:
        """The replica that is waited for is not there: give it up, unless somebody may be about to make it.

        What is given up must not come to be afterwards: it may not exist when the new status is written, and whoever is
        late acts on a status that is no more.
        """
        name = str(self.pending.get("name") or "")
        if not name or self._replica(name) is not None:
            return None
        namespace = str(section(self.set, "metadata").get("namespace"))
        is_taken = name in self.world.taken
        since = None if self.pending.get(REFUSED) else instant(self.pending.get("since"))
        if not is_taken and self.pending.get("reason") == SHOOT_RECONCILING and since is not None and self.surplus < 0:
            left = self.settings.intent_lifetime - (self.world.now - since)
            if timedelta() < left <= self.settings.intent_lifetime:
                status = section(self.set, "status")
                return Decision(status=status, after_seconds=max(left.total_seconds(), 1.0))
        if self.pending.get(REFUSED) and not is_taken:
            self.refused = name
        if not is_taken:
            self.absent.append(ObjectKey("shoot", namespace, name))
        return None

    def _finished(self, replica: Replica, *, shrinking: bool) -> Step | None:
        """What a replica that is not complete is waited for; changed templates reach it at once, which may mend it."""
        outdated = not replica.is_leaving and is_outdated(replica, self.updating)
        if outdated and not shrinking and not self.updating.refused:
            return update_step(replica, self.records, self.updating)
        return step_for(replica, self.records[replica.name], self.making, shrinking=shrinking)

    def _shrunk(self) -> Step | DrainUnknown | None:
        leaving = next((replica for replica in self.replicas if replica.is_leaving), None)
        if leaving is not None:  # it counts already
            return step_for(leaving, self.records[leaving.name], self.making, shrinking=True)
        reason = self.pending.get("reason")
        chosen = str(self.pending.get("name") or "") if reason in REMOVING or reason == SEED_DRAINING else ""
        shrunk = shrink(
            self.replicas,
            Shrinking(
                owner=self.owner,
                surplus=self.surplus,
                first=chosen,
                drain=section(self.set, "spec", "scaleIn").get("drain") is True,
                drains=self.world.drains,
                at_once=self.settings.moves_at_once,
                look_again_seconds=self.settings.drain_period.total_seconds(),
            ),
        )
        if isinstance(shrunk, DrainUnknown):
            return shrunk
        if shrunk.step is None:
            self.after = self.settings.blocked_period
            self.telling.blocked(told(shrunk.obstacles, self.surplus))
        else:
            self.telling.blocked(None)
        if chosen and reason == SEED_DRAINING:
            self._tell_of_stopped_drain(chosen, [each.message for each in shrunk.obstacles if each.name == chosen])
        return shrunk.step

    def _tell_of_stopped_drain(self, seed: str, obstacles: Sequence[str]) -> None:
        for message in obstacles:
            self.telling.events.append(SetEvent("DrainStopped", f"Not draining {seed} any more: {message}", "Warning"))

    def _grown(self) -> Step:
        number = max([self.next_number, *(replica.ordinal + 1 for replica in self.replicas)])
        if self.refused and ordinal_of(self.refused) == number - 1:  # it never came about
            number -= 1
        while replica_name(self.set, number) in self.world.taken:
            number += 1
        name = replica_name(self.set, number)
        old = self.revisions.current if number < self.updating.partition else self.revisions.update
        event = SetEvent("CreatingShoot", f"Creating shoot {name}")
        self.created = name
        self.next_number = number + 1
        action = Apply(document=self.making.shoot(name, old), event=event, creates=name)
        return Step(name=name, reason=SHOOT_RECONCILING, actions=(action,))

    def _maintained(self) -> Step | None:
        update = next_update(self.replicas, self.records, self.updating)
        self.telling.progress(update.progress)
        if update.step is not None:
            self.after = min(self.after, self.settings.update_deadline)
            return update.step
        for replica in self.replicas:
            step = step_for(replica, self.records[replica.name], self.making)
            if step is not None:
                return step
        return None

    # ------------------------------------------------------------------------------------------ what goes with it

    def _of_revisions(self) -> list[Action]:
        stored = [Apply(document=document) for document in self.revisions.apply]
        return [*stored, *(Delete(key=key) for key in self.revisions.drop)]

    def _tidied(self, step: Step | None) -> list[Action]:
        """Take marks and cordons of this set's back from whatever is not on its way out any more."""
        going = step.name if step is not None and step.removes else ""
        actions: list[Action] = []
        for replica in self.replicas:
            if replica.name == going or replica.is_leaving or replica.seed is None or is_deleting(replica.seed):
                continue
            if replica.mark == self.owner:
                message = f"Seed {replica.name} stays: it takes shoots again"
                actions.append(MarkSeed(seed=replica.name, marked=False, event=SetEvent("UnmarkingSeed", message)))
            if replica.cordon == self.owner:
                actions.append(uncordon(replica.name))
        return actions

    def _pending(self, step: Step | None) -> tuple[Document | None, tuple[SetEvent, ...]]:
        """The pending replica as it shall be written, with a new time when it is another, or for another reason."""
        if step is None:
            return None, ()
        wanted: Document = {"name": step.name, "reason": step.reason}
        if step.retries is not None:
            wanted["retries"] = step.retries
        events = (step.event,) if step.event is not None else ()
        if all(self.pending.get(field) == wanted.get(field) for field in ("name", "reason", "retries", REFUSED)):
            return self.pending, events if step.after_seconds is None else ()  # what is polled is told once
        return {**wanted, "since": timestamp(self.world.now)}, events

    def _status(self, step: Step | None, pending: Document | None) -> Document:
        replicas, revisions = self.replicas, self.revisions
        going = step.name if step is not None and step.removes and step.reason != SEED_DRAINING else ""
        outdated = [each for each in replicas if not each.is_at(revisions.update)]
        current = revisions.current if outdated else revisions.update
        at_update = len(replicas) - len(outdated) + (self._is_new_at(revisions.update))
        at_current = sum(each.is_at(current) for each in replicas) + self._is_new_at(current)
        status: Document = {
            **section(self.set, "status"),
            "observedGeneration": self.generation,
            "replicas": len(replicas) + (self.created is not None),
            "readyReplicas": sum(each.is_ready and each.name != going for each in replicas),
            "nextReplicaNumber": self._next_number(),
            "currentReplicas": at_current,
            "updatedReplicas": at_update,
            "currentRevision": name_of(self.set, current),
            "updateRevision": name_of(self.set, revisions.update),
            "collisionCount": revisions.collision_count,
            "replicaRecords": written(self.records),
            "conditions": self.telling.conditions,
            "pendingReplica": pending,
        }
        return {name: value for name, value in status.items() if value not in (None, {}, [])}

    def _next_number(self) -> int:
        """Above every ordinal that was ever given out, also those of replicas that were adopted."""
        return max([self.next_number, *(replica.ordinal + 1 for replica in self.replicas)])

    def _is_new_at(self, revision: str) -> int:
        if self.created is None:
            return 0
        old = ordinal_of(self.created) < self.updating.partition
        return int(revision == (self.revisions.current if old else self.revisions.update))

    # ------------------------------------------------------------------------------------------ what is known

    def _updating(self) -> Updating:
        since = instant(self.pending.get("since"))
        name = str(self.pending.get("name") or "")
        return Updating(
            making=self.making,
            partition=partition_of(self.set),
            waiting_since={name: since} if since is not None else {},
            now=self.world.now,
            deadline=self.settings.update_deadline,
            refused=refusal_of(self.set, self.world.now, self.settings.sync_period),
        )

    def _replica(self, name: str) -> Replica | None:
        return next((replica for replica in self.replicas if replica.name == name), None)

    def _in_making(self, replica: Replica) -> bool:
        """Whether it was never ready yet, or has to get its ManagedSeed anew."""
        without = replica.stage < Stage.MANAGED_SEED_PREPARING and not replica.is_leaving
        return without or (not self.records[replica.name].established and not replica.is_leaving)
