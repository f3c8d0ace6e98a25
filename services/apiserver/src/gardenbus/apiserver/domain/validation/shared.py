"""Rules of the parts that several kinds share: selectors, taints, tolerations, ranges, quantities, instants."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, unique
from gardenbus.apiserver.domain.validation.metadata import label_value_problem, qualified_name_problem
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import only_text
from gardenbus.common.api.garden.named_references import REFERABLE_KINDS
from gardenbus.common.api.garden.scheduling_requirements import new_requirement_problems
from gardenbus.common.api.kinds import KINDS
from gardenbus.common.api.networks import ip_family_of, is_canonical, is_cidr, overlap, parse_cidr
from gardenbus.common.api.quantities import parse_quantity
from gardenbus.common.api.selectors import LabelSelector, LabelSelectorRequirement
from gardenbus.common.api.shown_values import shown

IP_FAMILIES = ("IPv4", "IPv6")
RANGES = ("nodes", "pods", "services")
LONGEST_LABEL_VALUE = 63
CONFIGURATIONS = (("v1", "Secret"), ("v1", "ConfigMap"))
"""Kinds that have data in them, by their API version and kind."""


class OtherScope(NamedTuple):
    """Advice about a selected object of the other scope: of no namespace where one selects within it, or of one."""

    of_no_namespace: str
    of_a_namespace: str


def check_scope(selector: FieldCursor, group: str, kind: str, ways: OtherScope, *, is_namespaced: bool) -> None:
    """Check that a selected kind is of the selecting object's scope; kinds that are not served pass."""
    spec_of_kind = KINDS.get(kind.lower())
    if spec_of_kind is None or spec_of_kind.group != group or spec_of_kind.namespaced in (None, is_namespaced):
        return
    if is_namespaced:
        selector.add_error("kind", f"{shown(kind)} is of no namespace: {ways.of_no_namespace}")
    else:
        selector.add_error("kind", f"{shown(kind)} is of a namespace: {ways.of_a_namespace}")


def check_name_fits_label(manifest: FieldCursor) -> None:
    """Note a name that is too long for the value of a label, which it becomes."""
    name = str(section(manifest.content, "metadata").get("name"))
    if len(name) > LONGEST_LABEL_VALUE:
        manifest.add_error(
            "metadata.name", f"must have at most {LONGEST_LABEL_VALUE} characters, not {len(name)}: it is a label"
        )


def check_label_selector(selector: FieldCursor) -> LabelSelector:
    """Check a label selector; returns the part of it that is valid."""
    labels = selector.text_map("matchLabels")
    requirements: list[LabelSelectorRequirement] = []
    for expression in selector.entries("matchExpressions"):
        key, operator = expression.text("key", required=True), expression.text("operator", required=True)
        values = tuple(value for _, value in expression.texts("values"))
        requirement = LabelSelectorRequirement(key or "key", operator or "Exists", values if operator else ())
        if key and operator:
            requirements.append(requirement)
        for path, message in LabelSelector((), (requirement,)).problems if key or operator else ():
            expression.add_error(path.partition(".")[2], message)
    parsed = LabelSelector.of(labels, requirements)
    for path, message in LabelSelector.of(labels).problems:
        selector.add_error(path, message)
    return parsed


def check_seed_selector(holder: FieldCursor, field: str = "seedSelector") -> None:
    """Note every problem of a selector of seeds, its provider types included."""
    selector = holder.section(field)
    check_label_selector(selector)
    selector.unique_texts("providerTypes")


def check_tolerations(holder: FieldCursor, field: str = "tolerations") -> None:
    """Note tolerations without key, and such that are there already. Source: Gardener's `validation/project.go`."""
    seen: set[str] = set()
    for toleration in holder.entries(field):
        key, value = _keyed(toleration)
        toleration.text("value", rule=label_value_problem)
        if key is None:
            continue
        name = key if value is None else f"{key}={value}"
        if name in seen or key in seen:
            toleration.add_error("key", f"{shown(name)} is tolerated by an entry before it: keep one")
        seen.add(name)


def check_taints(holder: FieldCursor, field: str = "taints") -> None:
    """Note taints without key, and repeated ones. Source: Gardener's `validation/seed.go`."""
    seen: set[tuple[str, str | None]] = set()
    for taint in holder.entries(field):
        key, value = _keyed(taint)
        if key is None:
            continue
        if (key, value) in seen:
            taint.add_error("key", f"{shown(key)} with the same value is in the list already: keep one")
        seen.add((key, value))


def check_access_restrictions(holder: FieldCursor, field: str = "accessRestrictions") -> None:
    """Note restrictions without name, and repeated ones."""
    restrictions = holder.entries(field)
    for restriction in restrictions:
        restriction.text("name", required=True)
        restriction.text_map("options")
    unique(restrictions, "name")


def check_annotation_keys(holder: FieldCursor, field: str = "annotations") -> None:
    """Note keys of annotations that could be none."""
    for key in holder.text_map(field):
        if problem := qualified_name_problem(key.lower()):
            holder.add_error(field, problem)


def check_requirements(manifest: FieldCursor, old: Document | None, annotation: str) -> None:
    """Note what is wrong with scheduling requirements in an annotation, where it changes."""
    for problem in new_requirement_problems(manifest.content, old, annotation):
        manifest.errors.add_error(problem.field, problem.message)


def check_resources(holder: FieldCursor, kinds: Sequence[tuple[str, str]] = tuple(REFERABLE_KINDS)) -> None:
    """Note references of `resources` that have no name of their own, or name what cannot be referred to."""
    holder.named_entries("resources")
    for resource in holder.entries("resources"):
        check_reference(resource.section("resourceRef", required=True), kinds)


def check_reference(reference: FieldCursor, kinds: Sequence[tuple[str, str]]) -> None:
    """Note a reference to an object that lacks a part, or whose API version and kind are none of some."""
    version, kind = (reference.text(field, required=True) for field in ("apiVersion", "kind"))
    reference.text("name", required=True)
    if version and kind and (version, kind) not in kinds:
        choices = " or ".join(f"{name} ({group})" for group, name in kinds)
        reference.add_error("kind", f"must be {choices}, not {shown(kind)} ({version})")


def check_ranges(holder: FieldCursor, fields: Sequence[str] = RANGES, families: Sequence[str] = IP_FAMILIES) -> None:
    """Note network ranges that are malformed, or of a family that does not apply."""
    for field in fields:
        text = holder.text(field)
        if text is None:
            continue
        try:
            parse_cidr(text)
        except ValueError as error:
            holder.add_error(field, str(error))
            continue
        if ip_family_of(text) not in families:
            holder.add_error(field, f"{text} is {ip_family_of(text)}, but the families are {', '.join(families)}")


def check_disjoint(holder: FieldCursor, fields: Sequence[str] = RANGES, *, canonical: bool = True) -> None:
    """Note ranges of one holder that overlap, or (`canonical`) have host bits; malformed ones are noted elsewhere."""
    stated = [field for field in fields if is_cidr(only_text(holder.content.get(field)))]
    for number, field in enumerate(stated):
        if canonical and not is_canonical(holder.content[field]):
            network = parse_cidr(holder.content[field])
            holder.add_error(field, f"{holder.content[field]} has bits of hosts: write {network}")
        for other in stated[:number]:
            if overlap(holder.content[field], holder.content[other]):
                holder.add_error(field, f"{holder.content[field]} overlaps with {other}, {holder.content[other]}")


def check_ip_families(holder: FieldCursor, field: str = "ipFamilies") -> Sequence[str]:
    """Check IP families; returns those that apply (IPv4 when none is named)."""
    families = [
        family if family in IP_FAMILIES else holder.errors.add_error(path, f"must be IPv4 or IPv6, not {shown(family)}")
        for path, family in holder.unique_texts(field)
    ]
    return [family for family in families if family] or IP_FAMILIES[:1]


def check_quantities(holder: FieldCursor, field: str) -> dict[str, Any]:
    """Check a resource list; returns the valid quantities (name → number)."""
    section = holder.section(field)
    numbers = {name: check_quantity(section, name) for name in section.content}
    return {name: number for name, number in numbers.items() if number is not None}


def check_quantity(holder: FieldCursor, field: str) -> Any:
    """Check a quantity; returns its number, or None."""
    value = holder.content.get(field)
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        holder.add_error(field, f"must be a quantity as 10, 1500m or 1Ki, not {shown(value)}")
        return None
    try:
        number = parse_quantity(value)
    except ValueError as error:
        holder.add_error(field, str(error))
        return None
    if number < 0:
        holder.add_error(field, f"must not be below zero, but is {value}")
        return None
    return number


def check_instant(holder: FieldCursor, field: str) -> None:
    """Note a time that is not RFC 3339 with its zone."""
    text = holder.text(field)
    if text is None:
        return
    try:
        zoned = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        zoned = False
    if not zoned or "T" not in text:
        holder.add_error(field, f"{shown(text)} is no time: write 2026-01-02T03:04:05Z")


def _keyed(entry: FieldCursor) -> tuple[str | None, str | None]:
    """Key and value of a taint or toleration; the key is None when it is unusable."""
    key, value = entry.text("key", required=True), entry.text("value")
    if not key:
        return None, value
    if problem := qualified_name_problem(key):
        entry.add_error("key", problem)
        return None, value
    return key, value
