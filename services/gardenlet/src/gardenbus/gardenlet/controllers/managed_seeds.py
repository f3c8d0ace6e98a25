"""Reconciler of ManagedSeeds: performs one action a pass, as planned by `domain.managed_seeds`.

| observed    | deployed              | action                                                             |
|-------------|-----------------------|--------------------------------------------------------------------|
| ManagedSeed | anything              | the planned action                                                 |
| tombstone   | something             | remove it: the shoot moved away, or the ManagedSeed was deleted    |
| tombstone   | nothing               | confirm the deletion, so that the tombstone is purged              |
| nothing     | something             | keep it, and query the ManagedSeed                                 |
| unconfirmed | nothing               | query it: a purged message may have come back                      |
"""

import random
from datetime import timedelta
from typing import NamedTuple, assert_never

import msgspec
import structlog

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.controller.backoff import Backoff
from gardenbus.common.errors import GardenbusError
from gardenbus.gardenlet.backend.installed import installed_backends
from gardenbus.gardenlet.clients.managed_gardenlets import ManagedGardenlets
from gardenbus.gardenlet.domain.deployments import GardenletDeployment, is_bootstrapped
from gardenbus.gardenlet.domain.managed_seeds import (
    DELETED,
    CannotReconcile,
    DeleteBackupSecret,
    DeleteGardenlet,
    DeleteNamespace,
    DeleteSeed,
    DeployGardenlet,
    DesiredCondition,
    HostShootState,
    ManagedSeedPlan,
    ManagedSeedSnapshot,
    NoAction,
    RegisterSeed,
    enqueue_delay,
    is_held,
    is_reconciled,
    plan_managed_seed,
    reconcile_error,
    status_patch,
)
from gardenbus.gardenlet.domain.shoot_record import ShootName
from gardenbus.gardenlet.domain.shoot_status import without_times
from gardenbus.gardenlet.seed import ServedSeed
from gardenbus.gardenlet.watch.binding_cache import MANAGED_SEED, Tombstone

_log = structlog.stdlib.get_logger()

QUERY_INTERVAL_SECONDS = 60.0
REPEAT_SECONDS = 30.0
INACTIVE_REQUEUE_SECONDS = 2.0
_SYNC_JITTER = 0.05
_BACKOFF = Backoff()


class _ReportedPatch(NamedTuple):
    """A reported status patch: uid of its object, patch without times, and monotonic time."""

    uid: str
    patch: Document
    at: float


class ManagedSeedReconciler:
    """See the module. `gardenlets` says which of the deployed ones run."""

    def __init__(self, seed: ServedSeed, gardenlets: ManagedGardenlets) -> None:
        self._seed = seed
        self._gardenlets = gardenlets
        self._observed: set[ShootName] = set()
        self._reconciled: set[ShootName] = set()
        self._without_finalizer: set[ShootName] = set()
        self._shoots: dict[ShootName, HostShootState | None] = {}
        self._attempts: dict[ShootName, int] = {}
        self._last_conditions: dict[ShootName, DesiredCondition] = {}
        self._reported: dict[ShootName, _ReportedPatch] = {}

    # ------------------------------------------------------------------------------------------ when to look

    def stand_by(self) -> None:
        """Drop all state: another holder acts from now on."""
        self._observed.clear()
        self._reconciled.clear()
        self._without_finalizer.clear()
        self._shoots.clear()
        self._attempts.clear()
        self._last_conditions.clear()
        self._reported.clear()

    def enqueue_delay(self, name: ShootName) -> float | None:
        """Seconds after which to reconcile a changed ManagedSeed; None when the change needs none."""
        document = self._seed.cache.managed_seed(*name)
        if document is None or self._is_unconfirmed(name):
            return 0.0
        within = enqueue_delay(
            document, is_first=name not in self._observed, settings=self._seed.configuration.managed_seed
        )
        self._observed.add(name)
        if name in self._without_finalizer and is_held(document):
            return 0.0
        return None if within is None else within.total_seconds() * random.random()

    def cached(self) -> set[ShootName]:
        """Every ManagedSeed that is cached or has a deployment."""
        observed = {(key.namespace, key.name) for key in self._seed.cache.objects if key.kind == MANAGED_SEED}
        return observed | {(each.namespace, each.managed_seed) for each in self._seed.deployments.all()}

    def of_seed(self, seed: str) -> list[ShootName]:
        """ManagedSeeds of a name that have been reconciled before: their Seed changed."""
        return [name for name in self._reconciled if name[1] == seed]

    def dependents_of(self, shoot: ShootName) -> list[ShootName]:
        """ManagedSeeds whose shoot changed since they were reconciled."""
        if shoot[0] != GARDEN_NAMESPACE or shoot not in self._shoots:
            return []
        names = [
            (key.namespace, key.name)
            for key, document in self._seed.cache.objects.items()
            if key.kind == MANAGED_SEED
            and not isinstance(document, Tombstone)
            and (key.namespace, section(document, "spec", "shoot").get("name")) == shoot
        ]
        return names if self._shoots[shoot] != self._shoot(shoot) else []

    # ------------------------------------------------------------------------------------------ looking

    async def reconcile(self, name: ShootName) -> float | None:
        """Perform the next action; returns the seconds after which to requeue, None for not before a change."""
        if not self._seed.is_active:
            return INACTIVE_REQUEUE_SECONDS
        key = ObjectKey(MANAGED_SEED, *name)
        entry = self._seed.cache.objects.get(key)
        if entry is None:
            return await self._query(key)
        if isinstance(entry, Tombstone):
            return await self._clean_up(key, entry)
        if self._is_unconfirmed(name):
            return await self._verify_unconfirmed(key, entry)
        return await self._reconcile(name, entry)

    def _is_unconfirmed(self, name: ShootName) -> bool:
        """True for a ManagedSeed that only a replay contains and nothing is deployed for: it may be stale."""
        return (
            self._seed.cache.is_unconfirmed(ObjectKey(MANAGED_SEED, *name)) and self._seed.deployments.of(*name) is None
        )

    async def _verify_unconfirmed(self, key: ObjectKey, document: Document) -> float | None:
        if not self._seed.cache.is_complete:
            return None
        await self._seed.reporter.query(key, str(section(document, "metadata").get("uid") or ""))
        return QUERY_INTERVAL_SECONDS

    async def _query(self, key: ObjectKey) -> float | None:
        deployed = self._seed.deployments.of(key.namespace, key.name)
        if deployed is None or not self._seed.cache.is_complete:
            return None
        held = {"kind": "ManagedSeed", "metadata": {"name": key.name, "namespace": key.namespace, "uid": deployed.uid}}
        await self._seed.reporter.query(key, deployed.uid, held)
        return QUERY_INTERVAL_SECONDS

    async def _clean_up(self, key: ObjectKey, tombstone: Tombstone) -> float | None:
        """Remove the deployment of a ManagedSeed that was deleted, or whose shoot moved to another seed."""
        deployed = self._seed.deployments.of(key.namespace, key.name)
        if deployed is not None:
            self._seed.deployments.remove((deployed.namespace, deployed.shoot))
            self._seed.deployer.deployments_changed()
            _log.info("gardenlet.removed", seed=self._seed.name, managed_seed=key.name, reason="it left")
        await self._seed.reporter.confirm_gone(key, tombstone=tombstone.sequence)
        self._seed.cache.forget_object(key, tombstone)
        for memory in (self._last_conditions, self._reported, self._attempts):
            memory.pop((key.namespace, key.name), None)
        for names in (self._observed, self._reconciled, self._without_finalizer):
            names.discard((key.namespace, key.name))
        return None

    async def _reconcile(self, name: ShootName, document: Document) -> float | None:
        began = self._seed.clock.monotonic()
        self._reconciled.add(name)
        (self._without_finalizer.discard if is_held(document) else self._without_finalizer.add)(name)
        decided = plan_managed_seed(
            await self._snapshot(document),
            parent=self._seed.configuration.document,
            settings=self._seed.configuration.managed_seed,
            now=self._seed.clock.now(),
        )
        problem = decided.step.problem if isinstance(decided.step, CannotReconcile) else None
        if problem is None:
            self._report(name, document, decided.before)
            try:
                await self._perform(document, decided)
            except (GardenbusError, OSError) as error:
                problem = error.message if isinstance(error, GardenbusError) else str(error)
                if not self._seed.is_active:
                    return INACTIVE_REQUEUE_SECONDS
        if problem is not None:
            findings = (*decided.before, reconcile_error(problem))
            self._attempts[name] = self._attempts.get(name, 0) + 1
            requeue_after: float | None = _BACKOFF.delay_seconds(self._attempts[name], random.random())
        else:
            findings = tuple({each.kind: each for each in (*decided.before, *decided.after)}.values())
            self._attempts.pop(name, None)
            requeue_after = None if decided.requeue_after is None else self._jittered(decided.requeue_after)
        is_changed = self._report(name, document, findings)
        self._record_event(name, document, findings)
        if not isinstance(decided.step, NoAction):
            self._log_finished(name, decided, problem, seconds=self._seed.clock.monotonic() - began)
        return min(requeue_after, REPEAT_SECONDS) if is_changed and requeue_after is not None else requeue_after

    def _log_finished(self, name: ShootName, decided: ManagedSeedPlan, problem: str | None, *, seconds: float) -> None:
        _log.info(
            "reconcile.finished",
            controller="managedseed",
            seed=self._seed.name,
            object="/".join(name),
            outcome="error" if problem is not None else type(decided.step).__name__,
            reason=problem or "",
            attempt=self._attempts.get(name, 0),
            duration_ms=round(1000 * seconds),
        )

    async def _snapshot(self, document: Document) -> ManagedSeedSnapshot:
        metadata = section(document, "metadata")
        namespace, name = str(metadata.get("namespace") or ""), str(metadata.get("name"))
        shoot = (namespace, str(section(document, "spec", "shoot").get("name") or ""))
        self._shoots[shoot] = self._shoot(shoot)
        snapshot = ManagedSeedSnapshot(
            document,
            self._shoots[shoot],
            await self._gardenlets.seed(name),
            self._seed.deployments.load(shoot),
            backends=installed_backends(),
        )
        if not metadata.get("deletionTimestamp"):
            return snapshot
        return snapshot._replace(
            is_running=await self._gardenlets.is_running(name), shoots_on_it=self._seed.deployer.shoots_on(name)
        )

    def _shoot(self, shoot: ShootName) -> HostShootState | None:
        """The shoot with the last reported status, which the cache may not contain yet."""
        observed = self._seed.cache.shoot(shoot)
        if observed is None:
            return None
        record = self._seed.backend.load(shoot)
        status = record.status if record is not None and record.uid == observed.uid else observed.status
        return HostShootState(
            is_here=observed.status_seed == self._seed.name,
            is_reconciled=is_reconciled(generation=observed.generation, status=status),
        )

    # ------------------------------------------------------------------------------------------ acting

    async def _perform(self, document: Document, decided: ManagedSeedPlan) -> None:
        """Perform the planned action. Raises StaleFencingToken, Unavailable, OSError."""
        metadata, step = section(document, "metadata"), decided.step
        key = ObjectKey("seed", "", str(metadata["name"]))
        shoot = (str(metadata["namespace"]), str(section(document, "spec", "shoot").get("name")))
        match step:
            case DeployGardenlet(gardenlet, has_backup_secret):
                self._seed.deployments.save(
                    GardenletDeployment(
                        namespace=shoot[0],
                        shoot=shoot[1],
                        managed_seed=key.name,
                        uid=str(metadata.get("uid") or ""),
                        generation=metadata.get("generation") or 0,
                        deployed_at=self._seed.clock.now(),
                        bootstrapped_at=self._seed.clock.now() if is_bootstrapped(document) else None,
                        gardenlet=gardenlet,
                        has_backup_secret=has_backup_secret,
                    )
                )
                self._seed.deployer.deployments_changed()
            case RegisterSeed(seed):
                await self._seed.reporter.apply(key, seed)
            case DeleteSeed():
                await self._seed.reporter.delete(key)
            case DeleteGardenlet() | DeleteBackupSecret():
                self._change(shoot, step)
                self._seed.deployer.deployments_changed()
            case DeleteNamespace():
                self._seed.deployer.remove_credentials(key.name)
                self._seed.deployments.remove(shoot)
            case NoAction() | CannotReconcile():
                pass
            case _:
                assert_never(step)

    def _change(self, shoot: ShootName, step: DeleteGardenlet | DeleteBackupSecret) -> None:
        deployed = self._seed.deployments.load(shoot)
        if deployed is None:
            return
        gone = {"gardenlet": None} if isinstance(step, DeleteGardenlet) else {"has_backup_secret": False}
        self._seed.deployments.save(msgspec.structs.replace(deployed, **gone))

    def _report(self, name: ShootName, document: Document, findings: tuple[DesiredCondition, ...]) -> bool:
        """Report conditions that differ, again while they have no effect; returns whether any differs."""
        patch = status_patch(document, findings, self._seed.clock.now())
        uid, now = str(document["metadata"].get("uid") or ""), self._seed.clock.monotonic()
        entry = self._reported.get(name)
        report = _ReportedPatch(uid, without_times(patch), now)
        is_repeated = entry is not None and entry[:2] == report[:2] and now - entry.at < REPEAT_SECONDS - 1
        if patch and not is_repeated:
            self._reported[name] = report
            self._seed.reporter.enqueue_status(ObjectKey(MANAGED_SEED, *name), uid, patch)
        return bool(patch)

    def _record_event(self, name: ShootName, document: Document, findings: tuple[DesiredCondition, ...]) -> None:
        """Record an Event when the last condition changed."""
        if not findings or self._last_conditions.get(name) == findings[-1]:
            return
        found = self._last_conditions[name] = findings[-1]
        is_changed = "conditions" in status_patch(document, (found,), self._seed.clock.now())
        if not is_changed or found.reason == DELETED:  # the object of the Event is gone
            return
        kind = "Warning" if found.reason == reconcile_error("").reason else "Normal"
        uid = str(document["metadata"].get("uid") or "")
        key = ObjectKey(MANAGED_SEED, *name)
        self._seed.reporter.enqueue_event(key, uid, kind=kind, reason=found.reason, message=found.message)

    def _jittered(self, period: timedelta) -> float:
        """Spread the syncs of ManagedSeeds that were reconciled together."""
        seconds = period.total_seconds()
        return seconds * (1 + _SYNC_JITTER * random.random())
