"""Shoots: a typed view for scheduling and binding."""

import msgspec

from gardenbus.common.api.garden.seeds import AccessRestriction
from gardenbus.common.api.selectors import LabelSelector, LabelSelectorRequirement
from gardenbus.common.api.views import LastOperation, Metadata, TypedView

DEFAULT_SCHEDULER = "default-scheduler"
TESTING_PURPOSE = "testing"
PURPOSES = ("evaluation", TESTING_PURPOSE, "development", "production", "infrastructure")
"""Values of `spec.purpose`."""
UNMANAGED_DNS = "unmanaged"

SPEC_REVERTED = "SpecReverted"
"""Reason of the Event about a shoot of which its seed has run a later generation than the store has."""


class SeedSelector(TypedView, frozen=True):
    """A label selector for seeds, and (in profiles) the provider types that may host."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Labels and values that the seed's must equal."""

    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
    provider_types: tuple[str, ...] = ()
    """Types of seeds that may host, `*` for all. Of profiles only; without it, the own type."""

    @property
    def labels(self) -> LabelSelector:
        """Its label part."""
        return LabelSelector.of(self.match_labels, self.match_expressions)


class CloudProfileReference(TypedView, frozen=True):
    """spec.cloudProfile; an empty kind means CloudProfile."""

    kind: str = ""
    """`CloudProfile` or `NamespacedCloudProfile`."""

    name: str = ""
    """Its name."""


class Worker(TypedView, frozen=True):
    """A worker pool."""

    name: str = ""
    """Its name."""

    zones: tuple[str, ...] = ()
    """Zones of its machines; they count for seeds whose zone selection is `Enforce` or `Prefer`."""

    control_plane: dict[str, object] | None = None
    """Set: the control plane runs on these workers, and the shoot needs no seed."""


class ShootProvider(TypedView, frozen=True):
    """spec.provider."""

    type: str = ""
    """The infrastructure, as `aws`."""

    workers: tuple[Worker, ...] = ()


class ShootNetworking(TypedView, frozen=True):
    """spec.networking."""

    nodes: str | None = None
    """The range of nodes. It must not overlap the seed's ranges."""

    pods: str | None = None
    """The range of pods, likewise."""

    services: str | None = None
    """The range of services, likewise."""

    ip_families: tuple[str, ...] = ()
    """`IPv4`, `IPv6` or both."""


class FailureTolerance(TypedView, frozen=True):
    """Failure that the control plane survives: `node` or `zone`."""

    type: str = ""
    """`node` or `zone`; `zone` needs a seed with three zones."""


class HighAvailability(TypedView, frozen=True):
    """spec.controlPlane.highAvailability."""

    failure_tolerance: FailureTolerance = FailureTolerance()


class ControlPlane(TypedView, frozen=True):
    """spec.controlPlane."""

    high_availability: HighAvailability | None = None
    zones: tuple[str, ...] = ()
    """Zones of the seed for the control plane."""


class Toleration(TypedView, frozen=True):
    """A tolerated taint: its key, and its value."""

    key: str = ""
    """The key of the taint."""

    value: str | None = None
    """Without one, the key is tolerated with any value."""


class DNSProvider(TypedView, frozen=True):
    """One DNS provider."""

    type: str = ""
    """As `aws-route53`; `unmanaged` for none."""


class ShootDNS(TypedView, frozen=True):
    """spec.dns."""

    domain: str | None = None
    """The cluster's own domain. Without one it gets a name below a seed's default domain."""

    providers: tuple[DNSProvider, ...] = ()


class ShootSpec(TypedView, frozen=True):
    """Fields of a Shoot's spec."""

    seed_name: str = ""
    """The seed, written by a bind. A shoot that states it needs no scheduler."""

    scheduler_name: str = ""
    """Scheduler of the shoot; `default-scheduler` unless given."""

    purpose: str = ""
    """`testing` may go to seeds of any region, where others stay near."""

    region: str = ""
    """Region of its machines."""

    cloud_profile: CloudProfileReference | None = None
    cloud_profile_name: str = ""
    """The older form of `spec.cloudProfile`."""

    provider: ShootProvider = ShootProvider()
    networking: ShootNetworking | None = None
    seed_selector: SeedSelector | None = None
    control_plane: ControlPlane | None = None
    tolerations: tuple[Toleration, ...] = ()
    access_restrictions: tuple[AccessRestriction, ...] = ()
    dns: ShootDNS | None = None


class ShootStatusNetworking(TypedView, frozen=True):
    """status.networking: the ranges in use."""

    nodes: tuple[str, ...] = ()
    """Ranges of nodes."""

    pods: tuple[str, ...] = ()
    """Ranges of pods."""

    services: tuple[str, ...] = ()
    """Ranges of services."""


class ShootStatus(TypedView, frozen=True):
    """Fields of a Shoot's status."""

    seed_name: str = ""
    """The seed that runs it: another one than `spec.seedName` while it moves."""

    last_operation: LastOperation | None = None
    networking: ShootStatusNetworking | None = None


class Shoot(TypedView, frozen=True):
    """A Shoot."""

    metadata: Metadata = Metadata()
    spec: ShootSpec = ShootSpec()
    status: ShootStatus = ShootStatus()

    @property
    def scheduler_name(self) -> str:
        """Name of its scheduler."""
        return self.spec.scheduler_name or DEFAULT_SCHEDULER

    @property
    def tolerations(self) -> tuple[tuple[str, str | None], ...]:
        """Key and value of each of its tolerations."""
        return tuple((toleration.key, toleration.value) for toleration in self.spec.tolerations)

    @property
    def is_workerless(self) -> bool:
        """True without worker pools."""
        return not self.spec.provider.workers

    @property
    def is_self_hosted(self) -> bool:
        """True when it runs its own control plane on a worker pool, and needs no seed."""
        return any(worker.control_plane is not None for worker in self.spec.provider.workers)

    @property
    def is_zonal(self) -> bool:
        """True when its control plane must survive the loss of a zone."""
        control_plane = self.spec.control_plane
        return (
            control_plane is not None
            and control_plane.high_availability is not None
            and control_plane.high_availability.failure_tolerance.type == "zone"
        )

    @property
    def ip_families(self) -> tuple[str, ...]:
        """Address families; IPv4 unless stated."""
        networking = self.spec.networking
        return (networking.ip_families if networking else ()) or ("IPv4",)

    @property
    def has_managed_dns(self) -> bool:
        """True when Gardener manages its DNS records (the first provider is not `unmanaged`)."""
        dns = self.spec.dns
        return dns is None or not dns.providers or dns.providers[0].type != UNMANAGED_DNS
