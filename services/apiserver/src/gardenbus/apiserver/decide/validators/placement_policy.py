"""The rules of a placement's policy: what goes with which type, affinity, spread, tolerations, and what never changes.

Source: KubeFleet's `pkg/utils/validator/placement.go` and the rules beside its API types.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from gardenbus.apiserver.decide.fields import Place, shown
from gardenbus.apiserver.decide.metadata import label_problem, label_value_problem, qualified_name_problem
from gardenbus.apiserver.decide.validators.limits import check_only_quantity
from gardenbus.apiserver.decide.validators.scheduling import check_label_selector
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.placements import PICK_ALL, PICK_FIXED, PICK_N

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


def check_policy(spec: Place, old: Document | None) -> None:
    """Note every problem of the policy; a placement without one is PickAll."""
    policy = spec.section("policy") or Place({}, spec.at("policy"), spec.notebook)
    kind = policy.choice("placementType", TYPES) or (None if policy.content.get("placementType") else PICK_ALL)
    if kind is not None:
        _check_combination(policy, kind)
    _check_names(policy)
    policy.integer("numberOfClusters", least=0)
    if affinity := policy.nested("affinity", "clusterAffinity"):
        _check_affinity(affinity)
    _check_spread(policy)
    _check_tolerations(policy)
    if old is not None:
        _check_changes(policy, kind, section(old, "spec", "policy"))


def policy_warnings(document: Document) -> Sequence[str]:
    """What has no effect in a policy."""
    policy = section(document, "spec", "policy")
    if (policy.get("placementType") or PICK_ALL) == PICK_ALL and section(policy, "affinity", "clusterAffinity").get(
        PREFERRED
    ):
        return (f"spec.policy.affinity.clusterAffinity.{PREFERRED} is ignored: PickAll ranks nothing",)
    return ()


def _check_combination(policy: Place, kind: str) -> None:
    for field, kinds in _GOES_WITH.items():
        if kind not in kinds and policy.content.get(field) not in (None, [], {}):
            policy.note(field, f"goes with {' and '.join(kinds)} alone: leave it out, as the placement is {kind}")
    if kind == PICK_N and not policy.has("numberOfClusters"):
        policy.note("numberOfClusters", "is needed for PickN: say how many clusters, 0 or more")
    if kind == PICK_FIXED and policy.content.get("clusterNames") in (None, []):
        policy.note("clusterNames", "is needed for PickFixed: name at least one cluster")


def _check_names(policy: Place) -> None:
    names = policy.unique_texts("clusterNames")
    if len(names) > MOST_NAMES:
        policy.note("clusterNames", f"must be at most {MOST_NAMES}, not {len(names)}")
    for path, name in names:
        if problem := label_problem(name):
            policy.notebook.note(path, problem)


def _check_affinity(affinity: Place) -> None:
    for field in (REQUIRED, REQUIRED_ALWAYS):
        if required := affinity.section(field):
            terms = required.entries("clusterSelectorTerms")
            if len(terms) > MOST_TERMS:
                required.note("clusterSelectorTerms", f"must be at most {MOST_TERMS}, not {len(terms)}")
            for term in terms:
                _check_required(term)
    for preferred in affinity.entries(PREFERRED):
        preferred.integer("weight", least=-HEAVIEST, most=HEAVIEST, required=True)
        if preference := preferred.section("preference", required=True):
            _check_preference(preference)


def _check_required(term: Place) -> None:
    if labels := term.section("labelSelector"):
        check_label_selector(labels)
    if term.has("propertySorter"):
        term.note("propertySorter", f"only ranks: put it into {PREFERRED}, or compare with a propertySelector")
    selector = term.section("propertySelector")
    if selector is None:
        return
    for expression in selector.entries("matchExpressions", required=True):
        _check_property_name(expression)
        expression.choice("operator", OPERATORS, required=True)
        check_only_quantity(expression, "values")


def _check_preference(preference: Place) -> None:
    if labels := preference.section("labelSelector"):
        check_label_selector(labels)
    if preference.has("propertySelector"):
        preference.note("propertySelector", "is for required terms: rank by a property with propertySorter")
    if sorter := preference.section("propertySorter"):
        _check_property_name(sorter)
        sorter.choice("sortOrder", ORDERS, required=True)


def _check_property_name(holder: Place) -> None:
    name = holder.text("name", required=True)
    if not name:
        return
    if not name.startswith(RESOURCE_PREFIX):
        if problem := qualified_name_problem(name):
            holder.note("name", problem)
        return
    capacity, _, resource = name.removeprefix(RESOURCE_PREFIX).partition("-")
    if capacity not in CAPACITIES or not resource or "-" in resource:
        ways = "|".join(CAPACITIES)
        holder.note("name", f"{shown(name)} is no resource: write {RESOURCE_PREFIX}<{ways}>-<resource>, as …/total-cpu")


def _check_spread(policy: Place) -> None:
    seen: set[tuple[str, str]] = set()
    for constraint in policy.entries("topologySpreadConstraints"):
        key = constraint.text("topologyKey", required=True)
        if key and (problem := qualified_name_problem(key)):
            constraint.note("topologyKey", problem)
        constraint.integer("maxSkew", least=1)
        when = constraint.choice("whenUnsatisfiable", WHEN_UNSATISFIABLE) or WHEN_UNSATISFIABLE[0]
        if key and (key, when) in seen:
            constraint.note("topologyKey", f"{shown(key)} with {when} is in the list already: keep one")
        seen.add((key or "", when))


def _check_tolerations(policy: Place) -> None:
    tolerations = policy.entries("tolerations")
    if len(tolerations) > MOST_TOLERATIONS:
        policy.note("tolerations", f"must be at most {MOST_TOLERATIONS}, not {len(tolerations)}")
    seen: set[tuple[str, ...]] = set()
    for toleration in tolerations:
        key, value = toleration.text("key"), toleration.text("value")
        operator = toleration.choice("operator", TOLERATION_OPERATORS) or TOLERATION_OPERATORS[0]
        toleration.choice("effect", ("NoSchedule", ""))
        if key and (problem := qualified_name_problem(key)):
            toleration.note("key", problem)
        if operator == "Exists" and value:
            toleration.note("value", "is not compared with Exists: leave it out, or use Equal")
        if operator == "Equal" and not key:
            toleration.note("key", "is needed with Equal; Exists without a key tolerates every taint")
        if operator == "Equal" and value and (problem := label_value_problem(value)):
            toleration.note("value", problem)
        if (entry := _tolerated(toleration.content)) in seen:
            toleration.note("key", "the same toleration is in the list already: keep one")
        seen.add(entry)


def _check_changes(policy: Place, kind: str | None, before: Document) -> None:
    """What was decided about the sort of placement stays, and what it tolerates: nothing placed loses its ground."""
    kind_before = before.get("placementType") or PICK_ALL
    if kind is not None and kind != kind_before:
        policy.note("placementType", f"cannot be changed ({kind_before} stays): make a new placement")
    tolerated = {_tolerated(toleration.content) for toleration in policy.entries("tolerations")}
    for entry in cast("Sequence[Any]", before.get("tolerations") or ()):
        if isinstance(entry, dict) and _tolerated(cast("Document", entry)) not in tolerated:
            key = cast("Document", entry).get("key") or "any key"
            policy.note("tolerations", f"can only be added: the one of {shown(key)} must stay as it was")


def _tolerated(toleration: Mapping[str, Any]) -> tuple[str, ...]:
    operator = toleration.get("operator") or TOLERATION_OPERATORS[0]
    return (str(operator), *(str(toleration.get(field) or "") for field in ("key", "value", "effect")))
