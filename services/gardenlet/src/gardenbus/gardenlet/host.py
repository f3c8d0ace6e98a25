"""One process that hosts many gardenlets, so that a laptop can hold hundreds of seeds.

It runs those that it was configured with, and those that any of its gardenlets, or a standby's on the same state
directory, deployed into a shoot (`backend.children`): they come and go while it lives. All share the connection and
the HTTP client, and those that are there at the start the followers of BINDINGS: one consumer for up to a hundred.
"""

import asyncio
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import aiohttp
import structlog

from gardenbus.common.errors import GardenbusError, SettingsInvalid
from gardenbus.common.ports.bus import Bus, Delivered, FollowRestarted, ReplayDone
from gardenbus.common.ports.clock import Clock
from gardenbus.common.resources.document import section
from gardenbus.common.resources.keys import ObjectKey, Subjects
from gardenbus.gardenlet.backend.children import Certificate, Children
from gardenbus.gardenlet.backend.holders import Identity
from gardenbus.gardenlet.backend.local import LocalBackend
from gardenbus.gardenlet.backend.local_files import LocalFiles
from gardenbus.gardenlet.decide.child import Deployed, text_of
from gardenbus.gardenlet.decide.configuration import GardenletConfiguration, parse_configurations
from gardenbus.gardenlet.reconcilers.gardenlet import BINDINGS, Gardenlet

_log = structlog.stdlib.get_logger()

SEEDS_A_FOLLOWER = 100
PROBE_SECONDS = 3.0
DEPLOYMENTS_SECONDS = 1.0
"""How long a deployment that another process made may go unseen."""

_PAUSE_SECONDS = 1.0
_OK = 200


class Deployment:
    """Why a gardenlet runs that this process was not configured with: who deployed what, and its certificate."""

    def __init__(self, parent: str, deployed: Deployed, certificate: Certificate | None) -> None:
        self.parent = parent
        self.deployed = deployed
        self.certificate = certificate


class Lodger:
    """One gardenlet with all that it lives on."""

    def __init__(
        self, gardenlet: Gardenlet, backend: LocalBackend, identity: Identity, deployment: Deployment | None
    ) -> None:
        self.gardenlet = gardenlet
        self.backend = backend
        self.identity = identity
        self.deployment = deployment
        self.tasks: list[asyncio.Task[None]] = []
        self.followed: set[str] = set()
        """The seeds of the follower that serves it; leaving takes itself out."""


class Host:
    """All gardenlets of one process. Implements `reconcilers.managed_seeds.Nursery`."""

    def __init__(
        self,
        configurations: Sequence[GardenletConfiguration],
        *,
        bus: Bus,
        subjects: Subjects,
        clock: Clock,
        state_directory: Path,
    ) -> None:
        self._bus = bus
        self._subjects = subjects
        self._clock = clock
        self._directory = state_directory
        self._session: aiohttp.ClientSession | None = None
        self._tasks: asyncio.TaskGroup | None = None
        self._lodgers: dict[str, Lodger] = {}
        self._readers: dict[str, Children] = {}
        self._refused: dict[str, Deployed] = {}
        self._news = asyncio.Event()
        self._configured = frozenset(each.seed_name for each in configurations)
        self.gardenlets: dict[str, Gardenlet] = {}
        for each in configurations:
            self._admit(each, Identity(self._holders(each.seed_name)), None)

    async def start(self) -> None:
        """Open the backends, of what is deployed too."""
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=PROBE_SECONDS))
        for lodger in self._lodgers.values():
            await lodger.backend.start()
        await self._keep_up()
        for seed, url in self.endpoints().items():
            _log.info("seed.served", seed=seed, health_url=url)

    async def run(self) -> None:
        """Listen and live, until cancelled."""
        seeds = sorted(self._lodgers)
        async with asyncio.TaskGroup() as self._tasks:
            for start in range(0, len(seeds), SEEDS_A_FOLLOWER):
                self._begin(seeds[start : start + SEEDS_A_FOLLOWER])
            self._tasks.create_task(self._keep(), name="deployments")

    async def stop(self) -> None:
        """Let every gardenlet say its last and release its Lease. `run` must have ended."""
        await asyncio.gather(*(gardenlet.stop() for gardenlet in self.gardenlets.values()), return_exceptions=True)

    async def close(self) -> None:
        """Close the backends."""
        if self._session is not None:
            await self._session.close()
        for lodger in self._lodgers.values():
            await lodger.backend.stop()
            lodger.identity.release()

    def unhealthy(self) -> list[str]:
        """Seeds whose gardenlet has missed too many rounds."""
        return [seed for seed, gardenlet in sorted(self.gardenlets.items()) if not gardenlet.is_healthy]

    def endpoints(self) -> Mapping[str, str]:
        """Where each seed's `/healthz` is."""
        return {seed: lodger.backend.health_url for seed, lodger in sorted(self._lodgers.items())}

    # ------------------------------------------------------------------------------------------ the nursery

    def deployments_changed(self) -> None:
        """Look at once at what is deployed."""
        self._news.set()

    def shoots_on(self, seed: str) -> int:
        """How many shoots the gardenlet of a seed was told of; 0 when it does not run here."""
        gardenlet = self.gardenlets.get(seed)
        return len(gardenlet.told.present()) if gardenlet is not None else 0

    # ------------------------------------------------------------------------------------------ coming and going

    async def _keep(self) -> None:
        while True:
            try:
                await self._keep_up()
                self._renew_certificates()
            except (GardenbusError, OSError) as error:
                _log.warning("deployments.interrupted", reason=str(error))
            try:
                async with asyncio.timeout(DEPLOYMENTS_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                continue

    async def _keep_up(self) -> None:
        """Run what is deployed, and nothing that is not."""
        self._news.clear()
        wanted = self._wanted()
        for seed, lodger in tuple(self._lodgers.items()):
            if lodger.deployment is not None and seed not in wanted:
                await self._dismiss(seed)
        for seed, (parent, deployed) in wanted.items():
            lodger = self._lodgers.get(seed)
            if lodger is None:
                await self._take_in(parent, deployed)
            elif lodger.deployment is not None and lodger.deployment.deployed != deployed:
                await self._take_in(parent, deployed, (await self._dismiss(seed, keeps_lease=True)).identity)
            elif lodger.deployment is not None:
                lodger.deployment.parent = parent

    def _wanted(self) -> dict[str, tuple[str, Deployed]]:
        """What is deployed by those that are configured, and by what is deployed: name → who by, and what.

        Where two deployed the same (a shoot moves from the one to the other), the one that runs stays.
        """
        wanted: dict[str, tuple[str, Deployed]] = {}
        parents = sorted(self._configured)
        for parent in parents:
            for deployed in self._reader(parent).all():
                seed = deployed.managed_seed
                if deployed.gardenlet is None or seed in self._configured:
                    continue
                lodger = self._lodgers.get(seed)
                runs_already = (
                    lodger is not None and lodger.deployment is not None and (lodger.deployment.parent == parent)
                )
                if seed not in wanted:
                    parents.append(seed)
                if seed not in wanted or runs_already:
                    wanted[seed] = (parent, deployed)
        return wanted

    async def _take_in(self, parent: str, deployed: Deployed, identity: Identity | None = None) -> None:
        """Run a gardenlet that was deployed."""
        seed = deployed.managed_seed
        if self._refused.get(seed) == deployed:
            return
        try:
            (configuration,) = parse_configurations(text_of(deployed.gardenlet or {}), source=f"gardenlet of {seed}")
        except SettingsInvalid as error:
            self._refused[seed] = deployed
            _log.error("gardenlet.refused", seed=seed, reason="; ".join(error.problems))
            if identity is not None:
                identity.release()
            return
        self._refused.pop(seed, None)
        deployment = Deployment(parent, deployed, self._certificate(deployed, configuration))
        lodger = self._admit(configuration, identity or Identity(self._holders(seed)), deployment)
        try:
            await lodger.backend.start()
        except OSError:
            del self._lodgers[seed], self.gardenlets[seed]
            lodger.identity.release()
            raise
        _log.info("gardenlet.started", seed=seed, parent=parent, health_url=lodger.backend.health_url)
        self._begin([seed])

    async def _dismiss(self, seed: str, *, keeps_lease: bool = False) -> Lodger:
        """End a gardenlet in an orderly way; its Lease is released unless it starts anew at once."""
        lodger = self._lodgers[seed]  # stays known until it has ended: the process may be stopped meanwhile
        lodger.followed.discard(seed)
        for task in lodger.tasks:
            task.cancel()
        await asyncio.gather(*lodger.tasks, return_exceptions=True)
        await lodger.gardenlet.stop(hands_over=keeps_lease)
        await lodger.backend.stop()
        del self._lodgers[seed], self.gardenlets[seed]
        if not keeps_lease:
            lodger.identity.release()
        _log.info("gardenlet.stopped", seed=seed, starts_anew=keeps_lease)
        self._tell_parents(seed)
        return lodger

    def _admit(
        self, configuration: GardenletConfiguration, identity: Identity, deployment: Deployment | None
    ) -> Lodger:
        """Put a gardenlet together."""
        seed = configuration.seed_name
        certificate = deployment.certificate if deployment is not None else None
        files = LocalFiles(self._directory / seed)
        backend = LocalBackend(self._directory / seed, configuration.backend, self._clock, files)
        gardenlet = Gardenlet(
            configuration,
            bus=self._bus,
            subjects=self._subjects,
            clock=self._clock,
            backend=backend,
            identity=identity.name,
            probe=lambda url: self._probe(url, deployment),
            version=package_version(),
            children=Children(files),
            nursery=self,
            certificate_expires_at=lambda: certificate.expires_at if certificate is not None else None,
        )
        lodger = self._lodgers[seed] = Lodger(gardenlet, backend, identity, deployment)
        self.gardenlets[seed] = gardenlet
        return lodger

    def _begin(self, seeds: Sequence[str]) -> None:
        """Have gardenlets live, with one follower; before `run` that is left to it."""
        if self._tasks is None:
            return
        followed = set(seeds)
        follower = self._tasks.create_task(self._follow(followed), name=f"bindings of {seeds[0]}")
        for seed in seeds:
            lodger = self._lodgers[seed]
            lodger.followed = followed
            lodger.tasks = [self._tasks.create_task(lodger.gardenlet.run(), name=f"gardenlet {seed}")]
        if len(seeds) == 1:
            self._lodgers[seeds[0]].tasks.append(follower)

    def _certificate(self, deployed: Deployed, configuration: GardenletConfiguration) -> Certificate | None:
        """The certificate that came with a deployment, or what it was renewed to since."""
        if deployed.bootstrapped_at is None:
            return None
        directory = self._directory / deployed.managed_seed
        directory.mkdir(parents=True, exist_ok=True)
        validity = configuration.certificate_validity
        return Certificate(directory, bootstrapped_at=deployed.bootstrapped_at, validity=validity)

    def _renew_certificates(self) -> None:
        for seed, lodger in self._lodgers.items():
            certificate = lodger.deployment.certificate if lodger.deployment is not None else None
            if certificate is not None and lodger.gardenlet.is_active and certificate.renew_when_due(self._clock.now()):
                _log.info("certificate.renewed", seed=seed, expires_at=certificate.expires_at.isoformat())

    def _tell_parents(self, seed: str) -> None:
        """Have those look again that may have deployed a gardenlet: something of its seed is new."""
        for gardenlet in self.gardenlets.values():
            gardenlet.seed_of_child_changed(seed)

    def _holders(self, seed: str) -> Path:
        return self._directory / ".holders" / seed

    def _reader(self, seed: str) -> Children:
        if seed not in self._readers:
            self._readers[seed] = Children(LocalFiles(self._directory / seed))
        return self._readers[seed]

    # ------------------------------------------------------------------------------------------ listening

    async def _follow(self, seeds: set[str]) -> None:
        """Follow what concerns some seeds; those that leave the set are served by others, or by nobody."""
        while seeds:
            filters = [
                each
                for seed in sorted(seeds)
                for each in (self._subjects.bindings_of(seed), self._subjects.views_of(seed))
            ]
            self._each_replay_began(seeds)
            try:
                async with self._bus.follow(
                    self._subjects.stream(BINDINGS), filters, last_per_subject=True
                ) as follower:
                    async for event in follower:
                        self._dispatch(event, seeds)
            except GardenbusError as error:
                _log.warning("bindings.interrupted", reason=error.message)
            await self._clock.sleep(_PAUSE_SECONDS)

    def _dispatch(self, event: Delivered | ReplayDone | FollowRestarted, seeds: set[str]) -> None:
        if isinstance(event, Delivered):
            seed = event.subject.removeprefix(f"{self._subjects.prefix}.").split(".", 2)[1]
            if seed in seeds:
                self._deliver(event, seed)
        elif isinstance(event, ReplayDone):
            for seed in tuple(seeds):
                self.gardenlets[seed].replay_ended()
        else:
            self._each_replay_began(seeds)

    def _deliver(self, event: Delivered, seed: str) -> None:
        lodger = self._lodgers[seed]
        if lodger.deployment is None or event.subject != self._subjects.view(seed, ObjectKey("seed", "", seed)):
            lodger.gardenlet.deliver(event)
            return
        before = _stage(lodger.gardenlet)
        lodger.gardenlet.deliver(event)
        if _stage(lodger.gardenlet) != before:
            self._tell_parents(seed)

    def _each_replay_began(self, seeds: set[str]) -> None:
        for seed in seeds:
            self.gardenlets[seed].replay_began()

    async def _probe(self, url: str, deployment: Deployment | None) -> str | None:
        """Ask a seed's `/healthz`; of one that was deployed only while it is, and its certificate is good."""
        if deployment is not None:
            deployed = self._reader(deployment.parent).load((deployment.deployed.namespace, deployment.deployed.shoot))
            if deployed is None or deployed.gardenlet is None:
                return "it is not deployed any more"
            if deployment.certificate is not None and deployment.certificate.has_expired(self._clock.now()):
                return f"the client certificate ended at {deployment.certificate.expires_at.isoformat()}"
        assert self._session is not None
        try:
            async with self._session.get(url) as response:
                return None if response.status == _OK else f"{url} answers {response.status}"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            return f"{url} does not answer: {type(error).__name__}"


def _stage(gardenlet: Gardenlet) -> tuple[bool, bool]:
    """What of a Seed its ManagedSeed waits for: whether it is there, and whether it is going."""
    seed = gardenlet.told.seed
    return seed is not None, bool(section(seed or {}, "metadata").get("deletionTimestamp"))


def package_version() -> str:
    """The version that reports carry."""
    try:
        return version("gardenbus-gardenlet")
    except PackageNotFoundError:
        return "0.0.0"
