"""ControllerInstallations: each seed has one of every ControllerRegistration that it needs.

A Seed has Gardener's finalizer while anything is registered, and until nothing is installed on it any more. In a
landscape without ControllerRegistrations nothing is written.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import methodcaller

import structlog

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.document_parts import is_deleting, name_of, with_finalizer, without_finalizer
from gardenbus.common.api.garden.extensions import (
    REGISTRATION_FINALIZER,
    KindType,
    automatic_by_cluster,
    is_required,
    wanted_by_seed,
    wanted_by_shoot,
)
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey
from gardenbus.common.controller.agent_credentials import AgentCredentials
from gardenbus.common.controller.controller import Done, ReconcileResult, RequeueAfter
from gardenbus.common.controller.event_recorder import EventRecorder
from gardenbus.common.controller.writes import delete, update, version_precondition
from gardenbus.common.errors import AlreadyExists, Conflict, Forbidden, InvalidResource
from gardenbus.common.ports.store import WritePrecondition
from gardenbus.controllermanager import metrics
from gardenbus.controllermanager.domain.installations import (
    DEPLOYMENT,
    INSTALLATION,
    REGISTRATION,
    NotRegistered,
    SeedFacts,
    deployment_name,
    installation,
    installation_name,
    pending_message,
    resource_references,
    wanted_registrations,
)
from gardenbus.controllermanager.watch.installation_enqueuer import InstallationEnqueuer
from gardenbus.controllermanager.watch.installed import Installed
from gardenbus.controllermanager.watch.loop import REPORTER, BuiltLoop, Loop, LoopContext, existing, while_whole
from gardenbus.controllermanager.watch.seed_needs import SeedNeeds

NAME = "controllerinstallation"
KIND = "seed"
NEEDING = ("shoot", "backupbucket", "backupentry", "secret", "configmap")
"""Kinds whose objects decide what is needed, besides Seeds and registrations."""

PENDING_SECONDS = 60.0
LAGGING_SECONDS = 1.0

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()


class InstallationReconciler:
    """Reconciles the installations of one Seed at a time; any number of replicas may run concurrently."""

    def __init__(self, context: LoopContext, needs: SeedNeeds, installed: Installed) -> None:
        self._store = context.store
        self._objects = context.objects
        self._needs = needs
        self._installed = installed
        self._events = EventRecorder(context.store, REPORTER)
        self._credentials = AgentCredentials(context.store, context.clock)

    async def reconcile(self, stored: StoredObject) -> ReconcileResult:
        """Reconcile a Seed. Raises Conflict, Unavailable, and InvalidResource until something is registered."""
        registrations = [each.document() for each in self._objects.objects(REGISTRATION).values()]
        seed = stored.key.name
        if not registrations and not self._installed.on(seed) and REGISTRATION_FINALIZER not in stored.parts.finalizers:
            return Done("nothing is registered")
        present = await self._present(stored, registrations)
        if not present and (stored.is_deleting or not registrations):
            return await self._release(stored)
        try:
            return await self._install(await self._hold(stored), registrations, present)
        except InvalidResource as error:
            await self._events.record(stored.key, stored.uid, reason="ReconcileError", message=error.message)
            raise

    async def _present(self, stored: StoredObject, registrations: Sequence[Document]) -> Mapping[str, StoredObject]:
        """The installations of a seed as they are stored, by registration; the cache may not have the latest yet."""
        document, seed = stored.document(), stored.key.name
        names = {installation_name(each, document) for each in registrations}
        keys = sorted({*self._installed.on(seed), *(ObjectKey(INSTALLATION, "", name) for name in names)})
        found = [each for each in await self._store.get_many(keys) if each is not None]
        return {
            section(spec, "registrationRef")["name"]: each
            for each in found
            if section(spec := section(each.document(), "spec"), "seedRef").get("name") == seed
        }

    async def _hold(self, stored: StoredObject) -> StoredObject:
        held = with_finalizer(stored.document(), REGISTRATION_FINALIZER)
        return await update(self._store, stored, held) if held != stored.document() else stored

    async def _release(self, stored: StoredObject) -> ReconcileResult:
        if REGISTRATION_FINALIZER not in stored.parts.finalizers:
            return Done("nothing is installed")
        released = without_finalizer(stored.document(), REGISTRATION_FINALIZER)
        if stored.is_deleting and not section(released, "metadata").get("finalizers"):
            await self._credentials.end_with(stored)
        unused = WritePrecondition("references", stored.key.stored, f"there are installations on {stored.key}")
        try:
            await update(self._store, stored, released, (unused,))
        except Forbidden as error:
            raise Conflict(error.message) from error
        log.info("seed.released", seed=stored.key.name)
        return Done("nothing is installed")

    async def _install(
        self, seed: StoredObject, registrations: Sequence[Document], present: Mapping[str, StoredObject]
    ) -> ReconcileResult:
        wanted = wanted_registrations(self._facts(seed, registrations, present.values()), registrations)
        if isinstance(wanted, NotRegistered):
            raise InvalidResource(wanted.message)
        by_name = {name_of(each): each for each in registrations}
        if unregistered := sorted(present.keys() - by_name.keys()):
            raise InvalidResource(f'ControllerRegistration "{unregistered[0]}" does not exist')
        for name in sorted(wanted.names):
            if is_deleting(by_name[name]):
                continue
            existing_one = present.get(name)
            if existing_one is not None and existing_one.is_deleting:
                return RequeueAfter(PENDING_SECONDS, pending_message(name))
            await self._deploy(seed, by_name[name], existing_one)
        return await self._delete_others(seed, [present[name] for name in sorted(present.keys() - wanted.names)])

    def _facts(
        self, seed: StoredObject, registrations: Sequence[Document], present: Iterable[StoredObject]
    ) -> SeedFacts:
        spec, automatic = section(seed.document(), "spec"), automatic_by_cluster(registrations)
        internal = self._needs.internal_domain(seed)
        of_backups, unfound = self._needs.of_backups(seed.key.name)
        if unfound:
            log.warning("backup_bucket.missing", seed=seed.key.name, buckets=unfound)
        kinds: set[KindType] = set(of_backups)
        of_shoots = self._needs.of_shoots(seed)
        for needs in of_shoots:
            kinds |= wanted_by_shoot(needs, spec, automatic, internal)
        if not seed.is_deleting:
            kinds |= wanted_by_seed(spec, automatic)
        documents = [each.document() for each in present]
        required = {section(each, "spec", "registrationRef")["name"] for each in documents if is_required(each)}
        return SeedFacts(kinds, seed.labels, required, has_shoots=bool(of_shoots), is_deleting=seed.is_deleting)

    async def _deploy(self, seed: StoredObject, registration: Document, old: StoredObject | None) -> None:
        deployment = await self._deployment(registration)
        keys = [ObjectKey(kind.lower(), GARDEN_NAMESPACE, name) for kind, name in resource_references(deployment)]
        resources = [each.document() for each in await self._store.get_many(keys) if each is not None]
        document = None if old is None else old.document()
        wanted = installation(registration, seed.document(), deployment, resources, document)
        if old is None:
            try:
                await self._store.create(wanted, preconditions=(version_precondition(seed),))
            except AlreadyExists as error:  # another replica was faster
                raise Conflict(error.message) from error
            metrics.INSTALLATIONS.labels("created").inc()
            log.info("installation.created", seed=seed.key.name, registration=name_of(registration))
        elif wanted != document:
            await update(self._store, old, wanted)
            metrics.INSTALLATIONS.labels("updated").inc()

    async def _deployment(self, registration: Document) -> Document | None:
        name = deployment_name(registration)
        if not name:
            return None
        stored = await self._store.get(ObjectKey(DEPLOYMENT, "", name))
        if stored is None:
            raise InvalidResource(
                "cannot deploy ControllerInstallation because the referenced ControllerDeployment cannot be retrieved: "
                f'controllerdeployments.core.gardener.cloud "{name}" not found'
            )
        return stored.document()

    async def _delete_others(self, seed: StoredObject, unneeded: Sequence[StoredObject]) -> ReconcileResult:
        unneeded = [each for each in unneeded if not each.is_deleting]
        if not unneeded:
            return Done()
        if set(await self._store.shoots_on(seed.key.name)) != self._needs.shoots(seed.key.name):
            return RequeueAfter(LAGGING_SECONDS, "the cache does not have all of its shoots yet")
        for each in unneeded:
            await delete(self._store, each)
            metrics.INSTALLATIONS.labels("deleted").inc()
            log.info("installation.deleted", seed=seed.key.name, installation=each.key.name)
        return Done()


def _build(context: LoopContext) -> BuiltLoop:
    needs, installed = SeedNeeds(context.objects), Installed()
    reconciler = InstallationReconciler(context, needs, installed)
    return BuiltLoop(
        existing(context, KIND, while_whole(context, reconciler.reconcile)),
        InstallationEnqueuer(context, needs, installed).changed,
    )


LOOP = Loop(
    NAME,
    (KIND, REGISTRATION, DEPLOYMENT, INSTALLATION, *NEEDING),
    _build,
    methodcaller("workers", "controllerregistration"),
)
