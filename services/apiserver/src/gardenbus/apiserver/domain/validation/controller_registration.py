"""Rules of ControllerRegistrations and ControllerInstallations: what an extension is for, and on which seed it is.

Source: Gardener's `pkg/api/core/validation/controllerregistration.go` and `controllerinstallation.go`.
"""

from collections.abc import Mapping
from typing import Any

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.shared import check_label_selector
from gardenbus.apiserver.domain.validation.stored_problems import check_new, has_spec
from gardenbus.apiserver.domain.validation.value_rules import ValueRules, check_values, lasting, of_section, one_of
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, mappings

KINDS = (
    *("BackupBucket", "BackupEntry", "Bastion", "ContainerRuntime", "ControlPlane", "DNSRecord", "Extension"),
    *("Infrastructure", "Network", "OperatingSystemConfig", "SelfHostedShootExposure", "Worker"),
)
"""Kinds of extensions. Source: `AllExtensionKinds` in Gardener's `pkg/apis/extensions/v1alpha1`."""

POLICIES = ("OnDemand", "Always", "AlwaysExceptNoShoots")
CLUSTERS = ("shoot", "seed")

_STEPS = ("BeforeKubeAPIServer", "AfterKubeAPIServer")
_OF_EXTENSIONS = ("autoEnable", "clusterCompatibility", "reconcileTimeout", "lifecycle")
_VALUES: ValueRules = {
    "reconcileTimeout": lasting(),
    "lifecycle": of_section(
        {"reconcile": one_of(*_STEPS, "AfterWorker"), "delete": one_of(*_STEPS), "migrate": one_of(*_STEPS)}
    ),
}


def check_registration(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a ControllerRegistration; a resource stays primary, or not."""
    spec, before = manifest.section("spec"), section(old or {}, "spec")
    check_new(spec, before, _check_registration)
    if _is_frozen(manifest, old):
        return
    earlier = mappings(before.get("resources"))
    for resource in spec.entries("resources"):
        stored = [each.get("primary") is not False for each in earlier if _id(each) == _id(resource.content)]
        if stored and (resource.content.get("primary") is not False) not in stored:
            resource.add_error(
                "primary", f"stays {str(stored[0]).lower()}: seeds go by it; take the resource off first"
            )


def check_installation(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a ControllerInstallation, which stays that of one registration on one seed."""
    spec, before = manifest.section("spec", required=has_spec(old)), section(old or {}, "spec")
    check_new(spec, before, _check_installation)
    if old is None or not spec or _is_frozen(manifest, old):
        return
    for field in ("registrationRef", "seedRef"):
        spec.section(field).same_as(section(before, field), "name", "make a new installation")
    if section(before, "shootRef") or spec.has("shootRef"):
        for field in ("name", "namespace"):
            spec.section("shootRef").unchanged(section(before, "shootRef"), field, "make a new installation")


def _is_frozen(manifest: FieldCursor, old: Document | None) -> bool:
    """Note a change of what is being deleted; true where it is."""
    if old is None or not is_deleting(old):
        return False
    if manifest.content.get("spec") != old.get("spec"):
        manifest.add_error("spec", "cannot be changed while the object is being deleted")
    return True


def _id(resource: Mapping[str, Any]) -> tuple[str, str]:
    return str(resource.get("kind")), str(resource.get("type"))


def _check_registration(spec: FieldCursor) -> None:
    resources = spec.entries("resources")
    seen: set[tuple[str, str]] = set()
    for resource in resources:
        resource.choice("kind", KINDS, required=True)
        resource.text("type", required=True)
        if (key := _id(resource.content)) in seen:
            resource.add_error("", f"{key[0]} {key[1]} is in the list already: name it once")
        seen.add(key)
        _check_resource(resource)
    deployment = spec.section("deployment")
    deployment.choice("policy", POLICIES)
    for reference in deployment.entries("deploymentRefs", most=1):
        reference.text("name", required=True)
    if selector := deployment.section("seedSelector"):
        check_label_selector(selector)
        if any(resource.content.get("primary") is not False for resource in resources):
            deployment.add_error("seedSelector", "is for registrations alone that are primary for no resource")


def _check_resource(resource: FieldCursor) -> None:
    kind = resource.content.get("kind")
    if kind != "SelfHostedShootExposure" and resource.has("continuousEndpointUpdate"):
        resource.add_error("continuousEndpointUpdate", "is for the kind SelfHostedShootExposure alone")
    if kind != "Extension":
        for field in _OF_EXTENSIONS:
            if resource.content.get(field) or (field == "lifecycle" and resource.has(field)):
                resource.add_error(field, "is for the kind Extension alone")
        return
    check_values(resource, _VALUES)
    compatible = _clusters(resource, "clusterCompatibility") or {CLUSTERS[0]}
    for cluster in _clusters(resource, "autoEnable") - set(compatible):
        resource.add_error("autoEnable", f"{cluster} must stand in clusterCompatibility, too")


def _clusters(resource: FieldCursor, field: str) -> set[str]:
    stated = resource.unique_texts(field, rule=lambda one: "" if one in CLUSTERS else "must be shoot or seed")
    return {cluster for _, cluster in stated if cluster in CLUSTERS}


def _check_installation(spec: FieldCursor) -> None:
    spec.section("registrationRef", required=True).text("name", required=True)
    spec.section("seedRef").text("name", required=True)
    for field in ("name", "namespace"):
        spec.section("shootRef").text(field, required=True)
    if spec and not spec.has("seedRef") and not spec.has("shootRef"):
        spec.add_error("seedRef", "is needed, or shootRef of a shoot that hosts itself")
