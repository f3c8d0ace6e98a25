"""Garden in memory in which sets of seeds grow: memory store, the apiserver's own admission, and scripted gardenlets.

Everything runs without an event loop: `drive` runs a reconciliation to its end, a `SteppedReconcile` only as far as it
is stepped, so that two of them can interleave anywhere and be killed at any point.
"""

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any, TypeVar, cast

from gardenbus.apiserver.registry.preconditions import Precondition
from gardenbus.apiserver.registry.read_cache import ManifestCache, ReadCache
from gardenbus.apiserver.registry.retry_on_conflict import UnmetDependency
from gardenbus.apiserver.registry.seed_binder import SeedBinder
from gardenbus.apiserver.registry.writer import Writer
from gardenbus.common.api.conditions import conditions_of, get_condition, merge_conditions
from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.garden.managed_seeds import seed_of, with_shoot_defaults
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.api.garden.scheduling_requirements import resolved_of
from gardenbus.common.api.garden.shoot_groups import GroupCounts
from gardenbus.common.api.garden.shoot_status import with_status_label
from gardenbus.common.api.keys import ObjectKey, Subjects
from gardenbus.common.api.request_bodies import BindRequest
from gardenbus.common.controller.api_client import RequestPrecondition
from gardenbus.common.controller.controller import ReconcileRequest, ReconcileResult, Requeue, RequeueAfter
from gardenbus.common.controller.informer import Informer
from gardenbus.common.errors import Conflict, Forbidden, NotFound, Transient
from gardenbus.common.ports.store import Page, SeedBinding
from gardenbus.managedseedset.controllers.managed_seed_set import REPORTER, ManagedSeedSetReconciler
from gardenbus.managedseedset.domain.actuator import ActuatorSettings
from gardenbus.managedseedset.garden_client import USER, GardenClient
from gardenbus.managedseedset.watch.state_collector import StateCollector
from gardenbus.relay.ports.outbox import EventEntry
from gardenbus.scheduling.cache import KINDS, SchedulingCache
from tests.support.builders import a_cloudprofile, a_condition, a_project, a_seed, a_shoot, merged
from tests.support.clocks import FakeClock
from tests.support.memory.bus import MemoryBus
from tests.support.memory.store import MemoryStore

SET = ObjectKey("managedseedset", "garden", "crowd")
MAX_RECONCILES = 10
T = TypeVar("T")


def a_managed_seed_set(name: str = "crowd", *, replicas: int = 1, **changes: Any) -> Document:
    """A set whose seeds take ten shoots each, and stand on clusters of provider `aws`."""
    labels = {"set": name}
    shoot_spec = merged(
        a_shoot()["spec"],
        {
            "dns": {"domain": "replica-name.seeds.example.com"},
            "kubernetes": {"verticalPodAutoscaler": {"enabled": True}},
            "tolerations": [{"key": "seed.gardener.cloud/protected"}],
            "networking": {"nodes": "10.250.0.0/16", "pods": "10.251.0.0/16", "services": "10.252.0.0/16"},
        },
    )
    gardenlet_configuration: Document = {
        "apiVersion": "gardenlet.config.gardener.cloud/v1alpha1",
        "kind": "GardenletConfiguration",
        "resources": {"capacity": {"shoots": 10}},
        "seedConfig": {
            "metadata": {"labels": labels},
            "spec": {
                "backup": {"provider": "aws"},
                "ingress": {"domain": "ingress.replica-name.seeds.example.com"},
                "networks": {"shootDefaults": {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"}},
            },
        },
    }
    managed_seed_set: Document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "ManagedSeedSet",
        "metadata": {"name": name, "namespace": "garden"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"gardenlet": {"config": gardenlet_configuration}},
            },
            "shootTemplate": {"metadata": {"labels": labels}, "spec": shoot_spec},
        },
    }
    return merged(managed_seed_set, changes)


def a_garden_project() -> Document:
    """The project of the garden namespace, whose shoots may tolerate protected seeds."""
    tolerations = {"whitelist": [{"key": "seed.gardener.cloud/protected"}]}
    return a_project("garden", "garden", spec={"tolerations": tolerations})


class _Pause:
    def __await__(self) -> Generator[None, None, None]:
        yield


class SteppedStore(MemoryStore):
    """A store that stops before each call while somebody steps through it."""

    stepping = False

    async def _pause(self) -> None:
        if self.stepping:
            await _Pause()

    async def get(self, key: ObjectKey) -> StoredObject | None:
        await self._pause()
        return await super().get(key)

    async def list_page(self, kind: str, namespace: str | None = None, **options: Any) -> Page:
        await self._pause()
        return await super().list_page(kind, namespace, **options)

    async def create(self, document: Document, **options: Any) -> Any:
        await self._pause()
        return await super().create(document, **options)

    async def update(self, base: StoredObject, document: Document, **options: Any) -> Any:
        await self._pause()
        return await super().update(base, document, **options)

    async def delete(self, base: StoredObject, **options: Any) -> Any:
        await self._pause()
        return await super().delete(base, **options)


class AdmittedGarden(GardenClient):
    """Requests that go straight to the apiserver's writer."""

    def __init__(self, store: MemoryStore, clock: FakeClock) -> None:
        super().__init__(MemoryBus(clock), Subjects())
        self._store = store
        self._library = ManifestCache(store)
        self._writer = Writer(store, clock)
        self._placer = SeedBinder(store, clock)
        self.rejects: Callable[[Document], str] = lambda _: ""
        """The reason why a manifest is rejected; "" admits it."""

    async def apply(self, document: Document, precondition: RequestPrecondition) -> None:
        if problem := self.rejects(document):
            raise Forbidden(problem)
        await self._requested(self._writer.apply(document, self._reads(), user=USER, condition=_admitted(precondition)))

    async def patch(self, key: ObjectKey, patch: Document, precondition: RequestPrecondition) -> None:
        await self._requested(
            self._writer.patch(key, patch, self._reads(), user=USER, condition=_admitted(precondition))
        )

    async def delete(self, key: ObjectKey, precondition: RequestPrecondition) -> None:
        try:
            await self._requested(self._writer.delete(key, self._reads(), condition=_admitted(precondition)))
        except NotFound:
            return

    async def bind(self, shoot: ObjectKey, seed: str, precondition: RequestPrecondition) -> None:
        body = BindRequest(namespace=shoot.namespace, name=shoot.name, seed=seed)
        await self._requested(self._placer.bind(body, self._reads(), user=USER, condition=_admitted(precondition)))

    async def _requested(self, request: Coroutine[Any, Any, Any]) -> None:
        try:
            await request
        except UnmetDependency as contingent:
            raise contingent.error from contingent

    def _reads(self) -> ReadCache:
        return ReadCache(self._store, self._library)


def _admitted(precondition: RequestPrecondition) -> Precondition:
    return Precondition(precondition.key, precondition.version)


class SteppedReconcile:
    """One reconciliation that is stepped through. `finished`: it has ended, one way or another."""

    def __init__(self, store: SteppedStore, reconcile_once: Coroutine[Any, Any, ReconcileResult]) -> None:
        self._store = store
        self._reconcile = reconcile_once
        self.finished = False
        self.outcome: ReconcileResult | None = None

    def step(self, steps: int = 1) -> None:
        """Go on for so many calls of the store."""
        self._store.stepping = True
        try:
            for _ in range(steps):
                if not self.finished:
                    self._reconcile.send(None)
        except StopIteration as end:
            self.finished, self.outcome = True, end.value
        except Transient:
            self.finished = True
        finally:
            self._store.stepping = False

    def kill(self) -> None:
        """End it where it is."""
        self._reconcile.close()
        self.finished = True


class SeedGarden:
    """See the module."""

    def __init__(self, settings: ActuatorSettings | None = None, profiles: Sequence[SchedulingProfile] = ()) -> None:
        self.clock = FakeClock()
        self.store = SteppedStore(self.clock, reporter=REPORTER)
        self.garden = AdmittedGarden(self.store, self.clock)
        self.admitted = Writer(self.store, self.clock)
        informer = Informer(self.store, MemoryBus(self.clock), Subjects(), ("seed",))
        self._landscape = SchedulingCache(informer, "SameRegion", profiles=profiles)
        self._shown: dict[ObjectKey, StoredObject] = {}
        collector = StateCollector(self.store, informer, self._landscape, self.clock)
        self.settings = settings or ActuatorSettings()
        self.reconciler = ManagedSeedSetReconciler(self.store, self.garden, collector, self.clock, self.settings)
        for document in (a_garden_project(), a_project(), a_cloudprofile()):
            self.applied(document)

    # ------------------------------------------------------------------------------------------ running

    def drive(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run to the end, without a loop."""
        self.store.stepping = False
        try:
            while True:
                coroutine.send(None)
        except StopIteration as end:
            return cast("T", end.value)

    def stepped(self, key: ObjectKey = SET) -> SteppedReconcile:
        """A reconciliation to be stepped through."""
        self._show_landscape()
        return SteppedReconcile(self.store, self.reconciler.reconcile(_request(key)))

    def reconcile_once(self, key: ObjectKey = SET) -> ReconcileResult:
        """Reconcile as the controller does: again at once on a conflict."""
        for _ in range(MAX_RECONCILES):
            self._show_landscape()
            try:
                outcome = self.drive(self.reconciler.reconcile(_request(key)))
            except Conflict:
                continue
            if not isinstance(outcome, Requeue):
                return outcome
        raise AssertionError(f"{MAX_RECONCILES} looks did not come to an end")

    def run_until_stable(self, *, rounds: int = 200, run_gardenlets: bool = True) -> None:
        """Reconcile and let gardenlets work, until nothing changes any more."""
        for _ in range(rounds):
            before = self.version
            outcome = self.reconcile_once()
            worked = self.run_gardenlets() if run_gardenlets else False
            if not worked and self.version == before:
                if not isinstance(outcome, RequeueAfter) or outcome.seconds > 20 or self.clock.monotonic() > 1e9:
                    return
                self.clock.advance(outcome.seconds)
                self.reconcile_once()
                if self.version == before and not self.run_gardenlets():
                    return
            self.clock.advance(1)
        raise AssertionError(f"not settled: {self.set()}")

    @property
    def version(self) -> int:
        """How often anything was written."""
        return self.drive(self.store.list_page("managedseedset")).version

    def _show_landscape(self) -> None:
        now = {stored.key: stored for kind in KINDS for stored in self.objects(kind)}
        for key in {*now, *self._shown}:
            old, new = self._shown.get(key), now.get(key)
            if old != new:
                self._landscape.changed(key, old, new)
        self._shown = now

    # ------------------------------------------------------------------------------------------ objects

    def applied(self, document: Document) -> None:
        """Apply as a person does."""
        reads = ReadCache(self.store, ManifestCache(self.store))
        try:
            self.drive(self.admitted.apply(document, reads, user="ann"))
        except UnmetDependency as contingent:
            raise contingent.error from contingent

    def patched(self, key: ObjectKey, patch: Document) -> None:
        """Patch as a person does."""
        try:
            self.drive(self.admitted.patch(key, patch, ReadCache(self.store, ManifestCache(self.store)), user="ann"))
        except UnmetDependency as contingent:
            raise contingent.error from contingent

    def deleted(self, key: ObjectKey) -> None:
        """Delete as a person does."""
        try:
            self.drive(self.admitted.delete(key, ReadCache(self.store, ManifestCache(self.store))))
        except UnmetDependency as contingent:
            raise contingent.error from contingent

    def objects(self, kind: str, namespace: str | None = None) -> Sequence[StoredObject]:
        """All objects of a kind."""
        return self.drive(self.store.list_page(kind, namespace, limit=10_000)).objects

    def get(self, key: ObjectKey) -> Document | None:
        """An object, or None."""
        stored = self.drive(self.store.get(key))
        return None if stored is None else stored.document()

    def now(self, key: ObjectKey) -> Document:
        """An object that must be there."""
        document = self.get(key)
        assert document is not None, f"{key} not found"
        return document

    def set(self) -> Document:
        """The set."""
        return self.now(SET)

    @property
    def status(self) -> Document:
        """Its status."""
        return section(self.set(), "status")

    @property
    def pending(self) -> Document:
        """Its pending replica without the time."""
        return {name: value for name, value in section(self.status, "pendingReplica").items() if name != "since"}

    def condition(self, kind: str) -> Document:
        """One of its conditions."""
        return get_condition(conditions_of(self.set()), kind) or {}

    def shoots(self) -> list[str]:
        """The names of the shoots in the garden."""
        return [stored.key.name for stored in self.objects("shoot", "garden")]

    def managed_seeds(self) -> list[str]:
        """The names of the ManagedSeeds."""
        return [stored.key.name for stored in self.objects("managedseed")]

    def seed_names(self) -> list[str]:
        """The names of the Seeds."""
        return [stored.key.name for stored in self.objects("seed")]

    def usage(self, seed: str) -> int:
        """How many shoots are on a seed."""
        return dict(self.drive(self.store.usage()).seeds).get(seed, 0)

    def events(self) -> list[tuple[str, str]]:
        """Reason and message of every Event about the set so far."""
        return [
            (entries.event.reason, entries.event.message)
            for entries in self.store.state.outbox
            if isinstance(entries, EventEntry) and entries.event.about == SET
        ]

    def reasons(self) -> list[str]:
        """The reasons of those Events."""
        return [reason for reason, _ in self.events()]

    def change(self, key: ObjectKey, changes: Mapping[str, Any]) -> None:
        """Change an object past all admission (what a gardenlet's report does)."""
        stored = self.drive(self.store.get(key))
        assert stored is not None, f"{key} not found"
        self.drive(self.store.update(stored, merged(stored.document(), changes)))

    # ------------------------------------------------------------------------------------------ gardenlets

    def reconcile_shoot(self, name: str, state: str = "Succeeded", **status: Any) -> None:
        """Report of the host seed's gardenlet on the shoot of a replica."""
        key = ObjectKey("shoot", "garden", name)
        stored = self.drive(self.store.get(key))
        assert stored is not None
        shoot = stored.document()
        operation = section(shoot, "status", "lastOperation")
        done_once = operation.get("type") == "Reconcile" or operation.get("state") == "Succeeded"
        kind = "Delete" if stored.is_deleting else ("Reconcile" if done_once else "Create")
        shoot["status"] = {
            **section(shoot, "status"),
            "observedGeneration": shoot["metadata"]["generation"],
            "lastOperation": {"type": kind, "state": state, "lastUpdateTime": "2026-01-02T03:04:05Z"},
            **status,
        }
        shoot["metadata"]["finalizers"] = [] if kind == "Delete" and state == "Succeeded" else ["gardener"]
        self.drive(self.store.update(stored, with_status_label(shoot)))

    def register(self, name: str) -> bool:
        """Report on its ManagedSeed; whether anything changed."""
        key = ObjectKey("managedseed", "garden", name)
        managed_seed, shoot = self.get(key), self.get(ObjectKey("shoot", "garden", name))
        if managed_seed is None or shoot is None:
            return False
        if managed_seed["metadata"].get("deletionTimestamp"):
            return self._unregister(key, managed_seed)
        metadata, status = managed_seed["metadata"], section(managed_seed, "status")
        if section(shoot, "status", "lastOperation").get("state") != "Succeeded":
            return False
        if self.get(ObjectKey("seed", "", name)) is None:
            seed = merged(a_seed(name, ready=False), seed_of(with_shoot_defaults(managed_seed, shoot)))
            self.drive(self.store.create(seed))
        elif status.get("observedGeneration") == metadata["generation"] and "finalizers" in metadata:
            return False
        registered = a_condition("SeedRegistered", reason="Reconciled")
        conditions = merge_conditions(conditions_of(managed_seed), registered)
        observed = {"observedGeneration": metadata["generation"], "conditions": conditions}
        self.change(key, {"metadata": {"finalizers": ["gardener"]}, "status": observed})
        return True

    def _unregister(self, key: ObjectKey, managed_seed: Document) -> bool:
        seed = self.drive(self.store.get(ObjectKey("seed", "", key.name)))
        if seed is not None:
            if self.usage(key.name):
                return False
            self.drive(self.store.delete(seed))
        elif managed_seed["metadata"].get("finalizers"):
            self.change(key, {"metadata": {"finalizers": None}})
        else:
            return False
        return True

    def report_seed(self, name: str, *, ready: bool = True) -> bool:
        """Report of the seed's own gardenlet; whether anything changed."""
        key = ObjectKey("seed", "", name)
        stored = self.drive(self.store.get(key))
        assert stored is not None
        seed = stored.document()
        state = "True" if ready else "Unknown"
        status: Document = {
            **a_seed(name, shoots="10")["status"],
            "observedGeneration": seed["metadata"]["generation"],
            "conditions": [
                a_condition(kind, state)
                for kind in ("GardenletReady", "SeedSystemComponentsHealthy", "BackupBucketsReady")
            ],
        }
        written = self.drive(self.store.update(stored, {**seed, "status": status}))
        return isinstance(written, StoredObject) and written.version != stored.version

    def run_gardenlets(self) -> bool:
        """Everything that is under way goes a step on with success; whether there was anything to do."""
        worked = False
        for stored in self.objects("shoot", "garden"):
            shoot = stored.document()
            status = section(shoot, "status")
            observed = status.get("observedGeneration") == shoot["metadata"]["generation"]
            if not observed or stored.is_deleting or section(status, "lastOperation").get("state") != "Succeeded":
                self.reconcile_shoot(stored.key.name)
                worked = True
        for name in self.managed_seeds():
            worked |= self.register(name)
        for name in self.seed_names():
            worked |= self.report_seed(name)
        for stored in self.objects("shoot", "garden-dev"):
            wanted, actual = stored.parts.seed_name, stored.parts.status_seed_name
            if wanted and wanted != actual:
                self.change(stored.key, {"status": {"seedName": wanted}})
                worked = True
        return worked

    # ------------------------------------------------------------------------------------------ tenants

    def host_seed(self, name: str = "host-seed", **changes: Any) -> None:
        """A seed that is nobody's replica, ready, with a backup."""
        defaults: Document = {"spec": {"backup": {"provider": "aws"}}}
        self.drive(self.store.create(merged(a_seed(name), merged(defaults, changes))))

    def place(self, seed: str, name: str, **changes: Any) -> str:
        """Place somebody's shoot on a seed; the outcome."""
        created = self.drive(self.store.create(a_shoot(name, **changes)))
        assert isinstance(created, StoredObject)
        stored = self.drive(self.store.get(ObjectKey("seed", "", seed)))
        scheduling_generation = stored.scheduling_generation if stored is not None else None
        read = resolved_of(created.document()).group_rules.concerned
        groups = {name: (each.version, 0) for name, each in self.drive(self._group_counts(read)).items()}
        binding = SeedBinding(
            "garden-dev", name, created.uid, created.generation, seed, scheduling_generation, groups=groups
        )
        outcome = self.drive(self.store.bind([binding])).outcomes[0]
        if outcome == "bound":
            self.change(created.key, {"status": {"seedName": seed}})
        else:
            self.drive(self.store.delete(created))
        return outcome

    async def _group_counts(self, groups: Sequence[str]) -> Mapping[str, GroupCounts]:
        return await self.store.group_counts("garden-dev", groups) if groups else {}

    def leave(self, name: str) -> None:
        """Delete somebody's shoot."""
        key = ObjectKey("shoot", "garden-dev", name)
        stored = self.drive(self.store.get(key))
        if stored is not None:
            left = self.drive(self.store.delete(stored))
            if left is not None:
                self.change(key, {"metadata": {"finalizers": None}})


def _request(key: ObjectKey) -> ReconcileRequest:
    subject = Subjects().queue("managedseedset", key.namespace, key.name)
    tail = f"{key.namespace}.{key.name}"
    return ReconcileRequest(subject=subject, tail=tail, attempt=0, deliveries=1, reconcile_id="test", queued_ms=0.0)
