"""A NamespacedCloudProfile against its parent: versions and images that both have.

Of what the parent offers it may only set when it expires, again and again, but not to an instant that has passed. What
it offered first, and its parent too since, keeps all but its expiration. Machine and volume types of the parent's names
may stand in it. Source: Gardener's `plugin/pkg/namespacedcloudprofile/validator`.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import entry_named, mappings, without
from gardenbus.common.api.garden.expirable_versions import is_expired

_OF_THE_PARENT = (
    "classification",
    "cri",
    "architectures",
    "capabilityFlavors",
    "kubeletVersionConstraint",
    "inPlaceUpdates",
)


class OverrideProblem(NamedTuple):
    """A field of a NamespacedCloudProfile, and why it is at odds with the parent."""

    field: str
    reason: str


def override_problems(spec: Document, before: Document, parent: Document, now: datetime) -> Iterator[OverrideProblem]:
    """Problems of a spec; `before` is what it was, {} for a new profile."""
    above, had = (section(one, "kubernetes").get("versions") for one in (parent, before))
    for index, version in enumerate(mappings(section(spec, "kubernetes").get("versions"))):
        path, number = f"spec.kubernetes.versions[{index}]", version.get("version")
        if version.get("classification"):
            yield OverrideProblem(f"{path}.classification", f"the parent states it for {number}: leave it out")
        listed = entry_named(above, number, "version")
        if not listed:
            yield OverrideProblem(f"{path}.version", f"{number} is none of the parent's versions")
        else:
            stood = (listed, entry_named(had, number, "version")) if before else None
            yield from _of_expiration(path, version, stood, now)
    for index, image in enumerate(mappings(spec.get("machineImages"))):
        yield from _of_image(f"spec.machineImages[{index}]", image, before, parent, now)


def parent_problems(below: Document, before: Document, after: Document) -> Iterator[OverrideProblem]:
    """Problems of a change of the parent: what a profile below names of it goes, or an image of that one's comes."""
    versions, versions_after = (section(one, "kubernetes").get("versions") for one in (before, after))
    for version in mappings(section(below, "kubernetes").get("versions")):
        number = version.get("version")
        if entry_named(versions, number, "version") and not entry_named(versions_after, number, "version"):
            yield OverrideProblem("spec.kubernetes.versions", f"{number} stays: it is named there")
    for image in mappings(below.get("machineImages")):
        name, path = image.get("name"), "spec.machineImages"
        had, has = (entry_named(one.get("machineImages"), name) for one in (before, after))
        if had and not has:
            yield OverrideProblem(path, f"{name} stays: it is named there")
        elif has and not had:
            yield OverrideProblem(path, f"{name} cannot be added: it is an image of that one already")
        for number in (version.get("version") for version in mappings(image.get("versions")) if had and has):
            own, own_after = (entry_named(one.get("versions"), number, "version") for one in (had, has))
            if own and not own_after:
                yield OverrideProblem(path, f"{name}/{number} stays: it is named there")


def _of_image(
    path: str, image: Document, before: Document, parent: Document, now: datetime
) -> Iterator[OverrideProblem]:
    name, listed = image.get("name"), mappings(image.get("versions"))
    above, had = (entry_named(one.get("machineImages"), image.get("name")) for one in (parent, before))
    if not above:
        if not listed:
            yield OverrideProblem(f"{path}.versions", f"the parent does not have {name}: name a version of it")
        return
    if had and image.get("updateStrategy") != had.get("updateStrategy"):
        yield OverrideProblem(f"{path}.updateStrategy", f"stays as it was, as the parent has {name}, too")
    for index, version in enumerate(listed):
        number, here = version.get("version"), f"{path}.versions[{index}]"
        of_parent, own = (entry_named(one.get("versions"), number, "version") for one in (above, had))
        if not of_parent:
            continue
        if own and without(own, "expirationDate") != without(version, "expirationDate"):
            reason = f"stays as it was but for its expirationDate, as the parent has {name} {number}, too"
            yield OverrideProblem(here, reason)
        for field in _OF_THE_PARENT if not own else ():
            if version.get(field):
                yield OverrideProblem(f"{here}.{field}", f"the parent states it for {name} {number}: leave it out")
        stood = (of_parent, own) if before else None
        yield from _of_expiration(here, version, stood, now, is_needed=not own)


def _of_expiration(
    path: str, version: Document, stood: tuple[Document, Document] | None, now: datetime, *, is_needed: bool = True
) -> Iterator[OverrideProblem]:
    """Problems of the instant; `stood`: the version in the parent and in the profile before, None for a new profile."""
    stated = version.get("expirationDate")
    if not stated and is_needed:
        yield OverrideProblem(f"{path}.expirationDate", "must be stated: it is all that can be changed of the parent's")
    elif stood is not None and is_expired(stated, now):
        above, had = stood
        if stated != (had.get("expirationDate") or above.get("expirationDate")):
            yield OverrideProblem(f"{path}.expirationDate", f"{stated} has passed")
