"""Overlay of a maker: the steps of shoots that extensions take, on a seed with a Kubernetes API.

| step of the flow | what extensions are requested |
|---|---|
| namespace, cloud-provider-secret | nothing: namespace, Cluster, credentials and copies are made for them |
| backup-entry, migrate-backup-entry | a BackupEntry, which lives on after the shoot |
| infrastructure, dns-record, network, machines | Infrastructure, DNSRecord, Network, Worker |
| those of `EXTENSION_STEPS` | the others |
| clean-up-cluster | nothing: the Cluster says that the shoot is being deleted |
| delete-…, release-… | the deletion of the same; after a migration nothing is destroyed by it |
| delete-namespace, release-namespace | nothing: namespace and Cluster go |

All other steps, and these too, are the inner maker's: what it makes comes before what extensions make of it, and goes
after.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

from gardenbus.common.api.configuration.gardenlet import (
    BACKUP_BUCKET,
    BACKUP_ENTRY,
    BASTION,
    DNS_RECORD,
    ExtensionSettings,
)
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, name_of, only_text
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.gardenlet.backend.extensions.actor import ExtensionActor, names_of
from gardenbus.gardenlet.backend.extensions.backups import SeedBackups
from gardenbus.gardenlet.backend.extensions.bastions import SeedBastions
from gardenbus.gardenlet.backend.extensions.deletion_policy import DeletionPolicy
from gardenbus.gardenlet.backend.extensions.forced_deletion import ForcedDeletion
from gardenbus.gardenlet.backend.extensions.health import ExtensionHealth
from gardenbus.gardenlet.backend.extensions.seed_api import SeedAPI
from gardenbus.gardenlet.backend.extensions.shoot_namespaces import ShootNamespaces, required
from gardenbus.gardenlet.backend.port import Kept, KubeconfigRequest, Maker, MakerContext, StepFailed, StepRequest
from gardenbus.gardenlet.domain.extension_objects import specs
from gardenbus.gardenlet.domain.extension_objects.backups import core_entry, entry_key
from gardenbus.gardenlet.domain.extension_objects.kinds import (
    FORCED_WAIT,
    WAITS,
    WORKERLESS,
    ExtensionObject,
    WaitLimits,
    path_of,
)
from gardenbus.gardenlet.domain.extension_objects.specs import Handling, Moment, ShootFacts
from gardenbus.gardenlet.domain.extension_objects.states import EXTENSIONS, RESOURCES, entry_of, sorted_entries
from gardenbus.gardenlet.domain.flows import BACKUP_ENTRY_STEP, DESTROYS, EXTENSION_STATES, EXTENSION_STEPS
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import NETWORKING, ShootName
from gardenbus.gardenlet.domain.shoot_status import technical_id

HEARTBEAT_SECONDS = 2.0
"""Limit of a request between two renewals of the seed's Lease."""

_StepMethod = Callable[[StepRequest], Awaitable[Document]]


class ExtensionsMaker:
    """See the module. Implements `backend.port.Maker`."""

    def __init__(
        self,
        inner: Maker,
        context: MakerContext,
        api: SeedAPI,
        settings: ExtensionSettings,
        *,
        waits: Mapping[str, WaitLimits] = WAITS,
    ) -> None:
        self.inner = inner
        self._api = api
        self._garden = context.garden
        self._kinds = tuple(kind for kind in WAITS if kind in settings.kinds)
        self._address = settings.address
        self._namespaces = ShootNamespaces(context.seed_name, api, context.garden, context.clock)
        self._actor = ExtensionActor(api, context.clock, waits)
        self.bastions = SeedBastions(api, context.clock) if BASTION in settings.kinds else None
        self._seed_name = context.seed_name
        has_entries, delete = BACKUP_ENTRY in settings.kinds, inner.delete_backups
        self.backups = (
            SeedBackups(api, context, delete, has_entries=has_entries) if BACKUP_BUCKET in settings.kinds else None
        )
        self._forced = ForcedDeletion(api, context.clock)
        self._health = ExtensionHealth(context.seed_name, api, context.garden, context.clock, self._kinds)
        self._policy = DeletionPolicy(context.seed_name, api, context.clock)
        self._steps: Mapping[str, _StepMethod] = {
            "namespace": self._make_namespace,
            "cloud-provider-secret": self._make_credentials,
            "infrastructure": self._make_infrastructure,
            "dns-record": self._make_dns_records,
            BACKUP_ENTRY_STEP: self._make_backup_entry,
            "extensions-before": lambda request: self._make_extensions(request, "BeforeKubeAPIServer"),
            "control-plane-extension": self._make_control_plane,
            "extensions-after": lambda request: self._make_extensions(request, "AfterKubeAPIServer"),
            "operating-system-config": self._make_operating_system_configs,
            "network": self._make_network,
            "container-runtimes": self._make_container_runtimes,
            "machines": self._make_worker,
            "extensions-after-workers": lambda request: self._make_extensions(request, "AfterWorker"),
            EXTENSION_STATES: self._read_states,
            **self._removing_steps(),
            "migrate-extensions": self._migrate_first,
            "migrate-backup-entry": self._migrate_backup_entry,
            "migrate-control-plane": lambda request: self._migrate(request, "ControlPlane"),
            "release-infrastructure": self._release,
            "release-namespace": self._remove,
        }

    def _removing_steps(self) -> Mapping[str, _StepMethod]:
        return {
            "clean-up-cluster": self._sync_cluster,
            "delete-machines": lambda request: self._delete(request, "Worker"),
            "delete-network": lambda request: self._delete(request, "Network"),
            "delete-operating-system-config": lambda request: self._delete(request, "OperatingSystemConfig"),
            "delete-container-runtimes": lambda request: self._delete(request, "ContainerRuntime"),
            "delete-extensions-before": lambda request: self._delete_extensions(request, "BeforeKubeAPIServer"),
            "delete-control-plane-extension": lambda request: self._delete(request, "ControlPlane"),
            "delete-extensions-after": self._delete_other_extensions,
            "delete-infrastructure": lambda request: self._delete(request, "Infrastructure"),
            "delete-dns-record": lambda request: self._delete(request, DNS_RECORD),
            "delete-namespace": self._remove,
            "force-delete-extensions": self._force_delete,
            "delete-managed-resources": self._delete_managed_resources,
            "delete-cluster": self._delete_cluster,
            "delete-kubernetes-resources": self._delete_core_objects,
        }

    # ------------------------------------------------------------------------------------------ steps

    async def make(self, request: StepRequest) -> Document:
        """Have the result of a step be there: of the inner maker, and of the extensions."""
        step = self._steps.get(request.step)
        if step is None:
            return await self.inner.make(request)
        if request.step in EXTENSION_STEPS:
            return await step(request)
        if request.step in DESTROYS:
            await step(request)
            return await self.inner.make(request)
        made = await self.inner.make(request)
        return {**made, **await step(request)}

    async def _make_namespace(self, request: StepRequest) -> Document:
        observed = required(request)
        facts = await self._namespaces.facts(observed)
        enabled = await self._enabled_extensions(observed)
        await self._namespaces.make_namespace(request, facts, enabled)
        await self._namespaces.sync_cluster(request, facts, nodes=await self._nodes(request))
        return {}

    async def _make_credentials(self, request: StepRequest) -> Document:
        await self._namespaces.make_credentials(request)
        await self._namespaces.make_references(request)
        return {}

    async def _sync_cluster(self, request: StepRequest) -> Document:
        """Write the Cluster of a shoot that is being deleted; not that of one that is another seed's already."""
        if request.observed is not None:
            facts = await self._namespaces.facts(request.observed)
            await self._namespaces.sync_cluster(request, facts, nodes=await self._nodes(request))
        return {}

    async def _make_infrastructure(self, request: StepRequest) -> Document:
        if not self._acts_on("Infrastructure", request):
            return {}
        live = await self._bring(request, specs.infrastructure(_facts(request)))
        if _nodes_of(live):
            facts = await self._namespaces.facts(required(request))
            await self._namespaces.sync_cluster(request, facts, nodes=_nodes_of(live))
        return {NETWORKING: specs.networking_status(live)}

    async def _make_dns_records(self, request: StepRequest) -> Document:
        if not self._acts_on(DNS_RECORD, request):
            return {}
        namespace = technical_id(*request.shoot)
        wanted = await self._namespaces.dns_records(request, self._address)
        types = {
            name_of(each): section(each, "spec").get("recordType")
            for each in await self._actor.live(DNS_RECORD, namespace)
        }
        for each in wanted:
            if types.get(each.name, each.spec["recordType"]) != each.spec["recordType"]:  # it cannot be changed
                await self._actor.delete(DNS_RECORD, namespace, [each.name])
            await self._bring(request, each)
        await self._delete_others(request, DNS_RECORD, wanted)
        return {}

    async def _make_backup_entry(self, request: StepRequest) -> Document:
        if self.backups is not None and self.backups.has_entries and (bucket := await self._bucket_name()):
            observed = required(request)
            wanted = core_entry(observed, seed_name=self._seed_name, bucket=bucket)
            await self.backups.bring_entry(entry_key(*request.shoot, request.uid), wanted)
        return {}

    async def _make_control_plane(self, request: StepRequest) -> Document:
        if self._acts_on("ControlPlane", request):
            status = await self._infrastructure_status(request)
            await self._bring(request, specs.control_plane(_facts(request), status))
        return {}

    async def _make_network(self, request: StepRequest) -> Document:
        if self._acts_on("Network", request):
            await self._bring(request, specs.network(_facts(request)))
        return {}

    async def _make_operating_system_configs(self, request: StepRequest) -> Document:
        if self._acts_on("OperatingSystemConfig", request):
            wanted = tuple(specs.operating_system_configs(_facts(request)))
            for each in wanted:
                await self._bring(request, each)
        return {}

    async def _make_container_runtimes(self, request: StepRequest) -> Document:
        if self._acts_on("ContainerRuntime", request):
            wanted = tuple(specs.container_runtimes(_facts(request)))
            for each in wanted:
                await self._bring(request, each)
            await self._delete_others(request, "ContainerRuntime", wanted)
        return {}

    async def _make_worker(self, request: StepRequest) -> Document:
        if self._acts_on("Worker", request):
            namespace = technical_id(*request.shoot)
            configs = await self._actor.live("OperatingSystemConfig", namespace)
            facts = await self._namespaces.facts(required(request))
            wanted = specs.worker(
                _facts(request),
                await self._infrastructure_status(request),
                specs.user_data_secrets(configs),
                facts.cloud_profile,
            )
            await self._bring(request, wanted)
        if self._acts_on("OperatingSystemConfig", request):  # machines of former pools are gone by now
            await self._delete_others(
                request, "OperatingSystemConfig", tuple(specs.operating_system_configs(_facts(request)))
            )
        return {}

    async def _make_extensions(self, request: StepRequest, moment: Moment) -> Document:
        if "Extension" not in self._kinds:
            return {}
        registrations = await self._registrations()
        facts = _facts(request)
        for each in specs.extensions(facts, registrations, moment):
            await self._bring(request, each)
        if moment == "AfterKubeAPIServer":
            enabled = specs.enabled(facts.spec, registrations)
            stale = await self._extension_names(facts.namespace, lambda each: each not in enabled)
            await self._actor.delete("Extension", facts.namespace, stale)
        return {}

    async def _read_states(self, request: StepRequest) -> Document:
        entries, resources = await self._actor.states(self._kinds, technical_id(*request.shoot))
        if self.backups is not None and self.backups.has_entries:
            backups = await self.backups.state_of(entry_key(*request.shoot, request.uid).name)
            entries += [] if backups is None else [backups]
        return {EXTENSIONS: sorted_entries(entries), RESOURCES: resources} if entries else {}

    async def _bring(self, request: StepRequest, wanted: ExtensionObject) -> Document:
        """Have an object reconciled; restored, if the shoot comes from another seed."""
        if request.operation != "Restore":
            return await self._actor.reconcile(wanted)
        saved = request.kept.get(EXTENSION_STATES, {})
        entry = entry_of(
            mappings(saved.get(EXTENSIONS)), wanted.kind, wanted.name, only_text(wanted.spec.get("purpose"))
        )
        return await self._actor.restore(wanted, entry, mappings(saved.get(RESOURCES)))

    # ------------------------------------------------------------------------------------------ removal

    async def _delete(self, request: StepRequest, *kinds: str, wait: WaitLimits | None = None) -> Document:
        """Delete all objects of kinds."""
        namespace = technical_id(*request.shoot)
        for kind in kinds:
            if kind in self._kinds:
                names = names_of(await self._actor.live(kind, namespace))
                await self._actor.delete(kind, namespace, names, wait)
        return {}

    async def _delete_others(self, request: StepRequest, kind: str, wanted: Sequence[ExtensionObject]) -> None:
        """Delete the objects of a kind that the shoot has no more use for."""
        namespace, names = technical_id(*request.shoot), {each.name for each in wanted}
        live = await self._actor.live(kind, namespace)
        await self._actor.delete(kind, namespace, [each for each in names_of(live) if each not in names])

    async def _delete_extensions(self, request: StepRequest, moment: Moment) -> Document:
        if "Extension" in self._kinds:
            namespace, registrations = technical_id(*request.shoot), await self._registrations()
            names = await self._extension_names(
                namespace, lambda each: specs.moment_of(registrations, each, "delete") == moment
            )
            await self._actor.delete("Extension", namespace, names)
        return {}

    async def _delete_other_extensions(self, request: StepRequest) -> Document:
        return await self._delete(request, "Extension")

    async def _remove(self, request: StepRequest) -> Document:
        await self._namespaces.remove(request)
        return {}

    async def _force_delete(self, request: StepRequest) -> Document:
        """Delete all objects at once; extensions read in the Cluster that nothing of the shoot is to hold them up."""
        await self._sync_cluster(request)
        kinds = [kind for kind in self._kinds if kind != DNS_RECORD]
        ended = await asyncio.gather(
            *(self._delete(request, kind, wait=FORCED_WAIT) for kind in kinds), return_exceptions=True
        )
        for each in ended:
            if isinstance(each, BaseException):
                raise each
        return {}

    async def _delete_managed_resources(self, request: StepRequest) -> Document:
        await self._forced.delete_managed_resources(technical_id(*request.shoot))
        return {}

    async def _delete_cluster(self, request: StepRequest) -> Document:
        await self._forced.delete_cluster(technical_id(*request.shoot))
        return {}

    async def _delete_core_objects(self, request: StepRequest) -> Document:
        await self._forced.delete_core_objects(technical_id(*request.shoot))
        return {}

    # ------------------------------------------------------------------------------------------ migration

    async def _migrate(self, request: StepRequest, *kinds: str) -> Document:
        namespace = technical_id(*request.shoot)
        for kind in kinds:
            if kind in self._kinds:
                await self._actor.migrate(kind, namespace, names_of(await self._actor.live(kind, namespace)))
        return {}

    async def _migrate_first(self, request: StepRequest) -> Document:
        """Migrate what does not outlive the API server; returns the state of all, for the next seed."""
        await self._sync_cluster(request)
        namespace = technical_id(*request.shoot)
        await self._migrate(request, "ContainerRuntime", "Network", "OperatingSystemConfig", "Worker")
        if "Extension" in self._kinds:
            registrations = await self._registrations()
            handling: Handling = "migrate"
            names = await self._extension_names(
                namespace, lambda each: specs.moment_of(registrations, each, handling) == "BeforeKubeAPIServer"
            )
            await self._actor.migrate("Extension", namespace, names)
        return await self._read_states(request)

    async def _migrate_backup_entry(self, request: StepRequest) -> Document:
        """Hand the entry over; of a shoot that is another seed's already, only what is here of it is let go."""
        key = entry_key(*request.shoot, request.uid)
        if self.backups is None or not self.backups.has_entries:
            return {}
        if request.operation == "Leave":
            await self.backups.release_entry(key.name)
        elif (observed := required(request)).spec_seed != self._seed_name:
            wanted = core_entry(observed, seed_name=observed.spec_seed, bucket=await self._bucket_name())
            await self.backups.migrate_entry(key, wanted)
        return {}

    async def _release(self, request: StepRequest) -> Document:
        """Delete what was migrated; the Infrastructure, and what outlives the API server, are migrated first."""
        await self._delete(request, "ContainerRuntime", "Network", "OperatingSystemConfig", "Worker", "ControlPlane")
        await self._migrate(request, "Extension", "Infrastructure", DNS_RECORD)
        return await self._delete(request, "Extension", "Infrastructure", DNS_RECORD)

    # ------------------------------------------------------------------------------------------ facts

    def _acts_on(self, kind: str, request: StepRequest) -> bool:
        return kind in self._kinds and (kind in WORKERLESS or required(request).has_workers)

    async def _infrastructure_status(self, request: StepRequest) -> object:
        return section(await self._infrastructure(request), "status").get("providerStatus")

    async def _nodes(self, request: StepRequest) -> str:
        return _nodes_of(await self._infrastructure(request)) if "Infrastructure" in self._kinds else ""

    async def _infrastructure(self, request: StepRequest) -> Document:
        path = path_of("Infrastructure", technical_id(*request.shoot), request.shoot[1])
        try:
            return await self._api.get(path) or {}
        except GardenbusError as error:
            raise self._api.failure(error, "The Infrastructure cannot be read") from error

    async def _bucket_name(self) -> str:
        """The name of the seed's bucket, its Seed's uid; "" for a Seed without a backup."""
        try:
            seed = await self._garden.get(ObjectKey("seed", "", self._seed_name))
        except GardenbusError as error:
            raise StepFailed(f"The Seed in the garden cannot be read: {error.message}") from error
        found = seed or {}
        return only_text(section(found, "metadata").get("uid")) if section(found, "spec").get("backup") else ""

    async def _registrations(self) -> Sequence[Document]:
        try:
            return await self._garden.list("controllerregistration")
        except GardenbusError as error:
            raise StepFailed(f"ControllerRegistrations of the garden cannot be read: {error.message}") from error

    async def _enabled_extensions(self, observed: ObservedShoot) -> Sequence[str]:
        if "Extension" not in self._kinds:
            return ()
        return sorted(specs.enabled(observed.spec, await self._registrations()))

    async def _extension_names(self, namespace: str, is_wanted: Callable[[str], bool]) -> list[str]:
        """Names of the Extensions of a namespace whose type is wanted."""
        live = await self._actor.live("Extension", namespace)
        return [name_of(each) for each in live if is_wanted(only_text(section(each, "spec").get("type")))]

    # ------------------------------------------------------------------------------------------ the inner maker's

    async def start(self) -> None:
        """Open what is needed, of both."""
        self._api.open()
        await self.inner.start()

    async def stop(self) -> None:
        """Release it."""
        await self._policy.stop()
        await self.inner.stop()
        await self._api.close()

    async def take_over(self, shoots: Mapping[ShootName, Kept]) -> None:
        """Have the inner maker own what it made: extension objects are found where they are."""
        await self.inner.take_over(shoots)
        self._policy.start()

    @property
    def health_url(self) -> str:
        """URL of the seed API server's `/healthz`."""
        return self.inner.health_url

    @property
    def kubernetes_version(self) -> str:
        """Kubernetes version of the seed."""
        return self.inner.kubernetes_version

    @property
    def healthy_message(self) -> str:
        """Message of conditions that are well."""
        return self.inner.healthy_message

    @property
    def has_kubeconfigs(self) -> bool:
        """True if control planes have API servers."""
        return self.inner.has_kubeconfigs

    async def problems(self, observed: ObservedShoot, kept: Kept) -> dict[str, str]:
        """Problems that the inner maker finds, and those that extensions report."""
        found = await self.inner.problems(observed, kept)
        return {**await self._health.problems(technical_id(*observed.full_name)), **found}

    async def admin_kubeconfig(self, request: KubeconfigRequest) -> Document:
        """Kubeconfig of a shoot for an administrator."""
        return await self.inner.admin_kubeconfig(request)

    async def heartbeats(self) -> Mapping[str, Document]:
        """The Leases that extensions renew in the seed, by namespace. Raises Unavailable without a response in time."""
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                return await self._health.heartbeats()
        except TimeoutError as error:
            raise Unavailable("the seed's API gives no response about heartbeats of extensions") from error

    async def seed_problem(self) -> str | None:
        """Problem of the seed's own components, and of the objects that its API is to have, or None."""
        return await self.inner.seed_problem() or self._policy.problem

    async def ensure_bucket(self, name: str) -> None:
        """Make the backup bucket."""
        await self.inner.ensure_bucket(name)

    async def delete_bucket(self, name: str) -> None:
        """Remove the backup bucket."""
        await self.inner.delete_bucket(name)

    async def delete_backups(self, entry: str) -> None:
        """Remove the backups of a shoot."""
        await self.inner.delete_backups(entry)


def _facts(request: StepRequest) -> ShootFacts:
    return ShootFacts(technical_id(*request.shoot), request.shoot[1], required(request).spec)


def _nodes_of(live: Document) -> str:
    """The network of nodes that an Infrastructure has chosen."""
    status = section(live, "status")
    chosen: object = section(status, "networking").get("nodes")
    first = cast("list[object]", chosen)[0] if isinstance(chosen, list) and chosen else ""
    return only_text(status.get("nodesCIDR")) or only_text(first)
