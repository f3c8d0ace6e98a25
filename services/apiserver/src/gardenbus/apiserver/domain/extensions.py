"""Extensions: the kinds and types that an object needs, and those that ControllerRegistrations offer.

Source: Gardener's `plugin/pkg/global/extensionvalidation` and `extensionlabels`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.extensions import (
    EXTENSION,
    UNMANAGED,
    ClusterType,
    cluster_type,
    resources_of,
    takes_workerless,
)
from gardenbus.common.api.shown_values import shown

REGISTRATION = "controllerregistration"


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
        if dns.get("primary") is True and dns.get("type") != UNMANAGED:
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


def registered(registrations: Sequence[Document], cluster: ClusterType) -> frozenset[tuple[str, str]]:
    """Kinds and types that have a primary registration; of the kind Extension those for a type of clusters."""
    return frozenset(
        (str(resource.get("kind")), str(resource.get("type")))
        for registration in registrations
        for resource in resources_of(registration)
        if resource.get("primary") is not False and _is_for(resource, cluster)
    )


def _is_for(resource: Document, cluster: ClusterType) -> bool:
    if resource.get("kind") != EXTENSION:
        return True
    clusters = resource.get("clusterCompatibility") or ("shoot",)
    return (cluster.partition(" ")[0] in clusters) and takes_workerless(resource, cluster)


def _stated_extensions(spec: Document) -> Iterator[NeededExtension]:
    for index, extension in enumerate(mappings(spec.get("extensions"))):
        if extension.get("disabled") is not True:
            yield from _needed(EXTENSION, extension.get("type"), f"spec.extensions[{index}].type")


def _needed(kind: str, of_type: Any, path: str) -> Iterator[NeededExtension]:
    if isinstance(of_type, str) and of_type:
        yield NeededExtension(kind, of_type, path)
