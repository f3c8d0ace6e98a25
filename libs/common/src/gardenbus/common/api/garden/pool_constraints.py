"""Worker pools against all that a cloud profile states of them beyond the names that it offers.

An image's version may run with some kubelets and container runtimes only, a machine or volume type may be missing in a
zone or begin at a size, and a machine has no more than its CPU and memory to reserve.
Source: Gardener's `plugin/pkg/shoot/validator`, `validateProvider`.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import entry_named, mappings, only_text
from gardenbus.common.api.garden.architectures import architecture_of, architecture_of_type, architectures_of
from gardenbus.common.api.garden.expirable_versions import numbers_of
from gardenbus.common.api.garden.version_constraints import satisfies
from gardenbus.common.api.quantities import parse_quantity

UNAVAILABLE = ("unavailableMachineTypes", "unavailableVolumeTypes")
"""Fields of a zone with the types that it does not have."""

_CONTAINERD: Document = {"name": "containerd"}
"""The container runtime interface of an image, and of a pool, that states none."""

IN_PLACE = ("AutoInPlaceUpdate", "ManualInPlaceUpdate")
"""Strategies of pools whose machines stay when their image changes."""


class PoolConflict(NamedTuple):
    """A field of a worker pool, from its beginning on, and why the profile does not allow its value."""

    field: str
    reason: str


def pool_conflicts(pool: Document, spec: Document, offered: Document) -> Iterator[PoolConflict]:
    """Find all that a pool of a shoot's spec wants in spite of the profile; what that does not list is left out."""
    machine, volume = section(pool, "machine"), section(pool, "volume")
    kind = entry_named(offered.get("machineTypes"), machine.get("type"))
    volume_type = only_text(volume.get("type"))
    zones = _zones(pool, spec, offered)
    yield from _absent("machine.type", machine.get("type"), UNAVAILABLE[0], zones)
    yield from _absent("volume.type", volume_type, UNAVAILABLE[1], zones)
    image = section(machine, "image")
    listed = entry_named(offered.get("machineImages"), image.get("name")).get("versions")
    version = next((one for one in mappings(listed) if one.get("version") == image.get("version")), None)
    if version is not None:
        yield from image_conflicts(version, pool, kubelet_of(pool, spec))
    storage, size = section(kind, "storage"), _amount(volume.get("size"))
    of_machine = storage.get("minSize") if storage.get("type") == volume_type else None
    for given in (of_machine, entry_named(offered.get("volumeTypes"), volume_type).get("minSize")):
        least = _amount(given)
        if volume_type and size is not None and least is not None and size < least:
            yield PoolConflict("volume.size", f"{volume.get('size')} is less than the least size, {given}")
    yield from _reserved(pool, spec, kind)


def least_nodes_conflict(spec: Document, offered: Document) -> str:
    """Say why the least number of nodes of all pools is not allowed; "" where it is.

    A pool's maximum may be above the limit: the cluster autoscaler keeps the total.
    """
    most, pools = section(offered, "limits").get("maxNodesTotal"), mappings(section(spec, "provider").get("workers"))
    least = sum(minimum for pool in pools if isinstance(minimum := pool.get("minimum"), int))
    is_exceeded = isinstance(most, int) and least > most
    return f"{least} nodes at least are more than a shoot may have, {most}" if is_exceeded else ""


def image_conflicts(version: Document, pool: Document, kubelet: str) -> Iterator[PoolConflict]:
    """Find all that stands against a version of an image on a pool: its kubelet, its container runtimes."""
    constraint, cri = only_text(version.get("kubeletVersionConstraint")), section(pool, "cri")
    if constraint and not satisfies(numbers_of(kubelet), constraint):
        yield PoolConflict("machine.image", f"the image runs with kubelets {constraint}, not with {kubelet}")
    name, listed = only_text(cri.get("name")) or _CONTAINERD["name"], mappings(version.get("cri")) or [_CONTAINERD]
    found = next((one for one in listed if one.get("name") == name), None)
    if found is None:
        names = ", ".join(str(one.get("name")) for one in listed)
        yield PoolConflict("cri.name", f"the image has {names}, not {name}")
    runtimes = {one.get("type") for one in mappings((found or {}).get("containerRuntimes"))}
    for index, runtime in enumerate(mappings(cri.get("containerRuntimes")) if found is not None else ()):
        if runtime.get("type") not in runtimes:
            yield PoolConflict(f"cri.containerRuntimes[{index}].type", f"the image does not have {runtime.get('type')}")


def runs_on(version: Document, pool: Document, architecture: str, kubelet: str) -> bool:
    """True when a version of an image runs on a pool."""
    return architecture in architectures_of(version) and next(image_conflicts(version, pool, kubelet), None) is None


def may_become(version: Document, pool: Document, offered: Document, kubelet: str) -> bool:
    """True when a pool may be updated to a version of its image, or may have it already.

    Source: `FilterMachineImageVersions` in Gardener's `pkg/controllermanager/controller/shoot/maintenance/helper`.
    """
    is_runnable = runs_on(version, pool, pool_architecture(pool, offered), kubelet)
    return is_runnable and _has_capabilities(version, pool, offered) and _is_reachable_in_place(version, pool)


def _has_capabilities(version: Document, pool: Document, offered: Document) -> bool:
    """True when a flavor of an image has a value of the machine type for each capability; all, where none is stated."""
    machine = section(entry_named(offered.get("machineTypes"), section(pool, "machine").get("type")), "capabilities")
    defined = {
        only_text(one.get("name")): one.get("values") or () for one in mappings(offered.get("machineCapabilities"))
    }
    return any(
        all(set(flavor.get(name) or values) & set(machine.get(name) or values) for name, values in defined.items())
        for flavor in mappings(version.get("capabilityFlavors")) or [{}]
    )


def _is_reachable_in_place(version: Document, pool: Document) -> bool:
    """False for a version that machines which are updated in place cannot go to from their own."""
    if pool.get("updateStrategy") not in IN_PLACE:
        return True
    own, stated = section(pool, "machine", "image").get("version"), section(version, "inPlaceUpdates")
    least = numbers_of(stated.get("minVersionForUpdate"))
    is_reachable = version.get("version") == own or (bool(least) and least <= numbers_of(own))
    return stated.get("supported") is True and is_reachable


def runnable_images(
    images: Sequence[Document], pool: Document, offered: Document, kubelet: str
) -> Mapping[str, Sequence[Document]]:
    """The versions of images that new machines of a pool run, by the image's name; images without are left out."""
    found = {
        only_text(image.get("name")): [
            one for one in mappings(image.get("versions")) if _may_begin(one, pool, offered, kubelet)
        ]
        for image in images
    }
    return {name: versions for name, versions in found.items() if versions}


def _may_begin(version: Document, pool: Document, offered: Document, kubelet: str) -> bool:
    """True when new machines of a pool may have a version of an image."""
    is_updatable = (
        pool.get("updateStrategy") not in IN_PLACE or section(version, "inPlaceUpdates").get("supported") is True
    )
    is_runnable = runs_on(version, pool, pool_architecture(pool, offered), kubelet)
    return is_updatable and is_runnable and _has_capabilities(version, pool, offered)


def kubelet_of(pool: Document, spec: Document) -> str:
    """The version of a pool's kubelets: its own, else that of the control plane."""
    own = only_text(section(pool, "kubernetes").get("version"))
    return own or only_text(section(spec, "kubernetes").get("version"))


def pool_architecture(pool: Document, offered: Document) -> str:
    """The architecture of a pool: stated, else that of its machine type."""
    machine = section(pool, "machine")
    if machine.get("architecture"):
        return architecture_of(machine)
    return architecture_of_type(entry_named(offered.get("machineTypes"), machine.get("type")), offered)


def is_reserving(kubernetes: Document) -> bool:
    """True when the kubelets of a shoot, or of a pool, reserve something of their machines."""
    kubelet = section(kubernetes, "kubelet")
    return bool(kubelet.get("kubeReserved") or kubelet.get("systemReserved"))


def _zones(pool: Document, spec: Document, offered: Document) -> Sequence[Document]:
    wanted, region = pool.get("zones") or (), entry_named(offered.get("regions"), spec.get("region"))
    return [one for one in mappings(region.get("zones")) if one.get("name") in wanted]


def _absent(field: str, kind: Any, unavailable: str, zones: Sequence[Document]) -> Iterator[PoolConflict]:
    absent = [str(zone.get("name")) for zone in zones if kind and kind in (zone.get(unavailable) or ())]
    if absent:
        yield PoolConflict(field, f"{kind} is not available in {', '.join(absent)}")


def _reserved(pool: Document, spec: Document, machine_type: Document) -> Iterator[PoolConflict]:
    own = section(pool, "kubernetes", "kubelet")
    kubelet = own or section(spec, "kubernetes", "kubelet")
    where = "kubernetes.kubelet" if own else "machine.type"
    for resource in ("cpu", "memory"):
        stated = [_amount(section(kubelet, field).get(resource)) for field in ("kubeReserved", "systemReserved")]
        reserved, capacity = sum(filter(None, stated), Fraction(0)), _amount(machine_type.get(resource))
        if reserved and capacity is not None and reserved >= capacity:
            has = machine_type.get(resource)
            yield PoolConflict(where, f"the kubelet reserves all {resource} of the machine, which has {has}")


def _amount(value: Any) -> Fraction | None:
    """A quantity; None for what is none."""
    try:
        return parse_quantity(value) if isinstance(value, str | int | float) else None
    except ValueError:
        return None
