"""Rules of a placement's policy: fields per type, affinity, spread, tolerations, immutable fields.

Source: KubeFleet's `pkg/utils/validator/placement.go` and the rules beside its API types.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.limits import check_only_quantity
from gardenbus.apiserver.domain.validation.metadata import label_problem, label_value_problem, qualified_name_problem
from gardenbus.apiserver.domain.validation.shared import check_label_selector
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.placements import PICK_ALL, PICK_FIXED, PICK_N
from gardenbus.common.api.shown_values import shown

TYPES = (PICK_ALL, PICK_N, PICK_FIXED)
MOST_NAMES = 100
MOST_TERMS = 10
MOST_TOLERATIONS = 100
HEAVIEST = 100
OPERATORS = ("Gt", "Ge", "Lt", "Le", "Eq", "Ne")
ORDERS = ("Descending", "Ascending")
WHEN_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")
TOLERATION_OPERATORS = ("Equal", "Exists")
RESOURCE_PREFIX = "resources.kubernetes-fleet.io/"
CAPACITIES = ("total", "allocatable", "available")

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
REQUIRED_ALWAYS = "requiredDuringSchedulingRequiredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_GOES_WITH: Mapping[str, Sequence[str]] = {
    "clusterNames": (PICK_FIXED,),
    "numberOfClusters": (PICK_N,),
    "affinity": (PICK_ALL, PICK_N),
    "topologySpreadConstraints": (PICK_N,),
    "tolerations": (PICK_ALL, PICK_N),
}


def check_policy(spec: FieldCursor, old: Document | None) -> None:
    """Note every problem of the policy; a placement without one is PickAll."""
    if not spec:
        return
    policy = spec.section("policy")
    kind = policy.choice("placementType", TYPES) or (None if policy.content.get("placementType") else PICK_ALL)
    if kind is not None:
        _check_combination(policy, kind)
    policy.unique_texts("clusterNames", most=MOST_NAMES, rule=label_problem)
    policy.integer("numberOfClusters", least=0)
    _check_affinity(policy.nested("affinity", "clusterAffinity"))
    _check_spread(policy)
    _check_tolerations(policy)
    if old is not None:
        _check_changes(policy, kind, section(old, "spec", "policy"))


def policy_warnings(document: Document) -> Sequence[str]:
    """Warnings for parts of a policy that have no effect."""
    policy = section(document, "spec", "policy")
    if (policy.get("placementType") or PICK_ALL) == PICK_ALL and section(policy, "affinity", "clusterAffinity").get(
        PREFERRED
    ):
        return (f"spec.policy.affinity.clusterAffinity.{PREFERRED} is ignored: PickAll ranks nothing",)
    return ()


def _check_combination(policy: FieldCursor, kind: str) -> None:
    for field, kinds in _GOES_WITH.items():
        if kind not in kinds and policy.content.get(field) not in (None, [], {}):
            policy.add_error(field, f"goes with {' and '.join(kinds)} alone: leave it out, as the placement is {kind}")
    if kind == PICK_N and not policy.has("numberOfClusters"):
        policy.add_error("numberOfClusters", "is needed for PickN: state how many clusters, 0 or more")
    if kind == PICK_FIXED and policy.content.get("clusterNames") in (None, []):
        policy.add_error("clusterNames", "is needed for PickFixed: name at least one cluster")


def _check_affinity(affinity: FieldCursor) -> None:
    for field in (REQUIRED, REQUIRED_ALWAYS):
        for term in affinity.section(field).entries("clusterSelectorTerms", most=MOST_TERMS):
            _check_required(term)
    for preferred in affinity.entries(PREFERRED):
        preferred.integer("weight", least=-HEAVIEST, most=HEAVIEST, required=True)
        _check_preference(preferred.section("preference", required=True))


def _check_required(term: FieldCursor) -> None:
    check_label_selector(term.section("labelSelector"))
    if term.has("propertySorter"):
        term.add_error("propertySorter", f"only ranks: put it into {PREFERRED}, or compare with a propertySelector")
    for expression in term.section("propertySelector").entries("matchExpressions", required=True):
        _check_property_name(expression)
        expression.choice("operator", OPERATORS, required=True)
        check_only_quantity(expression, "values")


def _check_preference(preference: FieldCursor) -> None:
    check_label_selector(preference.section("labelSelector"))
    if preference.has("propertySelector"):
        preference.add_error("propertySelector", "is for required terms: rank by a property with propertySorter")
    if sorter := preference.section("propertySorter"):
        _check_property_name(sorter)
        sorter.choice("sortOrder", ORDERS, required=True)


def _check_property_name(holder: FieldCursor) -> None:
    name = holder.text("name", required=True)
    if not name:
        return
    if not name.startswith(RESOURCE_PREFIX):
        if problem := qualified_name_problem(name):
            holder.add_error("name", problem)
        return
    capacity, _, resource = name.removeprefix(RESOURCE_PREFIX).partition("-")
    if capacity not in CAPACITIES or not resource or "-" in resource:
        ways = "|".join(CAPACITIES)
        holder.add_error(
            "name", f"{shown(name)} is no resource: write {RESOURCE_PREFIX}<{ways}>-<resource>, as …/total-cpu"
        )


def _check_spread(policy: FieldCursor) -> None:
    seen: set[tuple[str, str]] = set()
    for constraint in policy.entries("topologySpreadConstraints"):
        key = constraint.text("topologyKey", required=True, rule=qualified_name_problem)
        constraint.integer("maxSkew", least=1)
        when = constraint.choice("whenUnsatisfiable", WHEN_UNSATISFIABLE) or WHEN_UNSATISFIABLE[0]
        if key and (key, when) in seen:
            constraint.add_error("topologyKey", f"{shown(key)} with {when} is in the list already: keep one")
        seen.add((key or "", when))


def _check_tolerations(policy: FieldCursor) -> None:
    seen: set[tuple[str, ...]] = set()
    for toleration in policy.entries("tolerations", most=MOST_TOLERATIONS):
        key, value = toleration.text("key"), toleration.text("value")
        operator = toleration.choice("operator", TOLERATION_OPERATORS) or TOLERATION_OPERATORS[0]
        toleration.choice("effect", ("NoSchedule", ""))
        if key and (problem := qualified_name_problem(key)):
            toleration.add_error("key", problem)
        if operator == "Exists" and value:
            toleration.add_error("value", "is not compared with Exists: leave it out, or use Equal")
        if operator == "Equal" and not key:
            toleration.add_error("key", "is needed with Equal; Exists without a key tolerates every taint")
        if operator == "Equal" and value and (problem := label_value_problem(value)):
            toleration.add_error("value", problem)
        if (entry := _tolerated(toleration.content)) in seen:
            toleration.add_error("key", "the same toleration is in the list already: keep one")
        seen.add(entry)


def _check_changes(policy: FieldCursor, kind: str | None, before: Document) -> None:
    """Type and tolerations are immutable, as nothing that was placed may lose its basis; tolerations may be added."""
    kind_before = before.get("placementType") or PICK_ALL
    if kind is not None and kind != kind_before:
        policy.add_error("placementType", f"cannot be changed ({kind_before} stays): make a new placement")
    tolerated = {_tolerated(toleration.content) for toleration in policy.entries("tolerations")}
    for entry in cast("Sequence[Any]", before.get("tolerations") or ()):
        if isinstance(entry, dict) and _tolerated(cast("Document", entry)) not in tolerated:
            key = cast("Document", entry).get("key") or "any key"
            policy.add_error("tolerations", f"can only be added: the one of {shown(key)} must stay as it was")


def _tolerated(toleration: Mapping[str, Any]) -> tuple[str, ...]:
    operator = toleration.get("operator") or TOLERATION_OPERATORS[0]
    return (str(operator), *(str(toleration.get(field) or "") for field in ("key", "value", "effect")))
