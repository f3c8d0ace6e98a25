"""Admission: what is filled into a manifest, what other objects forbid, and what guards a deletion.

The caller asks `facts_needed`, fetches, and hands the facts to `mutate` (before validation) and `admit` (after it).
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from gardenbus.apiserver.decide.annotations import CONFIRMATION, is_confirmed, with_confirmer, with_creator
from gardenbus.apiserver.decide.binding import (
    admit_binding,
    control_plane_problems,
    selector_problems,
    settled_with_seed,
)
from gardenbus.apiserver.decide.defaults import with_creation_defaults, with_defaults
from gardenbus.apiserver.decide.facts import FactQuery, Facts, ObjectQuery, ProjectQuery
from gardenbus.apiserver.decide.managed_seeds import (
    admit_gardenlet,
    admit_managed_seed,
    facts_of_managed_seed,
    guards_of_managed_seed,
    namesake,
    with_its_shoot,
)
from gardenbus.apiserver.decide.migration import admit_change
from gardenbus.apiserver.decide.prescriptions import (
    entries,
    with_exposure_class,
    with_tolerations,
)
from gardenbus.apiserver.decide.profiles import is_of_one_parent, parent_key, profile_key, profile_spec_of, with_parent
from gardenbus.apiserver.decide.shoots_behind_seeds import admit_for_seed, guards_for_seed, standing_needed
from gardenbus.apiserver.decide.tolerating import (
    admit_tolerations,
    asks_project,
    unchecked_warnings,
    with_unchecked_note,
)
from gardenbus.apiserver.decide.use_as_seed import FIELD as USE_AS_SEED_FIELD
from gardenbus.apiserver.decide.use_as_seed import annotation_of, is_made_from_annotation
from gardenbus.apiserver.decide.use_as_seed_admission import (
    admit_use_as_seed,
    facts_of_use_as_seed,
    use_as_seed_warnings,
)
from gardenbus.apiserver.decide.used_seeds import guests_needed, losses_of_guests
from gardenbus.apiserver.decide.validators.placement_parts import admit_disruption_budget
from gardenbus.apiserver.decide.validators.placement_policy import policy_warnings
from gardenbus.common.errors import FieldProblem, Forbidden, InvalidResource
from gardenbus.common.ports.store import Guard
from gardenbus.common.resources.derived import FINALIZER
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.common.resources.placements import CLUSTER_KIND
from gardenbus.common.resources.projects import Project
from gardenbus.common.resources.seeds import Seed
from gardenbus.common.resources.shoots import Shoot

CONFIRMED_KINDS = frozenset({"Shoot", "Project", "ShootState"})
LONGEST_NAMES = 21
"""Characters that project and shoot name should have together; Gardener allows no more."""


class Mutated(msgspec.Struct, frozen=True):
    """The manifest as it shall be stored, and what its sender should know."""

    document: Document
    warnings: tuple[str, ...] = ()


def facts_needed(document: Document, old: Document | None) -> Sequence[FactQuery]:
    """What `mutate` and `admit` must know about other objects; nothing for a change that touches no rule of theirs."""
    match document.get("kind"):
        case "Shoot":
            behind = (*standing_needed(document, old), *facts_of_use_as_seed(document, old))
            return [*_facts_of_shoot(document, old), *behind]
        case "ManagedSeed":
            return facts_of_managed_seed(with_defaults(document), old)
        case "Gardenlet":
            return (ObjectQuery(namesake(document)),) if old is None else ()
        case "Seed" if old is not None:
            name = str(section(document, "metadata").get("name"))
            return guests_needed(name, section(document, "spec"), section(old, "spec"))
        case "NamespacedCloudProfile":
            parent = parent_key(document)
            return (ObjectQuery(parent),) if parent else ()
        case "ClusterResourcePlacementDisruptionBudget":
            return (ObjectQuery(_placement_of_budget(document)),)
        case _:
            return ()


def mutate(document: Document, old: Document | None, facts: Facts, *, user: str) -> Mutated:
    """Fill in defaults and what other objects prescribe, and record who made it.

    Takes any manifest whose metadata is right, also one that validation will refuse. A Shoot that gets its seed now is
    settled with it (domain, ranges). Raises Forbidden where what is prescribed contradicts the manifest, and
    InvalidResource where an object that prescribes is not there.
    """
    warnings: list[str] = []
    document = with_defaults(document)
    if old is None:
        document = with_creation_defaults(document)
    document = with_creator(document, old, user, warnings)
    match document.get("kind"):
        case "Shoot":
            document = with_confirmer(document, old, user)
            document = _with_prescriptions(document, old, facts)
            namespace = str(section(document, "metadata").get("namespace"))
            document = with_unchecked_note(
                document, old, facts.projects.get(namespace), _exposure_class(document, facts)
            )
            document = _with_seed(document, old, facts)
            warnings += _shoot_warnings(document, old, facts)
            warnings += use_as_seed_warnings(document, old, facts)
        case "ManagedSeed":
            document = with_its_shoot(document, old, facts)
        case "NamespacedCloudProfile":
            document = _with_parent(document, facts)
        case "ClusterResourcePlacement" | "ResourcePlacement":
            warnings += policy_warnings(document)
        case _:
            pass
    return Mutated(document, tuple(warnings))


def admit(document: Document, old: Document | None, facts: Facts) -> None:
    """Check a valid manifest against other objects. Raises Forbidden or InvalidResource."""
    match document["kind"]:
        case "Shoot":
            _admit_shoot(document, old, facts)
            admit_for_seed(document, old, facts)
            admit_use_as_seed(document, old, facts)
        case "ManagedSeed":
            admit_managed_seed(document, old, facts, is_domain_needed=not is_made_from_annotation(document))
        case "Gardenlet":
            admit_gardenlet(document, old, facts)
        case "Seed" if old is not None:
            _admit_seed(document, old, facts)
        case "NamespacedCloudProfile":
            parent = parent_key(document)
            if parent is not None and parent not in facts.objects:
                _refuse_reference("spec.parent.name", parent)
        case "ClusterResourcePlacementDisruptionBudget":
            admit_disruption_budget(document, facts.objects.get(_placement_of_budget(document)))
        case _:
            pass


def write_guards(document: Document, old: Document | None, facts: Facts) -> Sequence[Guard]:
    """What must still hold of other objects when an admitted manifest is written."""
    match document["kind"]:
        case "ManagedSeed":
            return guards_of_managed_seed(document, old, facts)
        case "Shoot":
            return guards_for_seed(document, old, facts)
        case _:
            return ()


def delete_guards(stored: Document) -> Sequence[Guard]:
    """The sets that must be empty for this object to be deleted."""
    kind, metadata = str(stored["kind"]), section(stored, "metadata")
    name, namespace = str(metadata.get("name")), str(metadata.get("namespace") or "")
    key = ObjectKey(kind.lower(), namespace, name)
    match kind:
        case "Seed" | "ManagedSeed":
            message = f"{key}: shoots are scheduled on the seed: move them first, with gardenbus drain {name}"
            return (Guard("usage", name, message),)
        case "Project":
            owned = ObjectKey("namespace", "", Project.from_document(stored).namespace)
            return (Guard("references", owned.stored, f"{key}: there are shoots in its namespace {owned.name}"),)
        case "Namespace":
            return (Guard("references", key.stored, f"{key}: there are shoots in it"),)
        case "Shoot":
            return (Guard("references", key.stored, f"{key}: a ManagedSeed stands on it: {_way_out(stored)}"),)
        case "CloudProfile" | "NamespacedCloudProfile" | "ExposureClass":
            return (Guard("references", key.stored, f"{key}: it is in use"),)
        case _:
            return ()


def confirm_deletion(document: Document) -> None:
    """Raise Forbidden unless a Shoot, Project or ShootState carries its confirmation."""
    if document["kind"] not in CONFIRMED_KINDS or is_confirmed(document):
        return
    raise Forbidden(
        f"metadata.annotations[{CONFIRMATION}]: a {document['kind']} is deleted only after this annotation was set to "
        '"true"'
    )


def _placement_of_budget(budget: Document) -> ObjectKey:
    """The placement that a budget is for: the one of its name."""
    return ObjectKey(CLUSTER_KIND, "", str(section(budget, "metadata").get("name")))


def _way_out(shoot: Document) -> str:
    if annotation_of(shoot) is None:
        return "delete that first, and wait until it is gone"
    return f"take off {USE_AS_SEED_FIELD} first, which deletes that too, and wait until it is gone"


def _facts_of_shoot(shoot: Document, old: Document | None) -> Sequence[FactQuery]:
    spec, before = section(shoot, "spec"), section(old or {}, "spec")
    queries: list[FactQuery] = []
    if (spec.get("seedName") and not before.get("seedName")) or asks_project(shoot, old):
        queries.append(ProjectQuery(str(section(shoot, "metadata").get("namespace") or "")))
    if (name := _text(spec.get("exposureClassName"))) and (old is None or _selects_anew(spec, before)):
        queries.append(ObjectQuery(ObjectKey("exposureclass", "", name)))
    return [*queries, *_facts_of_placed(shoot, old)] if spec.get("seedName") else queries


def _selects_anew(spec: Document, before: Document) -> bool:
    return any(spec.get(field) != before.get(field) for field in ("seedSelector", "tolerations"))


def _facts_of_placed(shoot: Document, old: Document | None) -> Sequence[FactQuery]:
    """What is asked about the seed of a shoot, and about the profile that it keeps to there."""
    spec, before = section(shoot, "spec"), section(old or {}, "spec")
    places = not before.get("seedName")
    queries: list[FactQuery] = []
    changes = any(spec.get(field) != before.get(field) for field in ("seedSelector", "controlPlane"))
    if (places or changes) and (name := _text(spec.get("seedName"))):
        queries.append(ObjectQuery(ObjectKey("seed", "", name)))
    key, key_before = profile_key(shoot), profile_key(old or {})
    if places and key:
        queries.append(ObjectQuery(key))
    elif key != key_before:
        queries += [ObjectQuery(profile) for profile in (key, key_before) if profile is not None]
    return queries


def _with_prescriptions(shoot: Document, old: Document | None, facts: Facts) -> Document:
    spec = section(shoot, "spec")
    before = None if old is None else section(old, "spec")
    if not spec:
        return shoot
    stated = spec
    namespace = str(section(shoot, "metadata").get("namespace") or "")
    project = facts.projects.get(namespace)
    if project is not None and (given := entries(section(project, "spec", "tolerations").get("defaults"))):
        spec = with_tolerations(spec, before, given)
    if name := _text(spec.get("exposureClassName")):
        key = ObjectKey("exposureclass", "", name)
        exposure_class = facts.objects.get(key)
        if exposure_class is not None:
            spec = with_exposure_class(spec, before, exposure_class)
        elif old is None:
            _refuse_reference("spec.exposureClassName", key)
    return shoot if spec is stated else {**shoot, "spec": spec}


def _with_seed(shoot: Document, old: Document | None, facts: Facts) -> Document:
    """Settle what comes with the seed, when the shoot gets one now."""
    name = _text(section(shoot, "spec").get("seedName"))
    if not name or section(old or {}, "spec").get("seedName"):
        return shoot
    seed = facts.objects.get(ObjectKey("seed", "", name))
    if seed is None:
        return shoot
    return settled_with_seed(shoot, seed, facts.projects.get(str(section(shoot, "metadata").get("namespace"))))


def _with_parent(profile: Document, facts: Facts) -> Document:
    """Merge a NamespacedCloudProfile with its parent, in its status, where schedulers read it."""
    parent = parent_key(profile)
    above = facts.objects.get(parent) if parent else None
    return profile if above is None else with_parent(profile, above)


def _exposure_class(shoot: Document, facts: Facts) -> Document | None:
    name = _text(section(shoot, "spec").get("exposureClassName"))
    return facts.objects.get(ObjectKey("exposureclass", "", name)) if name else None


def _shoot_warnings(shoot: Document, old: Document | None, facts: Facts) -> Sequence[str]:
    if old is not None:
        return unchecked_warnings(shoot)
    metadata = section(shoot, "metadata")
    name, namespace = str(metadata.get("name")), str(metadata.get("namespace"))
    project = facts.projects.get(namespace)
    if project is None:
        waits = f"metadata.namespace: {namespace} belongs to no Project: the shoot waits until one has it"
        return (waits, *unchecked_warnings(shoot))
    owner = str(section(project, "metadata").get("name"))
    if len(owner) + len(name) > LONGEST_NAMES:
        together = f"{len(owner) + len(name)} characters together"
        return (f"metadata.name: project and shoot name have {together}, Gardener allows {LONGEST_NAMES}",)
    return ()


def _admit_shoot(shoot: Document, old: Document | None, facts: Facts) -> None:
    spec, before = section(shoot, "spec"), None if old is None else section(old, "spec")
    project = facts.projects.get(str(section(shoot, "metadata").get("namespace")))
    if old is None and project is not None and section(project, "metadata").get("deletionTimestamp"):
        raise Forbidden(f"metadata.namespace: the project {section(project, 'metadata')['name']} is being deleted")
    if old is not None:
        _keep_finalizer(shoot, old)
        admit_change(shoot, old)
    if project is not None:
        admit_tolerations(spec, before, project, _exposure_class(shoot, facts))
    name = _text(spec.get("seedName"))
    if not name:
        return
    seed = facts.objects.get(ObjectKey("seed", "", name))
    if before is None or not before.get("seedName"):
        key = profile_key(shoot)
        profile = facts.objects.get(key) if key else None
        admit_binding(shoot, seed, project=project, profile_spec=profile_spec_of(profile))
        return
    if seed is not None and spec.get("seedSelector") != before.get("seedSelector"):
        _admit_selector(shoot, seed)
    if seed is not None and spec.get("controlPlane") != before.get("controlPlane"):
        _admit_control_plane(shoot, seed)
    key, key_before = profile_key(shoot), profile_key(old or {})
    if key != key_before and not is_of_one_parent(key, key_before, facts.objects):
        message = f"a placed shoot keeps to {key_before} and what is derived of it, and {key} is not"
        raise InvalidResource(f"spec.cloudProfile: {message}", (FieldProblem("spec.cloudProfile", message),))


def _admit_seed(seed: Document, old: Document, facts: Facts) -> None:
    """What shoots on the seed need stays. Source: Gardener's plugin SeedValidator."""
    guests = facts.guests.get(str(section(seed, "metadata").get("name")), ())
    if problems := losses_of_guests("spec", section(seed, "spec"), section(old, "spec"), guests):
        listed = "; ".join(f"{problem.field}: {problem.message}" for problem in problems)
        raise InvalidResource(listed, tuple(problems))


def _keep_finalizer(shoot: Document, old: Document) -> None:
    """The finalizer goes when the control plane is gone, or never was. Source: Gardener's plugin FinalizerRemoval."""
    had = FINALIZER in (section(old, "metadata").get("finalizers") or ())
    if not had or FINALIZER in (section(shoot, "metadata").get("finalizers") or ()):
        return
    status = section(old, "status")
    operation = section(status, "lastOperation")
    done = (operation.get("type"), operation.get("state"), operation.get("progress")) == ("Delete", "Succeeded", 100)
    if status.get("technicalID") and operation and not done:
        raise Forbidden(f"metadata.finalizers: {FINALIZER} is taken off by the gardenlet once the deletion is done")


def _admit_selector(shoot: Document, seed: Document) -> None:
    """Once placed, a shoot's selector may change but must still take its seed."""
    view, on = Shoot.from_document(shoot), Seed.from_document(seed)
    problems = ["it cannot be taken away once the shoot is placed"] if view.spec.seed_selector is None else []
    problems += [f"seed {on.name}: {problem}" for problem in selector_problems(view, on)]
    if problems:
        field_problems = tuple(FieldProblem("spec.seedSelector", problem) for problem in problems)
        raise InvalidResource(f"spec.seedSelector: {'; '.join(problems)}", field_problems)


def _admit_control_plane(shoot: Document, seed: Document) -> None:
    """Once placed, a shoot's control plane may change as far as its seed can host it."""
    on = Seed.from_document(seed)
    if problems := list(control_plane_problems(Shoot.from_document(shoot), on)):
        message = f"seed {on.name}: {'; '.join(problems)}"
        raise InvalidResource(f"spec.controlPlane: {message}", (FieldProblem("spec.controlPlane", message),))


def _refuse_reference(field: str, key: ObjectKey) -> None:
    message = f"{key} is not there: apply it first"
    raise InvalidResource(f"{field}: {message}", (FieldProblem(field, message),))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


__all__ = [
    "FactQuery",
    "Facts",
    "Mutated",
    "ObjectQuery",
    "ProjectQuery",
    "admit",
    "admit_binding",
    "confirm_deletion",
    "delete_guards",
    "facts_needed",
    "mutate",
    "write_guards",
]
