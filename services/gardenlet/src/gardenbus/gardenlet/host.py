"""A process that hosts many gardenlets, so that a laptop can run hundreds of seeds.

It runs the configured gardenlets, and those that they, or replicas on the same state directory, have deployed into
shoots (`backend.deployments`); the latter come and go. All share the HTTP client; those without credentials of their
own (`agent.connections`) share the process's connection and the followers of BINDINGS too.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import aiohttp
import structlog

from gardenbus.agent.certificate_manager import BROUGHT, has_credentials, remove_certificate, write_token
from gardenbus.agent.connections import OwnConnection
from gardenbus.agent.domain.rotation import is_renewal_demanded
from gardenbus.agent.follower import RESTART_SECONDS, follow_last
from gardenbus.agent.host import AgentHost, HostPorts, connect, in_chunks
from gardenbus.agent.work_loop import WorkLoop
from gardenbus.common.api.configuration.gardenlet import BACKUP_ENTRY, GardenletConfiguration, parse_configurations
from gardenbus.common.api.document import section
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.controller.api_client import ApiserverClient
from gardenbus.common.errors import GardenbusError, SettingsInvalid, Unavailable
from gardenbus.common.ports.bus import StreamMessage
from gardenbus.gardenlet.backend.deployments import DeploymentStore
from gardenbus.gardenlet.backend.extensions.overlay import with_extensions
from gardenbus.gardenlet.backend.holder_identity import HolderIdentity
from gardenbus.gardenlet.backend.installed import new_maker
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.backend.port import MOST_EVENTS, MakerContext
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.clients.extension_requests import ExtensionRequests
from gardenbus.gardenlet.clients.object_lookup import ObjectLookup
from gardenbus.gardenlet.domain.deployments import GardenletDeployment, text_of
from gardenbus.gardenlet.gardenlet import Gardenlet
from gardenbus.gardenlet.requests.admin_kubeconfigs import AdminKubeconfigHandler
from gardenbus.gardenlet.resource_manager.manager import ManagerContext, run_resource_manager
from gardenbus.gardenlet.seed import ServedSeed
from gardenbus.gardenlet.watch.binding_cache import BINDINGS

_log = structlog.stdlib.get_logger()

PROBE_SECONDS = 3.0
TOKEN_SECONDS = 10.0
"""Pause after a request for a bootstrap token, of the same seed."""

DEPLOYMENTS_SECONDS = 1.0
"""Interval at which deployments made by other processes are read."""

SERVE_RETRY_SECONDS = 1.0
_OK = 200


@dataclass
class HostedDeployment:
    """Origin of a deployed gardenlet: the seed that deployed it, and the deployment."""

    parent: str
    deployed: GardenletDeployment


@dataclass
class HostedGardenlet:
    """One gardenlet with its backend, identity and tasks."""

    gardenlet: Gardenlet
    backend: SeedBackend
    identity: HolderIdentity
    deployment: HostedDeployment | None
    connection: OwnConnection | None
    """Its own; None for the process's."""
    tasks: list[asyncio.Task[None]] = field(default_factory=list["asyncio.Task[None]"])
    followed: set[str] = field(default_factory=set[str])
    """Seeds of the shared follower; a gardenlet that stops removes its own."""


class GardenletHost(AgentHost):
    """All gardenlets of one process, each made by `gardenlet_of`. Implements `ports.GardenletDeployer`."""

    def __init__(
        self,
        configurations: Sequence[GardenletConfiguration],
        ports: HostPorts,
        gardenlet_of: Callable[[ServedSeed], Gardenlet],
    ) -> None:
        super().__init__(ports)
        self._gardenlet_of = gardenlet_of
        self._session: aiohttp.ClientSession | None = None
        self._hosted: dict[str, HostedGardenlet] = {}
        self._deployment_stores: dict[str, DeploymentStore] = {}
        self._invalid: dict[str, GardenletDeployment] = {}
        self._token_not_before: dict[str, float] = {}
        self._rejected: dict[str, tuple[str, ...]] = {}
        """Credentials of deployed gardenlets that cannot be used: tried again, and logged when the problem changes."""
        self._deployments_loop = WorkLoop("deployments", self._sync, lambda: DEPLOYMENTS_SECONDS)
        self._configured = frozenset(each.seed_name for each in configurations)
        self.gardenlets: dict[str, Gardenlet] = {}
        for each in configurations:
            self._create(each, self._identity(each.seed_name), None)

    async def start(self) -> None:
        """Open the backends, also of deployed gardenlets."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PROBE_SECONDS))
        for hosted in self._hosted.values():
            await hosted.backend.start()
            connect(hosted.connection)
        await self._sync_deployments()
        for seed, url in self.endpoints().items():
            _log.info("seed.served", seed=seed, health_url=url)

    def _start_agents(self) -> None:
        own = sorted(seed for seed, hosted in self._hosted.items() if hosted.connection is not None)
        for seeds in (*in_chunks(sorted(self._hosted.keys() - set(own))), *([seed] for seed in own)):
            self._run_hosted(seeds)
        self._spawn("deployments", self._deployments_loop.run())

    async def stop(self) -> None:
        """Flush every gardenlet's reports and release its Lease. `run` must have ended."""
        await asyncio.gather(*(gardenlet.stop() for gardenlet in self.gardenlets.values()), return_exceptions=True)

    async def close(self) -> None:
        """Close the backends, all at once: what one of them ends may take longer than the process is given."""
        if self._session is not None:
            await self._session.close()
        await asyncio.gather(*(hosted.backend.stop() for hosted in self._hosted.values()))
        for hosted in self._hosted.values():
            hosted.identity.release()
        await asyncio.gather(*(each.connection.close() for each in self._hosted.values() if each.connection))

    def unhealthy(self) -> list[str]:
        """Seeds whose gardenlet has missed too many heartbeats."""
        return [seed for seed, gardenlet in sorted(self.gardenlets.items()) if not gardenlet.is_healthy]

    def without_heartbeat(self) -> list[str]:
        """Configured seeds whose gardenlet has had no successful heartbeat round since the process started."""
        return [
            seed
            for seed, gardenlet in sorted(self.gardenlets.items())
            if seed in self._configured and not gardenlet.has_begun
        ]

    def health(self) -> Mapping[str, str | None]:
        """Health of every seed's gardenlet: None, or its problem."""
        late = set(self.unhealthy())
        return {seed: "its Lease was not renewed for too long" if seed in late else None for seed in self.gardenlets}

    def readiness(self) -> Mapping[str, str | None]:
        """Readiness of every seed's gardenlet: its health, once it has begun."""
        waiting = set(self.without_heartbeat())
        return {
            seed: self._connection_problem(seed) or ("no heartbeat yet" if seed in waiting else problem)
            for seed, problem in self.health().items()
        }

    def connection_of(self, seed: str) -> OwnConnection | None:
        """The connection of a gardenlet with credentials of its own; None for the process's."""
        return self._hosted[seed].connection

    def _connection_problem(self, seed: str) -> str | None:
        connection = self.connection_of(seed)
        if connection is None or self.gardenlets[seed].cache.seed_is_gone:  # it is let in no longer, and not needed
            return None
        return connection.problem

    def endpoints(self) -> Mapping[str, str]:
        """URL of each seed's `/healthz`."""
        return {seed: hosted.backend.health_url for seed, hosted in sorted(self._hosted.items())}

    def deployments_changed(self) -> None:
        """Sync the deployments now."""
        self._deployments_loop.trigger()

    def shoots_on(self, seed: str) -> int:
        """Number of shoots bound to a seed; 0 when its gardenlet does not run here."""
        gardenlet = self.gardenlets.get(seed)
        return len(gardenlet.cache.present()) if gardenlet is not None else 0

    def remove_credentials(self, seed: str) -> None:
        """Remove what the gardenlet of a removed Seed came in by: it is revoked. Raises OSError."""
        if seed not in self._hosted:
            remove_certificate(self._directory / seed)

    # ------------------------------------------------------------------------------------------ deployments

    async def _sync(self) -> None:
        await self._sync_deployments()
        for hosted in tuple(self._hosted.values()):
            deployment, connection = hosted.deployment, hosted.connection
            if connection and connection.is_rejected and hosted.gardenlet.cache.seed_is_gone:
                connection.remove_certificate()
            since = deployment.deployed.bootstrapped_at if deployment is not None else None
            if deployment and connection and since and connection.needs_token(since):
                await self._give_token(deployment.parent, deployment.deployed.managed_seed)

    async def _sync_deployments(self) -> None:
        """Start and stop deployed gardenlets until they match the deployments."""
        desired = self._desired_deployments()
        for seed, hosted in tuple(self._hosted.items()):
            if hosted.deployment is not None and seed not in desired:
                await self._stop_deployed(seed)
        for seed, (parent, deployed) in desired.items():
            hosted = self._hosted.get(seed)
            if hosted is None:
                await self._start_deployed(parent, deployed)
            elif hosted.deployment is not None and hosted.deployment.deployed != deployed:
                stopped = await self._stop_deployed(seed, keeps_lease=True)
                await self._start_deployed(parent, deployed, stopped.identity)
            elif hosted.deployment is not None:
                hosted.deployment.parent = parent

    def _desired_deployments(self) -> dict[str, tuple[str, GardenletDeployment]]:
        """Deployments of all gardenlets here, transitively: seed → (parent, deployment).

        A seed deployed by two parents (its shoot moves between them) stays with the one whose gardenlet runs.
        """
        desired: dict[str, tuple[str, GardenletDeployment]] = {}
        parents = sorted(self._configured)
        for parent in parents:
            for deployed in self._deployments_of(parent).all():
                seed = deployed.managed_seed
                if deployed.gardenlet is None or seed in self._configured:
                    continue
                hosted = self._hosted.get(seed)
                runs_already = (
                    hosted is not None and hosted.deployment is not None and hosted.deployment.parent == parent
                )
                if seed not in desired:
                    parents.append(seed)
                if seed not in desired or runs_already:
                    desired[seed] = (parent, deployed)
        return desired

    async def _start_deployed(
        self, parent: str, deployed: GardenletDeployment, identity: HolderIdentity | None = None
    ) -> None:
        """Start a deployed gardenlet; an invalid configuration is logged once."""
        seed = deployed.managed_seed
        if self._invalid.get(seed) == deployed:
            return
        try:
            configuration = _configuration_of(deployed)
        except SettingsInvalid as error:
            self._invalid[seed] = deployed
            _log.error("gardenlet.rejected", seed=seed, reason="; ".join(error.problems))
            if identity is not None:
                identity.release()
            return
        self._invalid.pop(seed, None)
        if not await self._has_way_in(parent, deployed):
            if identity is not None:
                identity.release()
            return
        deployment = HostedDeployment(parent, deployed)
        identity = identity or self._identity(seed)
        try:
            hosted = self._create(configuration, identity, deployment)
        except SettingsInvalid as error:
            identity.release()
            self._reject(seed, error.problems)
            return
        self._rejected.pop(seed, None)
        try:
            await hosted.backend.start()
        except OSError:
            del self._hosted[seed], self.gardenlets[seed]
            hosted.identity.release()
            raise
        connect(hosted.connection)
        _log.info("gardenlet.started", seed=seed, parent=parent, health_url=hosted.backend.health_url)
        if self._is_running:
            self._run_hosted([seed])

    def _reject(self, seed: str, problems: tuple[str, ...]) -> None:
        """Log why a deployed gardenlet has no credentials, unless that is known."""
        if self._rejected.get(seed) != problems:
            _log.error("gardenlet.rejected", seed=seed, reason="; ".join(problems))
        self._rejected[seed] = problems

    async def _stop_deployed(self, seed: str, *, keeps_lease: bool = False) -> HostedGardenlet:
        """Stop a gardenlet gracefully; its Lease is released unless it restarts at once."""
        hosted = self._hosted[seed]  # removed only once it has ended: the process may be stopped meanwhile
        hosted.followed.discard(seed)
        for task in hosted.tasks:
            task.cancel()
        await asyncio.gather(*hosted.tasks, return_exceptions=True)
        await hosted.gardenlet.stop(hands_over=keeps_lease)
        await hosted.backend.stop()
        if hosted.connection is not None:
            await hosted.connection.close()
        del self._hosted[seed], self.gardenlets[seed]
        if not keeps_lease:
            hosted.identity.release()
        _log.info("gardenlet.stopped", seed=seed, restarts=keeps_lease)
        self.notify_parents(seed)
        return hosted

    async def _has_way_in(self, parent: str, deployed: GardenletDeployment) -> bool:
        """Have a bootstrap token lie ready for a gardenlet without a certificate, where its parent has one itself."""
        directory = self._directory / deployed.managed_seed
        if self._connection_to(parent) is None or has_credentials(directory, self._clock.now()):
            return True
        if deployed.bootstrapped_at is None:
            own = " or ".join(BROUGHT)
            self._reject(
                deployed.managed_seed, (f"spec.gardenlet.bootstrap is None: {own} of it belongs into {directory}",)
            )
            return False
        return await self._give_token(parent, deployed.managed_seed)

    def _connection_to(self, parent: str) -> OwnConnection | None:
        """The connection of a parent that has one of its own."""
        hosted = self._hosted.get(parent)
        return hosted.connection if hosted is not None else None

    async def _give_token(self, parent: str, seed: str) -> bool:
        """Have the parent request a bootstrap token of a seed, and lay it ready; returns whether there is one."""
        connection, now = self._connection_to(parent), self._clock.monotonic()
        if connection is None or now < self._token_not_before.get(seed, 0.0):
            return False
        self._token_not_before[seed] = now + TOKEN_SECONDS
        client = ApiserverClient(connection.bus, self._subjects, user=connection.principal.user)
        try:
            response = await client.request("token.create", {"seed": seed})
        except GardenbusError as error:
            _log.warning("token.missing", seed=seed, parent=parent, reason=error.message)
            return False
        write_token(self._directory / seed, response["token"])
        _log.info("token.created", seed=seed, parent=parent)
        return True

    def _deployments_of(self, seed: str) -> DeploymentStore:
        if seed not in self._deployment_stores:
            self._deployment_stores[seed] = DeploymentStore(LocalFiles(self._directory / seed))
        return self._deployment_stores[seed]

    # ------------------------------------------------------------------------------------------ hosted gardenlets

    def _create(
        self, configuration: GardenletConfiguration, identity: HolderIdentity, deployment: HostedDeployment | None
    ) -> HostedGardenlet:
        """Build a gardenlet with its backend."""
        seed = configuration.seed_name
        files = LocalFiles(self._directory / seed)
        connection = self._own_connection(Principal("gardenlet", seed), files.directory, configuration.certificate)
        bus = connection.bus if connection is not None else self._bus
        context = MakerContext(
            seed_name=seed,
            directory=files.directory,
            settings=configuration.backend,
            clock=self._clock,
            owned=files.owned,
            garden=ObjectLookup(bus, self._subjects, seed),
            events=deque(maxlen=MOST_EVENTS),
            extension=ExtensionRequests(bus, self._subjects, seed),
            keeps_backups=BACKUP_ENTRY in configuration.extensions.kinds,
        )
        maker = with_extensions(new_maker(context), context, configuration.extensions)
        backend = SeedBackend(maker, files, self._clock)
        served = ServedSeed(
            configuration=configuration,
            bus=bus,
            subjects=self._subjects,
            clock=self._clock,
            backend=backend,
            deployments=DeploymentStore(files),
            deployer=self,
            holder=identity.name,
            probe=lambda url: self._probe(url, deployment),
            version=package_version(),
            certificate_expires_at=lambda: connection.certificate_expires_at if connection is not None else None,
            follows_alone=connection is not None,
            events=context.events,
        )
        gardenlet = self._gardenlet_of(served)
        hosted = self._hosted[seed] = HostedGardenlet(gardenlet, backend, identity, deployment, connection)
        if connection is not None:
            connection.is_renewal_demanded = lambda: is_renewal_demanded(gardenlet.cache.seed)
        self.gardenlets[seed] = gardenlet
        return hosted

    def _identity(self, seed: str) -> HolderIdentity:
        return HolderIdentity(self._directory / ".holders" / seed)

    def _run_hosted(self, seeds: Sequence[str]) -> None:
        """Run gardenlets with one shared follower, or one with its own."""
        consumer = _BindingConsumer(self, set(seeds))
        follower = self._spawn(f"bindings of {seeds[0]}", self._following(consumer, self._hosted[seeds[0]]))
        for seed in seeds:
            hosted = self._hosted[seed]
            hosted.followed = consumer.seeds
            hosted.tasks = [self._spawn(f"gardenlet {seed}", _run(hosted))]
            hosted.tasks += self._run_resource_manager(seed, hosted)
            if hosted.backend.maker.has_kubeconfigs:
                hosted.tasks.append(self._spawn(f"requests to {seed}", self._serve(seed, hosted)))
        if len(seeds) == 1:
            self._hosted[seeds[0]].tasks.append(follower)

    def _run_resource_manager(self, seed: str, hosted: HostedGardenlet) -> list[asyncio.Task[None]]:
        """Run the resource manager of a seed whose configuration names its Kubernetes API, while it is active."""
        extensions = hosted.gardenlet.configuration.extensions
        if not extensions.runs_resource_manager:
            return []
        kubeconfig = self._directory / seed / extensions.kubeconfig
        context = ManagerContext(seed, kubeconfig, hosted.backend, self._clock)
        work = hosted.gardenlet.activity.run_while(lambda: run_resource_manager(context))
        return [self._spawn(f"resource manager of {seed}", work)]

    def _following(self, consumer: "_BindingConsumer", first: HostedGardenlet) -> Coroutine[Any, Any, None]:
        stream = self._subjects.stream(BINDINGS)
        if first.connection is None:
            return follow_last(self._bus, self._clock, stream, consumer.filters, consumer)
        bus, gardenlet = first.connection.bus, first.gardenlet

        async def follow() -> None:
            while True:
                await follow_last(
                    bus, self._clock, stream, lambda: consumer.filters() if gardenlet.is_active else (), consumer
                )
                await self._clock.sleep(RESTART_SECONDS)

        return gardenlet.activity.run_while(follow)

    async def _serve(self, seed: str, hosted: HostedGardenlet) -> None:
        """Serve the requests for kubeconfigs of the seed's shoots, as soon as the bus lets it."""
        handlers = {self._subjects.admin_kubeconfigs_of(seed): AdminKubeconfigHandler(hosted.backend)}
        bus = hosted.connection.bus if hosted.connection is not None else self._bus
        about = {"seed": seed, "answers": "JSON", "described-in": "docs/reference/asyncapi.yaml"}
        while True:
            try:
                await bus.serve(f"gardenlet-{seed}", "1.0.0", handlers, metadata=about)
            except Unavailable as error:
                _log.info("requests.not_served", seed=seed, reason=error.message)
                await self._clock.sleep(SERVE_RETRY_SECONDS)
            else:
                return

    def subjects_of(self, seed: str) -> tuple[str, str]:
        """Subjects of a seed in BINDINGS."""
        return self._subjects.bindings_of(seed), self._subjects.views_of(seed)

    def seed_of(self, message: StreamMessage) -> str:
        """Seed that a message of BINDINGS is addressed to."""
        return message.subject.removeprefix(f"{self._subjects.prefix}.").split(".", 2)[1]

    def deliver(self, seed: str, message: StreamMessage) -> None:
        """Deliver a message to a seed's gardenlet; parents are notified of a change of a deployed Seed."""
        hosted = self._hosted[seed]
        if hosted.deployment is None or message.subject != self._subjects.view(seed, ObjectKey("seed", "", seed)):
            hosted.gardenlet.deliver(message)
            return
        before = _stage(hosted.gardenlet)
        hosted.gardenlet.deliver(message)
        if _stage(hosted.gardenlet) != before:
            self.notify_parents(seed)

    def notify_parents(self, seed: str) -> None:
        """Enqueue the ManagedSeed of a deployed gardenlet in every gardenlet that may have deployed it."""
        for gardenlet in self.gardenlets.values():
            gardenlet.deployed_seed_changed(seed)

    async def _probe(self, url: str, deployment: HostedDeployment | None) -> str | None:
        """Probe a seed's `/healthz`; a deployed gardenlet also needs its deployment."""
        if deployment is not None:
            shoot = (deployment.deployed.namespace, deployment.deployed.shoot)
            deployed = self._deployments_of(deployment.parent).load(shoot)
            if deployed is None or deployed.gardenlet is None:
                return "it is not deployed any more"
        assert self._session is not None
        try:
            async with self._session.get(url) as response:
                return None if response.status == _OK else f"{url} responded with {response.status}"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return f"{url} does not respond: {type(error).__name__}"


def _configuration_of(deployed: GardenletDeployment) -> GardenletConfiguration:
    """The configuration of a deployed gardenlet; fields that do not exist are logged. Raises SettingsInvalid."""
    text, source = text_of(deployed.gardenlet or {}), f"gardenlet of {deployed.managed_seed}"
    try:
        (configuration,) = parse_configurations(text, source=source)
    except SettingsInvalid as error:
        (configuration,) = parse_configurations(text, source=source, is_lenient=True)
        _log.warning("gardenlet.fields_unknown", seed=deployed.managed_seed, reason="; ".join(error.problems))
    return configuration


async def _run(hosted: HostedGardenlet) -> None:
    if hosted.connection is not None:
        await hosted.connection.opened()  # else its first heartbeat is missed, and a round passes
    await hosted.gardenlet.run()


class _BindingConsumer:
    """Consumer of BINDINGS for the seeds of one follower; a seed removed from the set is no longer served."""

    def __init__(self, host: GardenletHost, seeds: set[str]) -> None:
        self._host = host
        self.seeds = seeds

    def filters(self) -> list[str]:
        return [each for seed in sorted(self.seeds) for each in self._host.subjects_of(seed)]

    def replay_began(self) -> None:
        for seed in self.seeds:
            self._host.gardenlets[seed].replay_began()

    async def deliver(self, message: StreamMessage) -> None:
        seed = self._host.seed_of(message)
        if seed in self.seeds:
            self._host.deliver(seed, message)

    async def replay_ended(self) -> None:
        for seed in tuple(self.seeds):
            self._host.gardenlets[seed].replay_ended()


def _stage(gardenlet: Gardenlet) -> tuple[bool, bool]:
    """Existence and deletion of a Seed: what its ManagedSeed waits for."""
    seed = gardenlet.cache.seed
    return seed is not None, bool(section(seed or {}, "metadata").get("deletionTimestamp"))


def package_version() -> str:
    """Version of this package, as reported in status.gardener."""
    try:
        return version("gardenbus-gardenlet")
    except PackageNotFoundError:
        return "0.0.0"
