"""Rules of ClusterResourceOverrides and ResourceOverrides.

Source: KubeFleet's `apis/placement/v1beta1/override_types.go` and `pkg/utils/validator`.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.metadata import (
    object_name_problem,
    qualified_name_problem,
    subdomain_problem,
)
from gardenbus.apiserver.domain.validation.shared import (
    OtherScope,
    check_label_selector,
    check_name_fits_label,
    check_scope,
)
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.overrides import (
    DELETE,
    JSON_PATCH,
    NAMESPACED,
    OPERATIONS,
    ClusterOverride,
    NamespacedOverride,
    variables_in,
)
from gardenbus.common.api.shown_values import shown
from gardenbus.common.api.views import mapping_or_empty

MOST_ENTRIES = 20
"""Selectors, rules, and operations of a rule."""

_KEPT = re.compile(r"/(kind|apiVersion|status)(/|$)")
_METADATA = re.compile(r"/metadata(?!/(labels|annotations)(/|$))(/|$)")

_WAYS = OtherScope(
    of_no_namespace="change it in a ClusterResourceOverride",
    of_a_namespace="make a ResourceOverride there, or select its Namespace, which takes along what is in it",
)


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of an override of either kind."""
    check_name_fits_label(manifest)
    is_namespaced = manifest.content.get("kind") == "ResourceOverride"
    spec = manifest.section("spec", required=True)
    _check_placement(spec, old, is_namespaced=is_namespaced)
    _check_selectors(spec, is_namespaced=is_namespaced)
    policy = spec.section("policy", required=True)
    rules = policy.entries("overrideRules", required=True, most=MOST_ENTRIES)
    if policy.content.get("overrideRules") == []:
        policy.add_error("overrideRules", "must not be empty: state what to change")
    for rule in rules:
        _check_rule(rule)
    if not manifest.errors.problems:
        (NamespacedOverride if is_namespaced else ClusterOverride).from_document(dict(manifest.content))


def _check_placement(spec: FieldCursor, old: Document | None, *, is_namespaced: bool) -> None:
    placement = spec.section("placement")
    if placement:
        placement.text("name", required=True, rule=subdomain_problem)
        scope = placement.choice("scope", ("Cluster", NAMESPACED))
        if scope == NAMESPACED and not is_namespaced:
            placement.add_error("scope", "must be Cluster: only a ResourceOverride can be for a ResourcePlacement")
    if old is None:
        return
    before, after = (_placement_of(each) for each in (section(old, "spec"), spec.content))
    if before != after:
        stays = " ".join(before) or "no placement"
        spec.add_error("placement", f"cannot be changed ({stays} stays): make a new override")


def _placement_of(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Scope and name of the only placement of an override; () without one."""
    placement = mapping_or_empty(spec.get("placement"))
    return (str(placement.get("scope") or "Cluster"), str(placement.get("name"))) if placement else ()


def _check_selectors(spec: FieldCursor, *, is_namespaced: bool) -> None:
    field = "resourceSelectors" if is_namespaced else "clusterResourceSelectors"
    selectors = spec.entries(field, required=True, most=MOST_ENTRIES)
    if spec.content.get(field) == []:
        spec.add_error(field, "must not be empty: name what is to be changed")
    seen: set[tuple[str, ...]] = set()
    for selector in selectors:
        named = selector.text("group") or "", *(selector.text(each, required=True) for each in ("version", "kind"))
        rule = partial(object_name_problem, group=named[0], kind=named[2] or "")
        name = selector.text("name", required=True, rule=rule)
        for unknown in ("labelSelector", "selectionScope"):
            if selector.has(unknown) and not (unknown == "selectionScope" and not is_namespaced):
                selector.add_error(unknown, "has no place in an override: name the object")
        identity = tuple(str(each) for each in (*named, name))
        if identity in seen:
            selector.add_error("name", f"{shown(name)} of this kind is in the list already: name it once")
        seen.add(identity)
        check_scope(selector, identity[0], identity[2], _WAYS, is_namespaced=is_namespaced)


def _check_rule(rule: FieldCursor) -> None:
    for term in rule.section("clusterSelector").entries("clusterSelectorTerms"):
        for other in ("propertySelector", "propertySorter"):
            if term.has(other):
                term.add_error(other, "is not for overrides: select clusters by labelSelector")
        check_label_selector(term.section("labelSelector", required=True))
    kind = rule.choice("overrideType", (JSON_PATCH, DELETE)) or JSON_PATCH
    operations = rule.entries("jsonPatchOverrides", most=MOST_ENTRIES)
    if kind == DELETE and operations:
        rule.add_error("jsonPatchOverrides", "must be left out with overrideType Delete: nothing is left to change")
    if kind == JSON_PATCH and not operations:
        rule.add_error("jsonPatchOverrides", "is needed with overrideType JSONPatch: write at least one operation")
    for operation in operations:
        _check_operation(operation)


def _check_operation(operation: FieldCursor) -> None:
    op = operation.choice("op", OPERATIONS, required=True)
    path = operation.text("path", required=True)
    if path and (problem := _path_problem(path)):
        operation.add_error("path", f"{shown(path)} {problem}")
    if op == "remove" and operation.has("value"):
        operation.add_error("value", "must be left out with op remove")
    elif op in ("add", "replace") and "value" not in operation.content:
        operation.add_error("value", f"is needed with op {op}; null counts when it is written")
    try:
        labels = list(variables_in(operation.content.get("value")))
    except ValueError as error:
        operation.add_error("value", str(error))
        return
    for label in labels:
        if problem := qualified_name_problem(label):
            operation.add_error("value", f"the variable of {shown(label)} names no label: {problem}")


def _path_problem(path: str) -> str:
    """Problem of a JSON pointer; "" without one."""
    if not path.startswith("/"):
        return "begins with no /, as in /spec/replicas"
    if "//" in path or path.endswith("/"):
        return "has an empty part: leave out the / that is too much"
    if re.search(r"~(?![01])", path):
        return "has a ~ that stands for nothing: write ~0 for ~, and ~1 for /"
    if _KEPT.match(path):
        return "cannot be overridden: what an object is, and its status, stay"
    if _METADATA.match(path):
        return "cannot be overridden: of metadata only /metadata/labels and /metadata/annotations can"
    return ""
