"""Architectures of processors: what a worker pool requires, and what machine types and images of a profile have.

`amd64` where nothing is stated. Source: Gardener's plugins ShootMutator and ShootValidator.
"""

from collections.abc import Iterator, Sequence
from typing import cast

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import entry_named, mappings, only_text

DEFAULT_ARCHITECTURE = "amd64"


def architecture_of(machine: Document) -> str:
    """The architecture of a worker's machine, or of a machine type, which may have it among its capabilities."""
    capable = _texts(section(machine, "capabilities").get("architecture"))
    return only_text(machine.get("architecture")) or next(iter(capable), DEFAULT_ARCHITECTURE)


def architectures_of(image_version: Document) -> Sequence[str]:
    """Architectures that a version of a machine image has, by itself or in its flavors."""
    if stated := _texts(image_version.get("architectures")):
        return stated
    flavors = mappings(image_version.get("capabilityFlavors"))
    found = dict.fromkeys(name for flavor in flavors for name in _texts(flavor.get("architecture")))
    return list(found) or [DEFAULT_ARCHITECTURE]


def _texts(value: object) -> Sequence[str]:
    return [str(each) for each in cast("list[object]", value)] if isinstance(value, list) else []


def architecture_of_type(machine_type: Document, offered: Document) -> str:
    """The architecture of a machine type: the only one among its capabilities, or the profile's, else the stated."""
    defined = entry_named(offered.get("machineCapabilities"), "architecture").get("values")
    capable = _texts(section(machine_type, "capabilities").get("architecture") or defined)
    return capable[0] if len(capable) == 1 else only_text(machine_type.get("architecture")) or DEFAULT_ARCHITECTURE


def architectures_of_type(name: str, offered: Document) -> Sequence[str]:
    """The architecture of a machine type; none where the profile does not list it."""
    types = [each for each in mappings(offered.get("machineTypes")) if each.get("name") == name]
    return [architecture_of_type(each, offered) for each in types]


def architectures_of_image(image: Document, offered: Document) -> Sequence[str]:
    """Architectures of an image's version; none where the profile does not list it."""
    return list(_of_image(image, offered))


def _of_image(image: Document, offered: Document) -> Iterator[str]:
    for listed in mappings(offered.get("machineImages")):
        for entry in mappings(listed.get("versions")) if listed.get("name") == image.get("name") else ():
            if entry.get("version") == image.get("version"):
                yield from architectures_of(entry)
