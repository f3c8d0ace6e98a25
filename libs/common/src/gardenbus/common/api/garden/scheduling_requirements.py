"""Scheduling requirements of a Shoot: what its annotation states, over the defaults of its Project.

`REQUIREMENTS` on a Shoot, and `DEFAULTS` on a Project, hold a document in YAML or JSON. Admission checks it and writes
what holds, as canonical JSON in units of account, into `RESOLVED`: the one that services read.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, canonical, section
from gardenbus.common.api.garden.group_rule_fields import (
    COUNT_FULL,
    DO_NOT_SCHEDULE,
    IGNORE_FULL,
    SCHEDULE_ANYWAY,
    SHOOT_TERMS,
    group_names,
    shoot_terms,
    spread_constraints,
)
from gardenbus.common.api.garden.requirement_fields import FieldPlace, entries_of, mapping, whole_number_at
from gardenbus.common.api.garden.resource_amounts import RESOURCE, requested_amount
from gardenbus.common.api.garden.scheduling_order import LEAST_PRIORITY, MOST_PRIORITY, max_priority
from gardenbus.common.api.garden.scheduling_profiles import PreferredSeeds
from gardenbus.common.api.garden.seeds import SHOOTS
from gardenbus.common.api.garden.shoot_groups import (
    NO_GROUP_RULES,
    GroupRules,
    GroupTerm,
    PreferredGroupTerm,
    SpreadConstraint,
)
from gardenbus.common.api.manifests.strict_yaml import read_yaml
from gardenbus.common.api.selectors import LabelSelector, parse_selector
from gardenbus.common.api.short_cache import short_cache
from gardenbus.common.errors import BadRequest, FieldProblem

REQUIREMENTS = "scheduling.gardenbus.io/requirements"
"""On a Shoot: what it requires."""

DEFAULTS = "scheduling.gardenbus.io/defaults"
"""On a Project: what its Shoots require that state nothing else."""

RESOLVED = "scheduling.gardenbus.io/resolved"
"""On a Shoot: what holds. Only admission writes it."""

GATED, PRIORITIZED = b"schedulingGates", b"priority"
"""In the stored metadata of each shoot that has gates, or a priority; in that of few others."""

MOST_BYTES = 8 * 1024
MOST_REQUESTS = 8
MOST_TERMS = 8
MOST_GATES = 8
MOST_WEIGHT = 100

Requests = tuple[tuple[str, int], ...]
"""Resource and amount of each, in the order of names; every shoot requests one of `shoots` besides."""


class SchedulingRequirements(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """SchedulingRequirements that hold for a shoot."""

    requests: Requests = ()
    required_seeds: tuple[LabelSelector, ...] = ()
    """One of these must match the labels of its seed, besides spec.seedSelector."""

    preferred_seeds: tuple[PreferredSeeds, ...] = ()
    group_rules: GroupRules = NO_GROUP_RULES
    priority: int = 0
    gates: tuple[str, ...] = ()
    """The scheduling gates that keep it out of its queue."""


NO_REQUIREMENTS = SchedulingRequirements()


class _PreferredTerm(msgspec.Struct, frozen=True):
    weight: int
    preference: Document


class _SeedAffinity(msgspec.Struct, frozen=True):
    required: tuple[Document, ...] = ()
    preferred: tuple[_PreferredTerm, ...] = ()


class _Term(msgspec.Struct, frozen=True, rename="camel"):
    group: str
    topology_key: str


class _Constraint(msgspec.Struct, frozen=True, rename="camel"):
    group: str
    topology_key: str
    max_skew: int = 1
    min_domains: int = 1
    full_domains: str = COUNT_FULL
    when_unsatisfiable: str = DO_NOT_SCHEDULE

    @property
    def constraint(self) -> SpreadConstraint:
        ignores_full = self.full_domains == IGNORE_FULL
        return SpreadConstraint(self.group, self.topology_key, self.max_skew, self.min_domains, ignores_full)


class _WeightedTerm(msgspec.Struct, frozen=True, rename="camel"):
    weight: int
    group: str
    topology_key: str


class _Terms(msgspec.Struct, frozen=True):
    required: tuple[_Term, ...] = ()
    preferred: tuple[_WeightedTerm, ...] = ()

    @property
    def required_terms(self) -> tuple[GroupTerm, ...]:
        return tuple(GroupTerm(each.group, each.topology_key) for each in self.required)

    @property
    def preferred_terms(self) -> tuple[PreferredGroupTerm, ...]:
        return tuple(
            PreferredGroupTerm(each.weight, GroupTerm(each.group, each.topology_key)) for each in self.preferred
        )


class _Affinity(msgspec.Struct, frozen=True, rename="camel"):
    seed_affinity: _SeedAffinity = _SeedAffinity()
    shoot_affinity: _Terms = _Terms()
    shoot_anti_affinity: _Terms = _Terms()


class _NamedGates(msgspec.Struct, frozen=True):
    name: str


class _Resolved(msgspec.Struct, frozen=True, rename="camel"):
    requests: dict[str, int] = {}
    affinity: _Affinity = _Affinity()
    groups: tuple[str, ...] = ()
    topology_spread_constraints: tuple[_Constraint, ...] = ()
    priority: int = 0
    scheduling_gates: tuple[_NamedGates, ...] = ()


_decode = json_decoder(_Resolved)


def resolved_requirements(annotations: Mapping[str, Any]) -> SchedulingRequirements:
    """The requirements that admission has resolved; none where they cannot be read."""
    text = annotations.get(RESOLVED)
    return _requirements(text) if isinstance(text, str) else NO_REQUIREMENTS


@short_cache(4096)
def _requirements(text: str) -> SchedulingRequirements:
    """The requirements of a text: shoots that are alike share it, and each decision reads it a few times."""
    try:
        read = _decode(text.encode())
        seeds = read.affinity.seed_affinity
        required = tuple(parse_selector(each) for each in seeds.required)
        preferred = tuple(PreferredSeeds(each.weight, parse_selector(each.preference)) for each in seeds.preferred)
    except (msgspec.MsgspecError, ValueError):
        return NO_REQUIREMENTS
    requests = {name: amount for name, amount in read.requests.items() if RESOURCE.fullmatch(name) and amount > 0}
    return SchedulingRequirements(
        requests=tuple(sorted(requests.items())),
        required_seeds=required,
        preferred_seeds=preferred,
        group_rules=_group_rules(read),
        priority=read.priority,
        gates=tuple(each.name for each in read.scheduling_gates),
    )


def _group_rules(read: _Resolved) -> GroupRules:
    affinity, stated = read.affinity, read.topology_spread_constraints
    rules = GroupRules(
        groups=read.groups,
        affinity=affinity.shoot_affinity.required_terms,
        anti_affinity=affinity.shoot_anti_affinity.required_terms,
        spread=tuple(each.constraint for each in stated if each.when_unsatisfiable != SCHEDULE_ANYWAY),
        preferred_affinity=affinity.shoot_affinity.preferred_terms,
        preferred_anti_affinity=affinity.shoot_anti_affinity.preferred_terms,
        preferred_spread=tuple(each.constraint for each in stated if each.when_unsatisfiable == SCHEDULE_ANYWAY),
    )
    return rules or NO_GROUP_RULES  # that very one, so that it is left out where requests are described


def resolved_of(document: Document) -> SchedulingRequirements:
    """The resolved requirements of a Shoot's manifest."""
    return resolved_requirements(section(document, "metadata", "annotations"))


def resolve(stated: Any, defaults: Any, priority: int = 0) -> str | None:
    """The requirements that hold, of the texts of a Shoot's and its Project's annotation; None where nothing does.

    Fields of the Shoot replace those of the Project as a whole; `priority` is that of one that states none. A text with
    problems counts as none.
    """
    of_project = {name: value for name, value in _valid(defaults).items() if name not in OF_A_SHOOT_ALONE}
    fields = {"priority": priority, **of_project, **_valid(stated)}
    held = {name: value for name, value in fields.items() if value}
    return canonical(held).decode() if held else None


def with_resolved(shoot: Document, project: Document | None, priority_by_purpose: Mapping[str, int] = {}) -> Document:
    """A Shoot as admission resolves it; the same object where it has no requirements.

    What its purpose gives is cut down to what its Project allows: calling everything production wins nothing.
    """
    annotations = section(shoot, "metadata", "annotations")
    priority = 0
    if priority_by_purpose and (given := priority_by_purpose.get(str(section(shoot, "spec").get("purpose")))):
        priority = min(given, max_priority(project))
    defaults = section(project or {}, "metadata", "annotations").get(DEFAULTS)
    text = resolve(annotations.get(REQUIREMENTS), defaults, priority)
    if annotations.get(RESOLVED) == text:
        return shoot
    kept = {name: value for name, value in annotations.items() if name != RESOLVED}
    annotated = kept if text is None else {**kept, RESOLVED: text}
    return {**shoot, "metadata": {**section(shoot, "metadata"), "annotations": annotated}}


def requirement_problems(text: Any, annotation: str) -> Sequence[FieldProblem]:
    """Problems of the text of an annotation, each with its path."""
    problems: list[FieldProblem] = []
    path = f"metadata.annotations[{annotation}]"
    fields = _read(text, path, problems)
    if annotation == DEFAULTS:
        problems += [
            FieldProblem(f"{path}.{name}", "is for shoots alone: a Project has no default of it")
            for name in OF_A_SHOOT_ALONE
            if name in fields
        ]
    return problems


def new_requirement_problems(
    document: Mapping[str, Any], old: Document | None, annotation: str
) -> Sequence[FieldProblem]:
    """Problems of an annotation of a manifest, where it differs from what is stored."""
    text = section(document, "metadata", "annotations").get(annotation)
    if text is None or text == section(old or {}, "metadata", "annotations").get(annotation):
        return ()
    return requirement_problems(text, annotation)


def _valid(text: Any) -> Document:
    problems: list[FieldProblem] = []
    fields = _read(text, "", problems) if text is not None else {}
    return {} if problems else fields


def _read(text: Any, path: str, problems: list[FieldProblem]) -> Document:
    """The fields of a document as they are resolved; problems are added."""
    place = FieldPlace(path, problems)
    document = _document(text, place)
    fields: Document = {}
    for name, value in document.items():
        read = _FIELDS.get(name)
        if read is None:
            place.report(f".{name[:80]}", f"no such field; there are {', '.join(_FIELDS)}")
        elif value is not None:
            fields[name] = read(value, place.at(f".{name}"))
    return fields


def _document(text: Any, place: FieldPlace) -> Document:
    if not isinstance(text, str) or len(text.encode()) > MOST_BYTES:
        place.report("", f"must be a text of at most {MOST_BYTES} bytes")
        return {}
    try:
        documents = read_yaml(text, 1)
    except BadRequest as error:
        place.report("", f"is neither YAML nor JSON: {error.message}")
        return {}
    found: object = documents[0] if documents else {}
    if not isinstance(found, dict):
        place.report("", "must be a mapping, as requests: {cpu: '4'}")
        return {}
    return cast("Document", found)


def _requests(value: Any, place: FieldPlace) -> dict[str, int]:
    if not isinstance(value, dict):
        place.report("", "must be a mapping of resources to quantities")
        return {}
    quantities = cast("dict[str, Any]", value)
    if len(quantities) > MOST_REQUESTS:
        place.report("", f"must not have more than {MOST_REQUESTS} resources")
    amounts: dict[str, int] = {}
    for resource, quantity in quantities.items():
        below = f".{resource[:80]}"
        if resource == SHOOTS:
            place.report(below, "every shoot requests one: leave it out")
        elif not RESOURCE.fullmatch(resource):
            place.report(below, "is not the name of a resource, as cpu or example.com/load-balancers")
        elif not isinstance(quantity, str | int | float) or isinstance(quantity, bool):
            place.report(below, "must be a quantity, as 4, 500m or 16Gi")
        else:
            try:
                amounts[resource] = requested_amount(resource, quantity)
            except ValueError as error:
                place.report(below, str(error))
    return amounts


def _selector(value: Any, place: FieldPlace) -> Document:
    fields = mapping(value, place, ("matchLabels", "matchExpressions"))
    try:
        if parse_selector(fields) == LabelSelector():
            place.report("", "must be a label selector that is not empty")
    except ValueError as error:
        place.report("", str(error))
    return fields


def _preferred(value: Any, place: FieldPlace) -> Document:
    term = mapping(value, place, ("weight", "preference"))
    weight = term.get("weight")
    if not isinstance(weight, int) or isinstance(weight, bool) or not 1 <= weight <= MOST_WEIGHT:
        place.report(".weight", f"must be a whole number from 1 to {MOST_WEIGHT}")
    return {"weight": weight, "preference": _selector(term.get("preference"), place.at(".preference"))}


def _affinity(value: Any, place: FieldPlace) -> Document:
    found = mapping(value, place, ("seedAffinity", *SHOOT_TERMS))
    affinity: Document = {}
    if "seedAffinity" in found and (seeds := _seed_affinity(found["seedAffinity"], place.at(".seedAffinity"))):
        affinity["seedAffinity"] = seeds
    for name in SHOOT_TERMS:
        if name in found and (terms := shoot_terms(found[name], place.at(f".{name}"))):
            affinity[name] = terms
    return affinity


def _seed_affinity(value: Any, place: FieldPlace) -> Document:
    seeds = mapping(value, place, ("required", "preferred"))
    affinity: Document = {}
    for name, read in (("required", _selector), ("preferred", _preferred)):
        if terms := [read(*entry) for entry in entries_of(seeds.get(name, []), place.at(f".{name}"), MOST_TERMS)]:
            affinity[name] = terms
    return affinity


def _priority(value: Any, place: FieldPlace) -> int:
    return whole_number_at(value, place, LEAST_PRIORITY, MOST_PRIORITY)


def _gates(value: Any, place: FieldPlace) -> list[Document]:
    names: set[str] = set()
    for entry, at in entries_of(value, place, MOST_GATES):
        name = mapping(entry, at, ("name",)).get("name")
        if isinstance(name, str) and RESOURCE.fullmatch(name):
            names.add(name)
        else:
            at.report(".name", "must be the name of a gate, as example.com/quota")
    return [{"name": name} for name in sorted(names)]


OF_A_SHOOT_ALONE = ("priority", "schedulingGates")

_FIELDS: Mapping[str, Callable[[Any, FieldPlace], Any]] = {
    "requests": _requests,
    "affinity": _affinity,
    "groups": group_names,
    "topologySpreadConstraints": spread_constraints,
    "priority": _priority,
    "schedulingGates": _gates,
}
"""Fields of the document, by the function that reads each into its resolved form."""
