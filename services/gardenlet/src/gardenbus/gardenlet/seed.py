"""The seed of one gardenlet: what its reconcilers, its heartbeat and its queues share.

It has the ports that the host gives it, the cache of what is announced to it, and the reporter of what happens on it.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from gardenbus.common.api.configuration.gardenlet import GardenletConfiguration
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.clock import Clock
from gardenbus.gardenlet.backend.deployments import DeploymentStore
from gardenbus.gardenlet.backend.port import BackendEvent
from gardenbus.gardenlet.backend.seed_backend import SeedBackend
from gardenbus.gardenlet.clients.lease_heartbeat import HeldLease
from gardenbus.gardenlet.clients.object_lookup import ObjectLookup
from gardenbus.gardenlet.clients.reporter import SeedReporter
from gardenbus.gardenlet.domain.operations import SeedReadiness
from gardenbus.gardenlet.domain.seed_status import gardener_identity, readiness
from gardenbus.gardenlet.ports import GardenletDeployer
from gardenbus.gardenlet.watch.binding_cache import BindingCache

HTTPProbe = Callable[[str], Awaitable[str | None]]
"""Probe of a URL: the problem, or None for status 200."""


def _no_certificate() -> None:
    return None


@dataclass(kw_only=True, eq=False)
class ServedSeed:
    """See the module. `deployments` are the gardenlets deployed into its shoots, `deployer` runs them.

    `follows_alone`: on a connection of its own, which may read the streams of its seed only.
    """

    configuration: GardenletConfiguration
    bus: Bus
    subjects: Subjects
    clock: Clock
    backend: SeedBackend
    deployments: DeploymentStore
    deployer: GardenletDeployer
    holder: str
    """Identity by which its gardenlet holds the Lease."""

    probe: HTTPProbe
    version: str
    certificate_expires_at: Callable[[], datetime | None] = _no_certificate
    follows_alone: bool = False
    events: deque[BackendEvent] = field(default_factory=deque[BackendEvent])
    cache: BindingCache = field(init=False)
    reporter: SeedReporter = field(init=False)
    lookup: ObjectLookup = field(init=False)
    lease: HeldLease = field(init=False)
    identity: Document = field(init=False)
    """`status.gardener`."""

    def __post_init__(self) -> None:
        """Make what it has of its own."""
        self.cache = BindingCache(self.subjects, self.name)
        self.reporter = SeedReporter(bus=self.bus, subjects=self.subjects, seed_name=self.name, clock=self.clock)
        self.lookup = ObjectLookup(self.bus, self.subjects, self.name)
        self.lease = HeldLease(self.clock, self.configuration.lease.grace_period)
        self.identity = gardener_identity(self.name, self.version)

    @property
    def name(self) -> str:
        """Name of the Seed."""
        return self.configuration.seed_name

    @property
    def is_active(self) -> bool:
        """True while its gardenlet holds the Lease, false on standby."""
        return self.reporter.fencing_token is not None and self.lease.is_active

    @property
    def readiness(self) -> SeedReadiness:
        """Readiness of the seed for operations on shoots."""
        return readiness(self.cache.seed, self.identity)

    @property
    def shoots_left(self) -> int:
        """Number of shoots that are here, or of which something is left."""
        return max(len(self.cache.present()), len(self.backend.shoots()))

    async def probe_health(self) -> str | None:
        """The problem of its `/healthz`; None without one."""
        return await self.probe(self.backend.health_url)
