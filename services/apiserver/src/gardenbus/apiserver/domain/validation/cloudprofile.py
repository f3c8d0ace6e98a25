"""The rules of CloudProfiles. Source: Gardener's `pkg/api/core/validation/cloudprofile.go`, for what is read here.

A list that is empty offers anything, so that none is needed.
"""

import re
from collections.abc import Callable, Collection

from gardenbus.apiserver.domain.validation.capabilities import (
    ARCHITECTURES,
    check_definitions,
    check_images,
    check_machine_types,
    unprefixed_problem,
)
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, unique
from gardenbus.apiserver.domain.validation.issuers import certificates_problem
from gardenbus.apiserver.domain.validation.limits import amount_problem
from gardenbus.apiserver.domain.validation.metadata import check_labels
from gardenbus.apiserver.domain.validation.shared import check_access_restrictions, check_instant, check_seed_selector
from gardenbus.apiserver.domain.validation.stored_problems import check_new
from gardenbus.apiserver.domain.validation.value_rules import amount, check_values
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.architectures import architectures_of, architectures_of_type
from gardenbus.common.api.garden.expirable_versions import numbers_of
from gardenbus.common.api.garden.version_constraints import is_constraint
from gardenbus.common.api.shown_values import shown

CLASSIFICATIONS = ("preview", "supported", "deprecated")
UPDATE_STRATEGIES = ("patch", "minor", "major")

_KUBERNETES_VERSION = re.compile(r"([0-9]+\.){2}[0-9]+")
_SEMANTIC_VERSION = re.compile(r"v?[0-9]+(\.[0-9]+){0,2}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?")


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a CloudProfile."""
    spec, before = manifest.section("spec", required=True), section(old or {}, "spec")
    spec.text("type", required=True)
    check_seed_selector(spec)
    regions = spec.entries("regions")
    for region in regions:
        region.text("name", required=True)
        check_access_restrictions(region)
        region.named_entries("zones")
        check_labels(region, "labels")
    unique(regions, "name")
    check_offers(spec, before)
    check_new(spec, before, check_definitions)
    check_new(spec, before, check_images)
    check_new(spec, before, check_machine_types)
    check_new(spec, before, check_bastion)
    check_new(spec, before, _check_newest)
    _check_fewer_nodes(spec.section("limits"), section(before, "limits").get("maxNodesTotal"))


def _check_newest(spec: FieldCursor) -> None:
    """Note a date at which the newest version of Kubernetes, and with it all, would expire."""
    versions = spec.section("kubernetes").entries("versions")
    newest = max(versions, key=lambda version: numbers_of(version.content.get("version")), default=None)
    if newest is not None and newest.has("expirationDate"):
        newest.add_error("expirationDate", "must not be set of the newest version: no shoot could be made any more")


def _check_fewer_nodes(limits: FieldCursor, before: object) -> None:
    most = limits.content.get("maxNodesTotal")
    if isinstance(most, int) and isinstance(before, int) and most < before:
        limits.add_error("maxNodesTotal", f"cannot be lowered ({before} stays, or more): shoots may have as many nodes")


def check_offers(spec: FieldCursor, before: Document) -> None:
    """Note problems in what a profile offers: versions, machine types, images, volume types; of values what changes."""
    spec.section("kubernetes").named_entries("versions", "version")
    for field in ("machineTypes", "volumeTypes"):
        spec.named_entries(field)
    images = spec.entries("machineImages")
    for image in images:
        image.text("name", required=True)
        image.named_entries("versions", "version")
    unique(images, "name")
    for field, check_part in _VALUES.items():
        if spec.content.get(field) != before.get(field):
            check_part(spec)


def _check_kubernetes(spec: FieldCursor) -> None:
    _check_versions(spec.section("kubernetes"), _kubernetes_problem)


def _check_images(spec: FieldCursor) -> None:
    for image in spec.entries("machineImages"):
        image.text("name", rule=unprefixed_problem)
        image.choice("updateStrategy", UPDATE_STRATEGIES)
        _check_versions(image, _semantic_problem)
        for version in image.entries("versions"):
            version.unique_texts("architectures", rule=_architecture_problem)
            _check_runtimes(version)
            updates = version.section("inPlaceUpdates")
            updates.text("minVersionForUpdate", filled=True, rule=_semantic_problem)
            version.text("kubeletVersionConstraint", filled=True, rule=_constraint_problem)


def _check_types(spec: FieldCursor) -> None:
    for machine_type in spec.entries("machineTypes"):
        machine_type.text("name", rule=unprefixed_problem)
        machine_type.text("architecture", rule=_architecture_problem)
        _check_storage(machine_type)
        for field in ("cpu", "gpu", "memory"):
            if machine_type.has(field) and (problem := amount_problem(machine_type.content[field])):
                machine_type.add_error(field, problem)


def _check_volumes(spec: FieldCursor) -> None:
    for volume_type in spec.entries("volumeTypes"):
        volume_type.text("name", rule=unprefixed_problem)
        volume_type.text("class", required=True, rule=unprefixed_problem)
        check_values(volume_type, {"minSize": amount()})


def _check_runtimes(version: FieldCursor) -> None:
    runtimes = version.entries("cri")
    unique(runtimes, "name")
    for runtime in runtimes:
        runtime.choice("name", ("containerd",), required=True)
        runtime.named_entries("containerRuntimes", "type", rule=unprefixed_problem)


def _check_storage(machine_type: FieldCursor) -> None:
    storage = machine_type.section("storage")
    if not storage:
        return
    if storage.has("size") == storage.has("minSize"):
        machine_type.add_error("storage", "must have a size, or a minSize: one of the two")
    else:
        check_values(storage, {"size": amount(), "minSize": amount()})


def _check_certificates(spec: FieldCursor) -> None:
    spec.text("caBundle", filled=True, rule=certificates_problem)


def check_bastion(spec: FieldCursor) -> None:
    """Note a bastion's machine type or image that the profile does not have, or not for it."""
    bastion = spec.section("bastion")
    kind, image = bastion.section("machineType"), bastion.section("machineImage")
    if bastion and not kind and not image:
        spec.add_error("bastion", "needs a machineType, or a machineImage")
    types = {str(each.get("name")) for each in mappings(spec.content.get("machineTypes"))}
    name = str(kind.content.get("name") or "")
    if kind and name not in types:
        kind.add_error("name", f"{shown(name)} is none of spec.machineTypes")
    if not image:
        return
    named = image.text("name", required=True)
    if not named:
        return
    images = [each for each in mappings(spec.content.get("machineImages")) if each.get("name") == named]
    if not images:
        image.add_error("name", "is none of spec.machineImages")
        return
    listed, wanted = mappings(images[0].get("versions")), image.content.get("version")
    versions = [each for each in listed if wanted is None or each.get("version") == wanted]
    field = "name" if wanted is None else "version"
    architectures = architectures_of_type(name, dict(spec.content)) if name in types else ()
    if not versions:
        image.add_error(field, "is no version of that image in spec.machineImages")
    elif not any(_is_fit(each, architectures) for each in versions):
        image.add_error(field, "is no image that is supported, for the architecture of the machine type")


def _is_fit(version: Document, architectures: Collection[str]) -> bool:
    is_supported = version.get("classification") == "supported"
    return is_supported and (not architectures or not set(architectures).isdisjoint(architectures_of(version)))


def _check_limits(spec: FieldCursor) -> None:
    spec.section("limits").integer("maxNodesTotal", least=1)


_VALUES: dict[str, Callable[[FieldCursor], None]] = {
    "kubernetes": _check_kubernetes,
    "machineImages": _check_images,
    "machineTypes": _check_types,
    "volumeTypes": _check_volumes,
    "limits": _check_limits,
    "caBundle": _check_certificates,
}


def _check_versions(holder: FieldCursor, rule: Callable[[str], str]) -> None:
    supported: set[tuple[int, ...]] = set()
    for version in holder.entries("versions"):
        number = version.text("version", rule=rule)
        check_instant(version, "expirationDate")
        if version.content.get("lifecycle"):
            version.add_error(
                "lifecycle", "is for Gardener's gate VersionClassificationLifecycle, which is off: leave it out"
            )
        if version.choice("classification", CLASSIFICATIONS) != "supported":
            continue
        minor = numbers_of(number)[:2]
        if minor in supported:
            version.add_error("classification", "one version of a minor is supported: deprecate the others")
        supported.add(minor)


def _kubernetes_problem(version: str) -> str:
    return "" if _KUBERNETES_VERSION.fullmatch(version) else f"must be three numbers as 1.34.1, not {shown(version)}"


def _constraint_problem(constraint: str) -> str:
    return "" if is_constraint(constraint) else f"must be a constraint as >= 1.31, < 1.34, not {shown(constraint)}"


def _semantic_problem(version: str) -> str:
    if _SEMANTIC_VERSION.fullmatch(version):
        return ""
    return f"must be a semantic version as 1.2.3, not {shown(version)}: versions are compared, and updated by it"


def _architecture_problem(architecture: str) -> str:
    return "" if architecture in ARCHITECTURES else f"must be amd64 or arm64, not {shown(architecture)}"
