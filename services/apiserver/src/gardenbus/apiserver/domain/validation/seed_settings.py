"""Rules of what a Seed is set up with: DNS, ingress, backup, and settings of its parts.

Source: `ValidateSeedSpec` in Gardener's `pkg/api/core/validation/seed.go`. What is left out, there or in a
part, is not needed here: nothing makes records or backups by it.
"""

from gardenbus.apiserver.domain.validation.credentials import check_credentials
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, unique
from gardenbus.apiserver.domain.validation.metadata import (
    label_problem,
    label_value_problem,
    qualified_name_problem,
    subdomain_problem,
)
from gardenbus.apiserver.domain.validation.shared import check_annotation_keys, check_disjoint
from gardenbus.apiserver.domain.validation.shoot_features import check_autoscaler_gates
from gardenbus.apiserver.domain.validation.shoot_workers import TAINT_EFFECTS
from gardenbus.apiserver.domain.validation.value_rules import amount, amounts_of, check_values, one_of
from gardenbus.common.api.document_parts import only_text
from gardenbus.common.api.networks import ip_family_of, is_cidr, overlap, parse_cidr

_MOST_SERVICES = 8
"""Bits of the largest range of services: it is mapped to a reserved range of that size."""


def check_settings(spec: FieldCursor) -> None:
    """Note every problem of what a seed's spec, or a template of one, states of its parts."""
    _check_dns(spec.section("dns"))
    ingress = spec.section("ingress")
    ingress.text("domain", rule=subdomain_problem)
    ingress.section("controller").choice("kind", ("nginx",), required=True)
    spec.named_entries("extensions", "type", rule=label_problem)
    if backup := spec.section("backup"):
        backup.text("provider", filled=True)
        check_credentials(backup.section("credentialsRef"))
    settings = spec.section("settings")
    _check_reservation(settings.section("excessCapacityReservation"))
    _check_balancers(spec, settings.section("loadBalancerServices"))
    autoscaler = settings.section("verticalPodAutoscaler")
    check_values(autoscaler, {"maxAllowed": amounts_of({"cpu": amount(), "memory": amount()})})
    check_autoscaler_gates(autoscaler)
    _check_ranges(spec.section("networks"))


def _check_dns(dns: FieldCursor) -> None:
    for holder in (dns.section("provider"), dns.section("internal"), *dns.entries("defaults")):
        holder.text("type", filled=True)
        holder.text("domain", rule=subdomain_problem)
        check_credentials(holder.section("credentialsRef"))


def _check_reservation(reservation: FieldCursor) -> None:
    for each in reservation.entries("configs"):
        resources = each.section("resources")
        if not resources.content:
            each.add_error("resources", "is needed: cpu, memory, or both")
        check_values(resources, dict.fromkeys(resources.content, amount()))
        for toleration in each.entries("tolerations"):
            _check_toleration(toleration)


def _check_toleration(toleration: FieldCursor) -> None:
    """Note problems of a toleration of pods. Source: Kubernetes' `ValidateTolerations` of core/v1."""
    content = toleration.content
    check_values(toleration, {"operator": one_of("", "Equal", "Exists"), "effect": one_of("", *TAINT_EFFECTS)})
    toleration.text("key", rule=qualified_name_problem)
    if not content.get("key") and content.get("operator") != "Exists":
        toleration.add_error("operator", "must be Exists where there is no key")
    if toleration.has("tolerationSeconds") and content.get("effect") != "NoExecute":
        toleration.add_error("effect", "must be NoExecute where tolerationSeconds is set")
    if content.get("operator") == "Exists" and content.get("value"):
        toleration.add_error("value", "must be left out where the operator is Exists")
    else:
        toleration.text("value", rule=label_value_problem)


def _check_balancers(spec: FieldCursor, balancers: FieldCursor) -> None:
    check_annotation_keys(balancers)
    balancers.text("class", filled=True, rule=qualified_name_problem)
    zones = balancers.entries("zones")
    own_zones = {zone for _, zone in spec.section("provider").texts("zones")}
    unique(zones, "name")
    for zone in zones:
        name = zone.text("name", required=True)
        if name and name not in own_zones:
            zone.add_error("name", "is none of spec.provider.zones")
        check_annotation_keys(zone)
        zone.choice("externalTrafficPolicy", ("Cluster", "Local"))


def _check_ranges(networks: FieldCursor) -> None:
    """Note ranges for shoots that overlap each other, or in IPv6 those of the seed, and one of services too large."""
    services = only_text(networks.content.get("services"))
    if is_cidr(services) and ip_family_of(services) == "IPv4" and parse_cidr(services).prefixlen < _MOST_SERVICES:
        networks.add_error("services", f"must be /{_MOST_SERVICES} or smaller, not {services}")
    defaults = networks.section("shootDefaults")
    if not defaults:
        return
    check_disjoint(defaults, ("pods", "services"), canonical=False)
    for field in ("pods", "services"):
        cidr = only_text(defaults.content.get(field))
        if not is_cidr(cidr) or ip_family_of(cidr) != "IPv6":
            continue
        for name in ("nodes", "pods", "services"):
            own = only_text(networks.content.get(name))
            if is_cidr(own) and overlap(cidr, own):
                defaults.add_error(field, f"{cidr} overlaps with spec.networks.{name}, {own}")
