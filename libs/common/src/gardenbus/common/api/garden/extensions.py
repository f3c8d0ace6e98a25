"""Extensions: the kinds and types that Shoots and Seeds use, and which come by themselves.

Source: Gardener's `pkg/utils/gardener/shoot.go` (`ComputeRequiredExtensions…`) and its controller of
ControllerRegistrations.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from gardenbus.common.api.conditions import TRUE, condition_status, conditions_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, only_text
from gardenbus.common.api.keys import ObjectKey

EXTENSION = "Extension"
UNMANAGED = "unmanaged"
"""Type of a DNS provider that nothing manages."""

REGISTRATION_FINALIZER = "core.gardener.cloud/controllerregistration"
"""On a ControllerRegistration until no installation names it, and on a Seed that may have installations."""

EXTENSION_NAMESPACE_PREFIX = "extension-"
"""Of the namespace of an installation's controller; its name follows."""

HEARTBEAT_NAME = "gardener-extension-heartbeat"
"""Name of the Lease that a controller of extensions renews in its namespace."""

EXTENSIONS_READY = "ExtensionsReady"
"""Condition of a Seed on which something may be installed."""

INSTALLATION_CONDITIONS = ("Valid", "Installed", "Healthy", "Progressing")
"""Conditions of each ControllerInstallation; besides there may be `Required`."""

ClusterType = Literal["shoot", "shoot without workers", "seed"]
"""Clusters that an extension may be for: by its `clusterCompatibility` (default: shoots), and `workerlessSupported`."""

CLUSTER_TYPES: Sequence[ClusterType] = ("shoot", "shoot without workers", "seed")

KindType = tuple[str, str]
"""A kind of extension and a type: `("Infrastructure", "aws")`, in messages `Infrastructure/aws`."""


class DNSDomain(NamedTuple):
    """A domain of the landscape, and the type of its DNS provider."""

    domain: str
    provider: str
    zone: str = ""
    credentials: ObjectKey | None = None
    """The object that its records are made with."""


class ShootNeeds(NamedTuple):
    """Needs of a shoot, whatever seed it is on and whatever is registered. Few shoots differ in them."""

    kinds: frozenset[KindType]
    disabled: frozenset[str]
    """Types of the kind Extension that do not come by themselves."""

    cluster: ClusterType


def cluster_type(kind: object, spec: Document) -> ClusterType:
    """The type of clusters that the extensions of an object have to be for."""
    if kind == "Seed":
        return "seed"
    return "shoot" if section(spec, "provider").get("workers") else "shoot without workers"


def takes_workerless(resource: Document, cluster: ClusterType) -> bool:
    """False for a resource of a registration that is for shoots with workers alone, where a shoot has none."""
    return cluster != "shoot without workers" or resource.get("workerlessSupported") is True


def resources_of(registration: Document) -> list[Document]:
    """The resources that a ControllerRegistration lists."""
    return mappings(section(registration, "spec").get("resources"))


def automatic_types(registrations: Iterable[Document], cluster: ClusterType) -> frozenset[str]:
    """Types of the kind Extension that each cluster of a type gets unless it disables them."""
    kind = cluster.partition(" ")[0]
    return frozenset(
        only_text(resource.get("type"))
        for registration in registrations
        for resource in resources_of(registration)
        if resource.get("kind") == EXTENSION and _is_automatic(resource, kind) and takes_workerless(resource, cluster)
    ) - {""}


def automatic_by_cluster(registrations: Sequence[Document]) -> Mapping[ClusterType, frozenset[str]]:
    """`automatic_types` of each type of clusters."""
    return {cluster: automatic_types(registrations, cluster) for cluster in CLUSTER_TYPES}


def enabled_types(spec: Document, registrations: Sequence[Document], cluster: ClusterType) -> frozenset[str]:
    """Types of the kind Extension that a shoot or seed has: what it names, and what comes by itself."""
    stated = mappings(spec.get("extensions"))
    if not stated and not registrations:
        return frozenset()
    named, disabled = _stated(spec)
    return named | (automatic_types(registrations, cluster) - disabled)


def shoot_needs(spec: Document, default_domains: Iterable[DNSDomain] = ()) -> ShootNeeds:
    """The needs of a shoot by its spec. `default_domains` are those of its seed."""
    named, disabled = _stated(spec)
    kinds = {*_of_provider(spec), *_of_dns(spec, default_domains), *((EXTENSION, name) for name in named)}
    return ShootNeeds(
        frozenset((kind, name) for kind, name in kinds if isinstance(name, str) and name),
        disabled,
        cluster_type("Shoot", spec),
    )


def wanted_by_shoot(
    needs: ShootNeeds,
    seed_spec: Document,
    automatic: Mapping[ClusterType, frozenset[str]],
    internal_domain: DNSDomain | None,
) -> frozenset[KindType]:
    """The extensions that a shoot makes its seed need."""
    backup = section(seed_spec, "backup").get("provider")
    internal = None if internal_domain is None or internal_domain.provider == UNMANAGED else internal_domain.provider
    by_seed: Iterable[tuple[str, object]] = (
        ("BackupBucket", backup),
        ("BackupEntry", backup),
        ("ControlPlane", section(seed_spec, "provider").get("type")),  # its webhooks expose control planes
        ("DNSRecord", internal),
    )
    automatic_ones = ((EXTENSION, name) for name in automatic[needs.cluster] - needs.disabled)
    return needs.kinds | _named((*by_seed, *automatic_ones))


def wanted_by_seed(seed_spec: Document, automatic: Mapping[ClusterType, frozenset[str]]) -> frozenset[KindType]:
    """The extensions that a seed needs for itself."""
    provider = section(seed_spec, "provider").get("type")
    named, disabled = _stated(seed_spec)
    return _named((
        ("DNSRecord", section(seed_spec, "dns", "provider").get("type")),
        *((kind, provider) for kind in ("ControlPlane", "Infrastructure", "Worker")),
        *((EXTENSION, name) for name in named | (automatic["seed"] - disabled)),
    ))  # fmt: skip


def is_required(installation: Document) -> bool:
    """True while extension objects are in the seed that only this ControllerInstallation can remove."""
    return condition_status(conditions_of(installation), "Required") == TRUE


def _is_automatic(resource: Document, kind: str) -> bool:
    automatic: object = resource.get("autoEnable")
    is_everywhere = kind == "shoot" and resource.get("globallyEnabled") is True
    return is_everywhere or (isinstance(automatic, list) and kind in automatic)


def _stated(spec: Document) -> tuple[frozenset[str], frozenset[str]]:
    """The types that `spec.extensions` names, and those that it disables."""
    named: set[str] = set()
    disabled: set[str] = set()
    for each in mappings(spec.get("extensions")):
        (disabled if each.get("disabled") is True else named).add(only_text(each.get("type")))
    return frozenset(named - {""}), frozenset(disabled - {""})


def _of_provider(spec: Document) -> Iterator[tuple[str, object]]:
    provider = section(spec, "provider")
    workers = mappings(provider.get("workers"))
    if not workers:
        return
    yield from ((kind, provider.get("type")) for kind in ("ControlPlane", "Infrastructure", "Worker"))
    yield "Network", section(spec, "networking").get("type")
    for worker in workers:
        yield "OperatingSystemConfig", section(worker, "machine", "image").get("name")
        for runtime in mappings(section(worker, "cri").get("containerRuntimes")):
            yield "ContainerRuntime", runtime.get("type")


def _of_dns(spec: Document, default_domains: Iterable[DNSDomain]) -> Iterator[tuple[str, object]]:
    dns = section(spec, "dns")
    primaries = [each.get("type") for each in mappings(dns.get("providers")) if each.get("primary") is True]
    yield from (("DNSRecord", each) for each in primaries if each != UNMANAGED)
    domain = only_text(dns.get("domain"))
    if domain:
        default = next((each for each in default_domains if domain.endswith(f".{each.domain}")), None)
        if default is not None and default.provider != UNMANAGED:
            yield "DNSRecord", default.provider


def _named(pairs: Iterable[tuple[str, object]]) -> frozenset[KindType]:
    return frozenset((kind, name) for kind, name in pairs if isinstance(name, str) and name)
