"""Extensions: the kinds and types that an object needs, and those that ControllerRegistrations offer.

Source: Gardener's `plugin/pkg/global/extensionvalidation` and `extensionlabels`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, only_text
from gardenbus.common.api.shown_values import shown

REGISTRATION = "controllerregistration"
EXTENSION = "Extension"
_UNMANAGED = "unmanaged"

ClusterType = Literal["shoot", "shoot without workers", "seed"]
"""Clusters that an extension may be for: by its `clusterCompatibility` (default: shoots), and `workerlessSupported`."""


class NeededExtension(NamedTuple):
    """A kind of extension, and the field that names its type."""

    kind: str
    type: str
    path: str


def needed_by_shoot(spec: Document) -> Iterator[NeededExtension]:
    """Extensions of a shoot; one without workers has no machines and no network of its own."""
    provider = section(spec, "provider")
    workers = mappings(provider.get("workers"))
    if workers:
        for kind in ("ControlPlane", "Infrastructure", "Worker"):
            yield from _needed(kind, provider.get("type"), "spec.provider.type")
        yield from _needed("Network", section(spec, "networking").get("type"), "spec.networking.type")
    for index, dns in enumerate(mappings(section(spec, "dns").get("providers"))):
        if dns.get("primary") is True and dns.get("type") != _UNMANAGED:
            yield from _needed("DNSRecord", dns.get("type"), f"spec.dns.providers[{index}].type")
    yield from _stated_extensions(spec)
    for index, worker in enumerate(workers):
        path = f"spec.provider.workers[{index}]"
        image = section(worker, "machine", "image").get("name")
        yield from _needed("OperatingSystemConfig", image, f"{path}.machine.image.name")
        for number, runtime in enumerate(mappings(section(worker, "cri").get("containerRuntimes"))):
            yield from _needed("ContainerRuntime", runtime.get("type"), f"{path}.cri.containerRuntimes[{number}].type")
        if worker.get("controlPlane"):
            exposure = section(worker, "controlPlane", "exposure", "extension").get("type")
            yield from _needed("SelfHostedShootExposure", exposure, f"{path}.controlPlane.exposure.extension.type")


def needed_by_seed(spec: Document) -> Iterator[NeededExtension]:
    """Extensions of a seed."""
    yield from _needed("ControlPlane", section(spec, "provider").get("type"), "spec.provider.type")
    backup = section(spec, "backup").get("provider")
    for kind in ("BackupBucket", "BackupEntry"):
        yield from _needed(kind, backup, "spec.backup.provider")
    if section(spec, "ingress"):
        yield from _needed("DNSRecord", section(spec, "dns", "provider").get("type"), "spec.dns.provider.type")
    yield from _stated_extensions(spec)


def needed_by_bucket(spec: Document) -> Iterator[NeededExtension]:
    """Extensions of a BackupBucket."""
    yield from _needed("BackupBucket", section(spec, "provider").get("type"), "spec.provider.type")


def needed_by_entry(bucket_spec: Document) -> Iterator[NeededExtension]:
    """Extensions of a BackupEntry, by the spec of its bucket."""
    yield from _needed("BackupEntry", section(bucket_spec, "provider").get("type"), "spec.bucketName")


NEEDED: Mapping[str, Callable[[Document], Iterator[NeededExtension]]] = {
    "Shoot": needed_by_shoot,
    "Seed": needed_by_seed,
    "BackupBucket": needed_by_bucket,
    "BackupEntry": needed_by_entry,
}
"""Extensions that objects of a kind need, by their spec (of a BackupEntry that of its bucket)."""


def missing_extensions(kind: str, spec: Document, registrations: Sequence[Document]) -> Iterator[str]:
    """Yield each extension that an object needs and no registration offers, with the field that names it."""
    cluster = cluster_type(kind, spec)
    offered = registered(registrations, cluster)
    for need in NEEDED[kind](spec):
        if (need.kind, need.type) not in offered:
            whose = f" for a {cluster}" if need.kind == EXTENSION else ""
            yield f"{need.path}: no {need.kind} of the type {shown(need.type)}{whose}"


def cluster_type(kind: object, spec: Document) -> ClusterType:
    """The type of clusters that the extensions of an object have to be for."""
    if kind == "Seed":
        return "seed"
    return "shoot" if section(spec, "provider").get("workers") else "shoot without workers"


def registered(registrations: Sequence[Document], cluster: ClusterType) -> frozenset[tuple[str, str]]:
    """Kinds and types that have a primary registration; of the kind Extension those for a type of clusters."""
    return frozenset(
        (str(resource.get("kind")), str(resource.get("type")))
        for registration in registrations
        for resource in mappings(section(registration, "spec").get("resources"))
        if resource.get("primary") is not False and _is_for(resource, cluster)
    )


def _is_for(resource: Document, cluster: ClusterType) -> bool:
    if resource.get("kind") != EXTENSION:
        return True
    clusters = resource.get("clusterCompatibility") or ("shoot",)
    return (cluster.partition(" ")[0] in clusters) and _takes_workerless(resource, cluster)


def _takes_workerless(resource: Document, cluster: ClusterType) -> bool:
    return cluster != "shoot without workers" or resource.get("workerlessSupported") is True


def enabled_types(spec: Document, registrations: Sequence[Document], cluster: ClusterType) -> frozenset[str]:
    """Types of the kind Extension that a shoot or seed has: what it names, and what comes by itself."""
    stated = mappings(spec.get("extensions"))
    if not stated and not registrations:
        return frozenset()
    named = {only_text(each.get("type")) for each in stated if each.get("disabled") is not True}
    disabled = {only_text(each.get("type")) for each in stated if each.get("disabled") is True}
    return frozenset((named | (set(_automatic_types(registrations, cluster)) - disabled)) - {""})


def _automatic_types(registrations: Sequence[Document], cluster: ClusterType) -> Iterator[str]:
    kind = cluster.partition(" ")[0]
    for registration in registrations:
        for resource in mappings(section(registration, "spec").get("resources")):
            automatic: Any = resource.get("autoEnable")
            is_everywhere = kind == "shoot" and resource.get("globallyEnabled") is True
            is_here = isinstance(automatic, list) and kind in automatic
            if (
                resource.get("kind") == EXTENSION
                and (is_everywhere or is_here)
                and _takes_workerless(resource, cluster)
            ):
                yield only_text(resource.get("type"))


def _stated_extensions(spec: Document) -> Iterator[NeededExtension]:
    for index, extension in enumerate(mappings(spec.get("extensions"))):
        if extension.get("disabled") is not True:
            yield from _needed(EXTENSION, extension.get("type"), f"spec.extensions[{index}].type")


def _needed(kind: str, of_type: Any, path: str) -> Iterator[NeededExtension]:
    if isinstance(of_type, str) and of_type:
        yield NeededExtension(kind, of_type, path)
