"""Fields of scheduling requirements about groups of shoots: memberships, affinity, anti-affinity and spread."""

import re
from typing import Any

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.requirement_fields import FieldPlace, entries_of, mapping, whole_number_at

SHOOT_TERMS = ("shootAffinity", "shootAntiAffinity")

MOST_GROUPS = 4
MOST_CONSTRAINTS = 4
MOST_SHOOT_TERMS = 8
MOST_SKEW = 1_000_000
MOST_WEIGHT = 100

DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
COUNT_FULL, IGNORE_FULL = "Count", "Ignore"

_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TOPOLOGY_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_CONSTRAINT = ("group", "topologyKey", "maxSkew", "minDomains", "whenUnsatisfiable", "fullDomains")


def group_names(value: Any, place: FieldPlace) -> list[str]:
    """The groups that a shoot is a member of, in the order of names, each once."""
    return sorted({_group(*entry) for entry in entries_of(value, place, MOST_GROUPS)})


def shoot_terms(value: Any, place: FieldPlace) -> Document:
    """The terms of a shootAffinity or a shootAntiAffinity, required and preferred."""
    found = mapping(value, place, ("required", "preferred"))
    terms: Document = {}
    for name, read in (("required", _term), ("preferred", _preferred_term)):
        at = place.at(f".{name}")
        if entries := [read(*entry) for entry in entries_of(found.get(name, []), at, MOST_SHOOT_TERMS)]:
            terms[name] = entries
    return terms


def spread_constraints(value: Any, place: FieldPlace) -> list[Document]:
    """The topologySpreadConstraints."""
    return [_constraint(*entry) for entry in entries_of(value, place, MOST_CONSTRAINTS)]


def _term(value: Any, place: FieldPlace) -> Document:
    term = mapping(value, place, ("group", "topologyKey"))
    return {
        "group": _group(term.get("group"), place.at(".group")),
        "topologyKey": _topology_key(term.get("topologyKey"), place.at(".topologyKey")),
    }


def _preferred_term(value: Any, place: FieldPlace) -> Document:
    term = mapping(value, place, ("weight", "group", "topologyKey"))
    weight = whole_number_at(term.get("weight"), place.at(".weight"), 1, MOST_WEIGHT)
    return {
        "weight": weight,
        "group": _group(term.get("group"), place.at(".group"), is_hard=False),
        "topologyKey": _topology_key(term.get("topologyKey"), place.at(".topologyKey")),
    }


def _constraint(value: Any, place: FieldPlace) -> Document:
    found = mapping(value, place, _CONSTRAINT)
    unsatisfiable = found.get("whenUnsatisfiable", DO_NOT_SCHEDULE)
    if unsatisfiable not in (DO_NOT_SCHEDULE, SCHEDULE_ANYWAY):
        place.report(".whenUnsatisfiable", f"must be {DO_NOT_SCHEDULE} or {SCHEDULE_ANYWAY}")
    elif unsatisfiable == SCHEDULE_ANYWAY:
        for name in ("minDomains", "fullDomains"):
            if name in found:
                place.report(f".{name}", f"has an effect with {DO_NOT_SCHEDULE} only")
    full = found.get("fullDomains", COUNT_FULL)
    if full not in (COUNT_FULL, IGNORE_FULL):
        place.report(".fullDomains", f"must be {COUNT_FULL} or {IGNORE_FULL}")
    constraint = {
        "group": _group(found.get("group"), place.at(".group"), is_hard=unsatisfiable == DO_NOT_SCHEDULE),
        "topologyKey": _topology_key(found.get("topologyKey"), place.at(".topologyKey")),
        "maxSkew": whole_number_at(found.get("maxSkew", 1), place.at(".maxSkew"), 1, MOST_SKEW),
        "whenUnsatisfiable": unsatisfiable,
    }
    if "minDomains" in found:
        constraint["minDomains"] = whole_number_at(found["minDomains"], place.at(".minDomains"), 1, MOST_SKEW)
    if full == IGNORE_FULL:
        constraint["fullDomains"] = IGNORE_FULL
    return constraint


def _group(value: Any, place: FieldPlace, *, is_hard: bool = True) -> str:
    if value == "*":
        place.report("", 'a hard rule needs a named group, not "*"' if is_hard else 'must be a named group, not "*"')
    elif not isinstance(value, str) or not _GROUP.fullmatch(value):
        place.report("", "must be the name of a group: at most 63 lower-case letters, digits and -, as pair-a")
    else:
        return value
    return ""


def _topology_key(value: Any, place: FieldPlace) -> str:
    if isinstance(value, str) and _TOPOLOGY_KEY.fullmatch(value):
        return value
    place.report("", "must be seed, region, provider, or the key of a label of Seeds")
    return ""
