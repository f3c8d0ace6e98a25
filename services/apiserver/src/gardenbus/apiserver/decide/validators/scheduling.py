"""Rules of the parts that several kinds share: selectors, taints, tolerations, ranges, quantities, instants."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from gardenbus.apiserver.decide.fields import Place, shown, unique
from gardenbus.apiserver.decide.metadata import qualified_name_problem
from gardenbus.common.resources.networks import family_of, parse_cidr
from gardenbus.common.resources.quantities import parse_quantity
from gardenbus.common.resources.selectors import LabelSelector, Requirement

IP_FAMILIES = ("IPv4", "IPv6")


def check_label_selector(selector: Place) -> LabelSelector:
    """Note every problem of a label selector, and answer what of it could be read."""
    labels = selector.text_map("matchLabels")
    requirements: list[Requirement] = []
    for expression in selector.entries("matchExpressions"):
        key, operator = expression.text("key", required=True), expression.text("operator", required=True)
        values = tuple(value for _, value in expression.texts("values"))
        if key and operator:
            requirement = Requirement(key, operator, values)
            requirements.append(requirement)
            for path, message in LabelSelector((), (requirement,)).problems:
                expression.note(path.partition(".")[2], message)
    parsed = LabelSelector.of(labels, requirements)
    for path, message in LabelSelector.of(labels).problems:
        selector.note(path, message)
    return parsed


def check_seed_selector(holder: Place, field: str = "seedSelector") -> None:
    """Note every problem of a selector of seeds, its provider types included."""
    selector = holder.section(field)
    if selector is not None:
        check_label_selector(selector)
        selector.unique_texts("providerTypes")


def check_tolerations(holder: Place, field: str = "tolerations") -> None:
    """Note tolerations without key, and such that are there already. Source: Gardener's `validation/project.go`."""
    seen: set[str] = set()
    for toleration in holder.entries(field):
        key, value = _keyed(toleration)
        if key is None:
            continue
        name = key if value is None else f"{key}={value}"
        if name in seen or key in seen:
            toleration.note("key", f"{shown(name)} is tolerated by an entry before it: keep one")
        seen.add(name)


def check_taints(holder: Place, field: str = "taints") -> None:
    """Note taints without key, and repeated ones. Source: Gardener's `validation/seed.go`."""
    seen: set[tuple[str, str | None]] = set()
    for taint in holder.entries(field):
        key, value = _keyed(taint)
        if key is None:
            continue
        if (key, value) in seen:
            taint.note("key", f"{shown(key)} with the same value is in the list already: keep one")
        seen.add((key, value))


def check_access_restrictions(holder: Place, field: str = "accessRestrictions") -> None:
    """Note restrictions without name, and repeated ones."""
    restrictions = holder.entries(field)
    for restriction in restrictions:
        restriction.text("name", required=True)
        restriction.text_map("options")
    unique(restrictions, "name")


def check_range(holder: Place, field: str, families: Sequence[str] = IP_FAMILIES) -> None:
    """Note a network range that is malformed, or of a family that does not apply."""
    text = holder.text(field)
    if text is None:
        return
    try:
        parse_cidr(text)
    except ValueError as error:
        holder.note(field, str(error))
        return
    if family_of(text) not in families:
        holder.note(field, f"{text} is {family_of(text)}, but the families are {', '.join(families)}")


def check_ip_families(holder: Place, field: str = "ipFamilies") -> Sequence[str]:
    """Note families that do not exist, and repeated ones; answer those that apply (IPv4 when none is named)."""
    families = [
        family if family in IP_FAMILIES else holder.notebook.note(path, f"must be IPv4 or IPv6, not {shown(family)}")
        for path, family in holder.unique_texts(field)
    ]
    return [family for family in families if family] or IP_FAMILIES[:1]


def check_quantities(holder: Place, field: str) -> dict[str, Any]:
    """Note entries of a resource list that are no quantities or below zero; answer the others (name → number)."""
    section = holder.section(field)
    numbers: dict[str, Any] = {}
    for name in section.content if section else ():
        number = check_quantity(section, name) if section else None
        if number is not None:
            numbers[name] = number
    return numbers


def check_quantity(holder: Place, field: str) -> Any:
    """Note a field that is no quantity or below zero; answer its number, or None."""
    value = holder.content.get(field)
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        holder.note(field, f"must be a quantity as 10, 1500m or 1Ki, not {shown(value)}")
        return None
    try:
        number = parse_quantity(value)
    except ValueError as error:
        holder.note(field, str(error))
        return None
    if number < 0:
        holder.note(field, f"must not be below zero, but is {value}")
        return None
    return number


def check_instant(holder: Place, field: str) -> None:
    """Note a time that is not RFC 3339 with its zone."""
    text = holder.text(field)
    if text is None:
        return
    try:
        zoned = datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        zoned = False
    if not zoned or "T" not in text:
        holder.note(field, f"{shown(text)} is no time: write 2026-01-02T03:04:05Z")


def _keyed(entry: Place) -> tuple[str | None, str | None]:
    """Key and value of a taint or toleration; the key is None when it is unusable."""
    key, value = entry.text("key", required=True), entry.text("value")
    if not key:
        return None, value
    if problem := qualified_name_problem(key):
        entry.note("key", problem)
        return None, value
    return key, value
