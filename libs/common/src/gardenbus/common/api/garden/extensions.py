"""Extensions: the kinds and types that an object needs, and those that ControllerRegistrations offer.

Source: Gardener's `plugin/pkg/global/extensionvalidation` and `extensionlabels`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, only_text

REGISTRATION = "controllerregistration"
_UNMANAGED = "unmanaged"


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
    for index, extension in enumerate(mappings(spec.get("extensions"))):
        if extension.get("disabled") is not True:
            yield from _needed("Extension", extension.get("type"), f"spec.extensions[{index}].type")
    for index, worker in enumerate(workers):
        path = f"spec.provider.workers[{index}]"
        image = section(worker, "machine", "image").get("name")
        yield from _needed("OperatingSystemConfig", image, f"{path}.machine.image.name")
        for number, runtime in enumerate(mappings(section(worker, "cri").get("containerRuntimes"))):
            yield from _needed("ContainerRuntime", runtime.get("type"), f"{path}.cri.containerRuntimes[{number}].type")


def needed_by_seed(spec: Document) -> Iterator[NeededExtension]:
    """Extensions of a seed."""
    yield from _needed("ControlPlane", section(spec, "provider").get("type"), "spec.provider.type")
    backup = section(spec, "backup").get("provider")
    for kind in ("BackupBucket", "BackupEntry"):
        yield from _needed(kind, backup, "spec.backup.provider")
    if section(spec, "ingress"):
        yield from _needed("DNSRecord", section(spec, "dns", "provider").get("type"), "spec.dns.provider.type")


def needed_by_bucket(spec: Document) -> Iterator[NeededExtension]:
    """Extensions of a BackupBucket."""
    yield from _needed("BackupBucket", section(spec, "provider").get("type"), "spec.provider.type")


def registered(registrations: Sequence[Document]) -> frozenset[tuple[str, str]]:
    """Kinds and types that have a primary registration."""
    return frozenset(
        (str(resource.get("kind")), str(resource.get("type")))
        for registration in registrations
        for resource in mappings(section(registration, "spec").get("resources"))
        if resource.get("primary") is not False
    )


def enabled_types(spec: Document, registrations: Sequence[Document], cluster: str) -> frozenset[str]:
    """Types of the kind Extension that a shoot or seed (`cluster`) has: what it names, and what comes by itself."""
    stated = mappings(spec.get("extensions"))
    if not stated and not registrations:
        return frozenset()
    named = {only_text(each.get("type")) for each in stated if each.get("disabled") is not True}
    disabled = {only_text(each.get("type")) for each in stated if each.get("disabled") is True}
    return frozenset((named | (set(_automatic_types(registrations, cluster)) - disabled)) - {""})


def _automatic_types(registrations: Sequence[Document], cluster: str) -> Iterator[str]:
    for registration in registrations:
        for resource in mappings(section(registration, "spec").get("resources")):
            automatic: Any = resource.get("autoEnable")
            is_everywhere = cluster == "shoot" and resource.get("globallyEnabled") is True
            is_here = isinstance(automatic, list) and cluster in automatic
            if resource.get("kind") == "Extension" and (is_everywhere or is_here):
                yield only_text(resource.get("type"))


def _needed(kind: str, of_type: Any, path: str) -> Iterator[NeededExtension]:
    if isinstance(of_type, str) and of_type:
        yield NeededExtension(kind, of_type, path)
