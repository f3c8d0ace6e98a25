"""Parts of a cloud profile: what a profile offers, and what a shoot uses of it.

Both sides name a part in the same manner, so that the store can index shoots by the parts that they use, and the writer
of a profile can query the users of what is removed.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings, only_text
from gardenbus.common.api.keys import ObjectKey

VERSIONS = "kubernetes.versions"
REGIONS = "regions"
MACHINE_TYPES = "machineTypes"
MACHINE_IMAGES = "machineImages"
VOLUME_TYPES = "volumeTypes"

PART_MARK = "#"
"""Between the key of a profile and a part of it, in references."""


class ProfilePart(NamedTuple):
    """A part of a profile: the list that it stands in, and its name there (of an image `<name>` or `<name>/<version>`).

    Versions may be cut after their minor or major number, as a shoot may name them.
    """

    field: str
    name: str


def offered_parts(profile_spec: Document) -> frozenset[ProfilePart]:
    """All parts of a profile's (merged) spec."""
    parts = {
        ProfilePart(field, name)
        for field in (REGIONS, MACHINE_TYPES, VOLUME_TYPES)
        for name in _names(profile_spec.get(field), "name")
    }
    for version in _names(section(profile_spec, "kubernetes").get("versions"), "version"):
        parts.update(ProfilePart(VERSIONS, prefix) for prefix in _prefixes(version))
    for image in mappings(profile_spec.get("machineImages")):
        if name := only_text(image.get("name")):
            parts.add(ProfilePart(MACHINE_IMAGES, name))
            for version in _names(image.get("versions"), "version"):
                parts.update(ProfilePart(MACHINE_IMAGES, f"{name}/{prefix}") for prefix in _prefixes(version))
    return frozenset(parts)


def used_parts(shoot_spec: Document) -> Sequence[ProfilePart]:
    """The parts that a shoot uses, each once."""
    named = dict.fromkeys(each for each in _used(shoot_spec) if each[1] and isinstance(each[1], str))
    return [ProfilePart(*each) for each in named if each[1].isprintable()]


def part_references(profile: ObjectKey, parts: Iterable[ProfilePart]) -> Iterator[str]:
    """Keys under which the users of parts are indexed."""
    prefix = f"{profile.stored}{PART_MARK}"
    return (f"{prefix}{field}/{name}" for field, name in parts)


def profile_key(shoot_spec: Document, namespace: str) -> ObjectKey | None:
    """The profile that a shoot's spec names; None when it names none.

    Source: Gardener's `pkg/utils/gardener/cloudprofile.go`: `cloudProfile` wins over `cloudProfileName`.
    """
    reference = section(shoot_spec, "cloudProfile")
    named = only_text(reference.get("name"))
    name = named or only_text(shoot_spec.get("cloudProfileName"))
    if not name:
        return None
    if named and reference.get("kind") == "NamespacedCloudProfile":
        return ObjectKey("namespacedcloudprofile", namespace, name)
    return ObjectKey("cloudprofile", "", name)


def profile_spec_of(profile: Document | None) -> Document | None:
    """Effective spec of a profile: its own, or the merged one in the status of a namespaced profile."""
    if profile is None:
        return None
    if profile.get("kind") == "NamespacedCloudProfile":
        return section(profile, "status").get("cloudProfileSpec")
    return section(profile, "spec")


def binding_keys(shoot_spec: Document, namespace: str) -> Sequence[ObjectKey]:
    """The SecretBinding and the CredentialsBinding that a shoot's spec names, with neither or both."""
    return [
        ObjectKey(kind, namespace, name)
        for kind, field in (("secretbinding", "secretBindingName"), ("credentialsbinding", "credentialsBindingName"))
        if (name := only_text(shoot_spec.get(field)))
    ]


def _used(spec: Document) -> Iterator[tuple[str, Any]]:
    yield REGIONS, spec.get("region")
    yield VERSIONS, section(spec, "kubernetes").get("version")
    for worker in mappings(section(spec, "provider").get("workers")):
        machine = section(worker, "machine")
        yield MACHINE_TYPES, machine.get("type")
        if "kubernetes" in worker:
            yield VERSIONS, section(worker, "kubernetes").get("version")
        if "volume" in worker:
            yield VOLUME_TYPES, section(worker, "volume").get("type")
        if "image" in machine:
            image = section(machine, "image")
            name, version = only_text(image.get("name")), only_text(image.get("version"))
            yield MACHINE_IMAGES, f"{name}/{version}" if name and version else name


def _prefixes(version: str) -> Iterator[str]:
    """A version, and what is left of it without its patch number, and without its minor number."""
    yield version
    numbers = version.split(".")
    yield from (".".join(numbers[:count]) for count in (1, 2) if count < len(numbers))


def _names(value: Any, field: str) -> Iterator[str]:
    return (name for entry in mappings(value) if (name := only_text(entry.get(field))))
