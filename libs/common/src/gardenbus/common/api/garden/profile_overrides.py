"""A NamespacedCloudProfile against its parent: versions, images and machine types that both have.

Of what the parent offers it may only set when it expires, and that not to an instant that has passed. What it offered
first, and its parent too since, stays as it is. Source: Gardener's `plugin/pkg/namespacedcloudprofile/validator`.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import entry_named, mappings
from gardenbus.common.api.garden.expirable_versions import is_expired

_OF_THE_PARENT = ("classification", "cri", "architectures", "capabilitySets", "kubeletVersionConstraint")


class OverrideProblem(NamedTuple):
    """A field of a NamespacedCloudProfile, and why it is at odds with the parent."""

    field: str
    reason: str


def override_problems(spec: Document, before: Document, parent: Document, now: datetime) -> Iterator[OverrideProblem]:
    """Problems of a spec; `before` is what it was, {} for a new profile."""
    for index, kind in enumerate(mappings(spec.get("machineTypes"))):
        name = kind.get("name")
        if entry_named(parent.get("machineTypes"), name) and not entry_named(before.get("machineTypes"), name):
            yield OverrideProblem(f"spec.machineTypes[{index}].name", f"{name} is a machine type of the parent already")
    above, had = (section(one, "kubernetes").get("versions") for one in (parent, before))
    for index, version in enumerate(mappings(section(spec, "kubernetes").get("versions"))):
        path, number = f"spec.kubernetes.versions[{index}]", version.get("version")
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
        if own:
            if own != version:
                yield OverrideProblem(here, f"stays as it was, as the parent has {name} {number}, too")
            continue
        for field in _OF_THE_PARENT:
            if version.get(field):
                yield OverrideProblem(f"{here}.{field}", f"the parent says it of {name} {number}: leave it out")
        yield from _of_expiration(here, version, (of_parent, own) if before else None, now)


def _of_expiration(
    path: str, version: Document, stood: tuple[Document, Document] | None, now: datetime
) -> Iterator[OverrideProblem]:
    """Problems of the instant; `stood`: the version in the parent and in the profile before, None for a new profile."""
    stated = version.get("expirationDate")
    if not stated:
        yield OverrideProblem(f"{path}.expirationDate", "must be stated: it is all that can be said of the parent's")
    elif stood is not None and is_expired(stated, now):
        above, had = stood
        if stated != (had.get("expirationDate") or above.get("expirationDate")):
            yield OverrideProblem(f"{path}.expirationDate", f"{stated} has passed")
