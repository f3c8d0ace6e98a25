"""The rules of a Shoot. Source: Gardener's `pkg/api/core/validation/shoot.go`, for the fields that are read here."""

from gardenbus.apiserver.decide.fields import Place, unique
from gardenbus.apiserver.decide.metadata import label_problem, subdomain_problem
from gardenbus.apiserver.decide.validators.scheduling import (
    check_access_restrictions,
    check_ip_families,
    check_range,
    check_seed_selector,
    check_tolerations,
)
from gardenbus.apiserver.decide.validators.status import check_shoot_status
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE

PURPOSES = ("evaluation", "testing", "development", "production", "infrastructure")
FAILURE_TOLERANCES = ("node", "zone")
PROFILE_KINDS = ("CloudProfile", "NamespacedCloudProfile")


def check(manifest: Place, old: Document | None) -> None:
    """Note every problem of a Shoot, immutable fields included."""
    check_shoot_status(manifest)
    spec = manifest.section("spec", required=True)
    if spec is None:
        return
    metadata = section(manifest.content, "metadata")
    if spec.content.get("purpose") == "infrastructure" and metadata.get("namespace") != GARDEN_NAMESPACE:
        spec.note("purpose", f"infrastructure is for shoots in the namespace {GARDEN_NAMESPACE} alone")
    check_spec(spec)
    if old is not None:
        _check_immutable(spec, section(old, "spec"))


def check_spec(spec: Place) -> None:
    """Note every problem of a Shoot's spec, also of one in a template."""
    for field in ("seedName", "schedulerName"):
        if (name := spec.text(field)) and (problem := label_problem(name)):
            spec.note(field, problem)
    spec.choice("purpose", PURPOSES)
    spec.text("region", required=True)
    spec.text("exposureClassName")
    _check_profile(spec)
    _check_provider(spec)
    _check_networking(spec)
    _check_control_plane(spec)
    _check_dns(spec)
    check_seed_selector(spec)
    check_tolerations(spec)
    check_access_restrictions(spec)
    if kubernetes := spec.section("kubernetes"):
        kubernetes.text("version")
    if hibernation := spec.section("hibernation"):
        hibernation.boolean("enabled")
    if maintenance := spec.section("maintenance"):
        maintenance.boolean("confineSpecUpdateRollout")


def _check_profile(spec: Place) -> None:
    profile = spec.section("cloudProfile")
    name = spec.text("cloudProfileName")
    if profile is not None:
        profile.choice("kind", PROFILE_KINDS)
        profile.text("name", required=True)
    elif not name and not spec.has("cloudProfile"):
        spec.note("cloudProfile", "is needed: name the profile, as cloudProfile: {kind: CloudProfile, name: aws}")


def _check_provider(spec: Place) -> None:
    provider = spec.section("provider", required=True)
    if provider is None:
        return
    provider.text("type", required=True)
    workers = provider.entries("workers")
    for worker in workers:
        if (name := worker.text("name", required=True)) and (problem := label_problem(name)):
            worker.note("name", problem)
        worker.unique_texts("zones")
        worker.section("controlPlane")
        if machine := worker.section("machine"):
            machine.text("type")
        least, most = worker.integer("minimum", least=0), worker.integer("maximum", least=0)
        if least is not None and most is not None and least > most:
            worker.note("maximum", f"must not be below minimum ({least}), but is {most}")
    unique(workers, "name")


def _check_networking(spec: Place) -> None:
    networking = spec.section("networking")
    if networking is None:
        return
    networking.text("type")
    families = check_ip_families(networking)
    for field in ("nodes", "pods", "services"):
        check_range(networking, field, families)


def _check_control_plane(spec: Place) -> None:
    control_plane = spec.section("controlPlane")
    if control_plane is None:
        return
    control_plane.unique_texts("zones")
    availability = control_plane.section("highAvailability")
    tolerance = availability.section("failureTolerance", required=True) if availability else None
    if tolerance is not None:
        tolerance.choice("type", FAILURE_TOLERANCES, required=True)


def _check_dns(spec: Place) -> None:
    dns = spec.section("dns")
    if dns is None:
        return
    if (domain := dns.text("domain")) and (problem := subdomain_problem(domain)):
        dns.note("domain", problem)
    for provider in dns.entries("providers"):
        provider.text("type")
        provider.boolean("primary")


def _check_immutable(spec: Place, old: Document) -> None:
    seed, before = spec.content.get("seedName") or "", old.get("seedName") or ""
    if seed != before:
        spec.note("seedName", f"is changed by garden.api.bind alone, and is {before or 'not set'} now")
    scheduler = "a shoot keeps the scheduler that it was made for"
    spec.same_as(old, "schedulerName", scheduler)
    spec.same_as(old, "region", "make a new shoot there")
    exposure_class, before_class = spec.content.get("exposureClassName") or "", old.get("exposureClassName") or ""
    if exposure_class != before_class:
        spec.note("exposureClassName", "is set once, when the shoot is made: what its class prescribes is merged then")
    if provider := spec.section("provider"):
        provider.same_as(section(old, "provider"), "type", "make a new shoot there")
    if before:
        _check_immutable_once_placed(spec, old)


def _check_immutable_once_placed(spec: Place, old: Document) -> None:
    placed = "the control plane runs with it"
    networking = spec.section("networking") or Place({}, spec.at("networking"), spec.notebook)
    for field in ("nodes", "pods", "services"):
        networking.same_as(section(old, "networking"), field, placed)
    dns = spec.section("dns") or Place({}, spec.at("dns"), spec.notebook)
    dns.same_as(section(old, "dns"), "domain", "its API server is reached there")
    tolerance = spec.nested("controlPlane", "highAvailability", "failureTolerance")
    before = section(old, "controlPlane", "highAvailability", "failureTolerance")
    if before.get("type"):
        path = spec.at("controlPlane.highAvailability.failureTolerance")
        (tolerance or Place({}, path, spec.notebook)).same_as(before, "type", placed)
