"""The rules of a Shoot. Source: Gardener's `pkg/api/core/validation/shoot.go`, for the fields that are read here."""

from collections.abc import Sequence

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, unique
from gardenbus.apiserver.domain.validation.metadata import label_problem, qualified_name_problem, subdomain_problem
from gardenbus.apiserver.domain.validation.passed_checks import FieldTexts, PartCheck, PassedChecks, field_texts
from gardenbus.apiserver.domain.validation.removed_fields import check_removed_fields
from gardenbus.apiserver.domain.validation.runtime_config import check_runtime_config
from gardenbus.apiserver.domain.validation.self_hosted import check_self_hosted
from gardenbus.apiserver.domain.validation.shared import (
    check_access_restrictions,
    check_disjoint,
    check_ip_families,
    check_ranges,
    check_requirements,
    check_resources,
    check_seed_selector,
    check_tolerations,
)
from gardenbus.apiserver.domain.validation.shoot_addons import check_addons
from gardenbus.apiserver.domain.validation.shoot_components import check_components, check_masks, check_room_for_pods
from gardenbus.apiserver.domain.validation.shoot_dns import check_providers
from gardenbus.apiserver.domain.validation.shoot_encryption import check_rotated_key
from gardenbus.apiserver.domain.validation.shoot_features import check_features
from gardenbus.apiserver.domain.validation.shoot_updates import (
    check_bindings,
    check_force_deletion,
    check_immutable,
    check_state,
)
from gardenbus.apiserver.domain.validation.shoot_workers import check_workers
from gardenbus.apiserver.domain.validation.status import check_shoot_status, check_shoot_status_update
from gardenbus.apiserver.domain.validation.value_rules import (
    ValueRules,
    check_values,
    lasting,
    of_section,
    stated_in,
    version_problem,
)
from gardenbus.apiserver.domain.validation.workerless import check_workerless, is_workerless
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import FINALIZER, REFERENCE_FINALIZER, mappings
from gardenbus.common.api.garden.expirable_versions import numbers_of
from gardenbus.common.api.garden.hibernation import schedule_problems
from gardenbus.common.api.garden.maintenance_windows import window_problems
from gardenbus.common.api.garden.scheduling_requirements import REQUIREMENTS
from gardenbus.common.api.garden.shoot_operations import operation_problems
from gardenbus.common.api.garden.shoots import PURPOSES
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.api.shown_values import shown

FAILURE_TOLERANCES = ("node", "zone")
OWN_FINALIZERS = (FINALIZER, REFERENCE_FINALIZER)
"""Finalizers that a new shoot does not bring along: whoever takes them off looks for what they hold."""
PROFILE_KINDS = ("CloudProfile", "NamespacedCloudProfile")
_ORDER = tuple(
    f"spec.{field}"
    for field in (
        *("cloudProfile", "cloudProfileName", "provider", "addons", "dns", "extensions", "resources", "kubernetes"),
        *("networking", "maintenance", "monitoring", "hibernation", "region", "secretBindingName"),
        *("credentialsBindingName", "seedName", "seedSelector", "purpose", "tolerations", "systemComponents"),
        *("exposureClassName", "schedulerName", "controlPlane"),
    )
)
"""Parts of a spec in the order in which Gardener's `ValidateShootSpec` goes through them."""


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a Shoot, immutable fields included."""
    check_shoot_status(manifest)
    spec = manifest.section("spec", required=True)
    metadata = section(manifest.content, "metadata")
    for problem in operation_problems(dict(manifest.content), old):
        manifest.errors.add_error(problem.field, problem.message)
    check_requirements(manifest, old, REQUIREMENTS)
    if spec.content.get("purpose") == "infrastructure" and metadata.get("namespace") != GARDEN_NAMESPACE:
        spec.add_error("purpose", f"infrastructure is for shoots in the namespace {GARDEN_NAMESPACE} alone")
    if old is None:
        for path, finalizer in manifest.section("metadata").texts("finalizers"):
            if finalizer in OWN_FINALIZERS:
                manifest.errors.add_error(path, f"{finalizer} is put on by controllers alone: leave it out")
    check_force_deletion(manifest, old)
    before = section(old or {}, "spec")
    if old is None:
        check_bindings(spec, before)
    elif spec:
        check_shoot_status_update(manifest, old)
        check_immutable(spec, before)
        check_state(manifest, old)
    of_changes = len(manifest.errors)
    texts = field_texts(spec)
    check_spec(spec, texts)
    check_workerless(spec, before)
    check_changes(spec, before, texts)
    check_self_hosted(manifest, spec, before)
    manifest.errors.sort_by_field(_ORDER, since=of_changes)


def check_changes(spec: FieldCursor, before: Document, texts: FieldTexts | None = None) -> None:
    """Check what is long to check, or what an earlier version stored without a look at it, where it changes."""
    content = spec.content
    changed = {field for field in (*content, *before) if content.get(field) != before.get(field)}
    checks = [each for each in CHECKS_OF_CHANGES if not changed.isdisjoint(each.fields)]
    _passed.run(checks, spec, field_texts(spec) if texts is None else texts, before)


def check_spec(spec: FieldCursor, texts: FieldTexts | None = None) -> None:
    """Note every problem of a Shoot's spec, also of one in a template."""
    _passed.run(CHECKS_OF_SPECS, spec, field_texts(spec) if texts is None else texts, {})


def check_times(spec: FieldCursor) -> None:
    """Note every problem of hibernation schedules and of the maintenance window."""
    for problem in (*schedule_problems(spec.content), *window_problems(spec.content)):
        spec.add_error(problem.field.removeprefix("spec."), problem.message)


def _check_choices(spec: FieldCursor) -> None:
    for field in ("seedName", "schedulerName"):
        spec.text(field, rule=label_problem)
    spec.choice("purpose", PURPOSES)
    spec.text("region", required=True)
    spec.text("exposureClassName", rule=subdomain_problem)


def _check_switches(spec: FieldCursor) -> None:
    spec.section("kubernetes").text("version", rule=version_problem)
    spec.section("hibernation").boolean("enabled")
    spec.section("hibernation").entries("schedules")
    maintenance = spec.section("maintenance")
    maintenance.boolean("confineSpecUpdateRollout")
    for field in ("kubernetesVersion", "machineImageVersion"):
        maintenance.section("autoUpdate").boolean(field)
    maintenance.section("timeWindow")


def _check_profile(spec: FieldCursor) -> None:
    profile = spec.section("cloudProfile")
    name = spec.text("cloudProfileName")
    profile.choice("kind", PROFILE_KINDS)
    profile.text("name", required=True)
    if spec and not name and not spec.has("cloudProfile"):
        spec.add_error(
            "cloudProfile.name", "is needed: name the profile, as cloudProfile: {kind: CloudProfile, name: aws}"
        )


def _check_provider(spec: FieldCursor) -> None:
    provider = spec.section("provider", required=True)
    provider.text("type", required=True, rule=label_problem)
    workers = provider.entries("workers")
    for worker in workers:
        worker.text("name", required=True, rule=label_problem)
        worker.unique_texts("zones")
        worker.section("controlPlane")
        worker.section("machine").text("type")
        worker.section("kubernetes").text("version", rule=version_problem)
        least, most = worker.integer("minimum", least=0), worker.integer("maximum", least=0)
        if least is not None and least > (most or 0):
            stated = "is left out, which is 0" if most is None else f"is {most}"
            worker.add_error("maximum", f"must not be below minimum ({least}), but {stated}")
    unique(workers, "name")


def _check_networking(spec: FieldCursor) -> None:
    networking = spec.section("networking")
    networking.text("type")
    check_ranges(networking, families=check_ip_families(networking))


def _check_control_plane(spec: FieldCursor) -> None:
    control_plane = spec.section("controlPlane")
    control_plane.unique_texts("zones")
    tolerance = control_plane.section("highAvailability").section("failureTolerance", required=True)
    tolerance.choice("type", FAILURE_TOLERANCES, required=True)


def _check_admission_plugins(spec: FieldCursor) -> None:
    """A kubeconfig reaches its admission plug-in by the resources that are brought to the seed."""
    resources = (section(resource, "resourceRef") for resource in mappings(spec.content.get("resources")))
    secrets = {reference.get("name") for reference in resources if reference.get("kind") == "Secret"}
    for plugin in spec.nested("kubernetes", "kubeAPIServer").entries("admissionPlugins"):
        name = plugin.text("kubeconfigSecretName")
        if name is not None and name not in secrets:
            plugin.add_error("kubeconfigSecretName", f"the Secret {name} must stand in spec.resources, too")


def _check_dns(spec: FieldCursor) -> None:
    dns = spec.section("dns")
    dns.text("domain", rule=subdomain_problem)
    for provider in dns.entries("providers"):
        provider.text("type")
        provider.text("secretName")
        provider.boolean("primary")


def _check_networks(spec: FieldCursor) -> None:
    check_disjoint(spec.section("networking"))


def _check_network_type(spec: FieldCursor) -> None:
    if spec.content.get("provider") and not is_workerless(spec.content):
        networking = spec.section("networking")
        kind = networking.content.get("type")
        if not kind:
            networking.add_error("type", "is needed of a shoot with workers: name the network, as calico")
        elif isinstance(kind, str) and ("/" in kind or qualified_name_problem(kind)):
            networking.add_error("type", f"{shown(kind)} is no type: it becomes the end of a label's key")


def _check_provider_values(spec: FieldCursor) -> None:
    check_workers(spec.section("provider"))


def _check_extensions(spec: FieldCursor) -> None:
    spec.named_entries("extensions", "type", rule=label_problem)


def _check_system_components(spec: FieldCursor) -> None:
    """Note suffixes that CoreDNS cannot rewrite (`ValidateCoreDNSRewritingCommonSuffixes`)."""
    core_dns = spec.nested("systemComponents", "coreDNS")
    core_dns.section("autoscaling").choice("mode", ("horizontal", "cluster-proportional"))
    rewriting = core_dns.section("rewriting")
    suffixes = rewriting.texts("commonSuffixes")
    seen: set[str] = set()
    for path, suffix in suffixes:
        name = suffix.removeprefix(".")
        if "." not in name or subdomain_problem(name.removesuffix(".")):
            rewriting.errors.add_error(path, f"must be a DNS subdomain with a dot in it, not {shown(suffix)}")
        if name in seen:
            rewriting.errors.add_error(path, "is in the list already: name it once")
        seen.add(name)


def _check_dns_providers(spec: FieldCursor) -> None:
    check_providers(spec.section("dns"), numbers_of(spec.section("kubernetes").content.get("version")))


def _rotation_period(holder: FieldCursor, field: str) -> None:
    if holder.content[field] not in (0, "0", "0s"):
        lasting("30m", "2160h")(holder, field)


_ROTATED: ValueRules = dict.fromkeys(
    ("observability", "sshKeypair", "etcdEncryptionKey"), of_section({"rotationPeriod": _rotation_period})
)


def _check_rotation(spec: FieldCursor) -> None:
    check_values(spec.nested("maintenance", "autoRotation", "credentials"), _ROTATED)


def _check_receivers(spec: FieldCursor) -> None:
    spec.nested("monitoring", "alerting").unique_texts("emailReceivers", rule=_address_problem)


def _address_problem(address: str) -> str:
    name, at, host = address.rpartition("@")
    is_address = at and name and "." in host.strip(".") and " " not in address
    return "" if is_address else "must be an address as ann@example.org"


def _check_zones(spec: FieldCursor) -> None:
    zones = dict.fromkeys(zone for _, zone in spec.section("controlPlane").texts("zones"))
    is_zonal = stated_in(spec.content, "controlPlane.highAvailability.failureTolerance.type") == "zone"
    if zones and len(zones) != (3 if is_zonal else 1):
        needed = (
            "three where its failure tolerance is zone" if is_zonal else "one, unless its failure tolerance is zone"
        )
        spec.section("controlPlane").add_error("zones", f"a control plane is in {needed}, not in {len(zones)}")


CHECKS_OF_SPECS: Sequence[PartCheck] = (
    PartCheck(("seedName", "schedulerName", "purpose", "region", "exposureClassName"), _check_choices),
    PartCheck(("cloudProfile", "cloudProfileName"), _check_profile),
    PartCheck(("provider",), _check_provider),
    PartCheck(("networking",), _check_networking),
    PartCheck(("controlPlane",), _check_control_plane),
    PartCheck(("dns",), _check_dns),
    PartCheck(("seedSelector",), check_seed_selector),
    PartCheck(("tolerations",), check_tolerations),
    PartCheck(("accessRestrictions",), check_access_restrictions),
    PartCheck(("kubernetes", "hibernation", "maintenance"), _check_switches),
)
"""Checks of each spec."""

CHECKS_OF_CHANGES: Sequence[PartCheck] = (
    PartCheck(("hibernation", "maintenance"), check_times),
    PartCheck(("maintenance",), _check_rotation),
    PartCheck(("monitoring",), _check_receivers),
    PartCheck(("controlPlane",), _check_zones),
    PartCheck(("networking",), _check_networks),
    PartCheck(("networking", "provider"), _check_network_type),
    PartCheck(("kubernetes", "provider"), check_features),
    PartCheck(("kubernetes", "provider"), check_runtime_config),
    PartCheck(("kubernetes", "maintenance"), check_rotated_key),
    PartCheck(("kubernetes", "addons", "dns"), check_removed_fields),
    PartCheck(("resources",), check_resources),
    PartCheck(("provider",), _check_provider_values),
    PartCheck(("extensions",), _check_extensions),
    PartCheck(("kubernetes",), check_components),
    PartCheck(("kubernetes", "networking"), check_masks),
    PartCheck(("kubernetes", "networking", "provider"), check_room_for_pods),
    PartCheck(("resources", "kubernetes"), _check_admission_plugins),
    PartCheck(("dns", "kubernetes"), _check_dns_providers),
    PartCheck(("addons", "purpose"), check_addons),
    PartCheck(("systemComponents",), _check_system_components),
)
"""Checks of a spec where one of their fields changes."""

_passed = PassedChecks()
