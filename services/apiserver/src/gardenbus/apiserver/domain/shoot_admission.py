"""Admission of Shoots: defaults from exposure class, project and seed, and rules for placed shoots."""

from collections.abc import Sequence
from datetime import datetime

from gardenbus.apiserver.domain.admission_defaults import with_exposure_class, with_tolerations
from gardenbus.apiserver.domain.bind_admission import (
    admit_binding,
    control_plane_problems,
    defaulted_on_bind,
    selector_problems,
)
from gardenbus.apiserver.domain.cloud_profiles import is_of_one_parent, profile_key, profile_spec_of
from gardenbus.apiserver.domain.document_parts import entries, is_deleted, is_deleting, name_of, namespace_of
from gardenbus.apiserver.domain.field_cursor import invalid
from gardenbus.apiserver.domain.migration import admit_change
from gardenbus.apiserver.domain.profile_admission import admit_profile, profile_guards, profile_queries
from gardenbus.apiserver.domain.related_objects import ObjectQuery, ProjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.shoot_managed_seed import (
    admit_shoot_of_managed_seed,
    guards_of_shoot_of_managed_seed,
    managed_seed_of_shoot_queries,
)
from gardenbus.apiserver.domain.tolerations import (
    admit_tolerations,
    needs_project,
    unchecked_warnings,
    with_unchecked_note,
)
from gardenbus.apiserver.domain.use_as_seed_admission import (
    admit_use_as_seed,
    use_as_seed_queries,
    use_as_seed_warnings,
)
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.seeds import Seed
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.index_keys import FINALIZER
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import FieldProblem, Forbidden, InvalidResource
from gardenbus.common.ports.store import WritePrecondition

LONGEST_NAMES = 21
"""Characters that project and shoot name should have together; Gardener allows no more."""


def shoot_queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """Objects that the admission of a shoot depends on."""
    spec, before = section(shoot, "spec"), section(old or {}, "spec")
    queries: list[RelatedQuery] = []
    if (spec.get("seedName") and not before.get("seedName")) or needs_project(shoot, old):
        queries.append(ProjectQuery(namespace_of(shoot)))
    if (key := _class_key(shoot)) and (old is None or _differ(spec, before, "seedSelector", "tolerations")):
        queries.append(ObjectQuery(key))
    if spec.get("seedName"):
        queries += _placed_shoot_queries(shoot, old)
    queries += profile_queries(shoot, old)
    queries += (*managed_seed_of_shoot_queries(shoot, old), *use_as_seed_queries(shoot, old))
    return list(dict.fromkeys(queries))


def _placed_shoot_queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """The seed of a shoot, and the profile that it keeps to there."""
    spec, before = section(shoot, "spec"), section(old or {}, "spec")
    is_placed_now = not before.get("seedName")
    queries: list[RelatedQuery] = []
    if (is_placed_now or _differ(spec, before, "seedSelector", "controlPlane")) and (seed := _seed_key(shoot)):
        queries.append(ObjectQuery(seed))
    key, key_before = profile_key(shoot), profile_key(old or {})
    if is_placed_now and key:
        queries.append(ObjectQuery(key))
    elif key != key_before:
        queries += [ObjectQuery(profile) for profile in (key, key_before) if profile is not None]
    return queries


def mutate_shoot(shoot: Document, old: Document | None, related: RelatedObjects) -> tuple[Document, Sequence[str]]:
    """The shoot with all that other objects give it, and warnings."""
    project = related.projects.get(namespace_of(shoot))
    shoot = _with_admission_defaults(shoot, old, project, related)
    shoot = with_unchecked_note(shoot, old, project, _exposure_class(shoot, related))
    seed_key = _seed_key(shoot)
    seed = related.objects.get(seed_key) if seed_key else None
    if seed is not None and not section(old or {}, "spec").get("seedName"):
        shoot = defaulted_on_bind(shoot, seed, project)
    return shoot, (*_warnings(shoot, old, project), *use_as_seed_warnings(shoot, old, related))


def _with_admission_defaults(
    shoot: Document, old: Document | None, project: Document | None, related: RelatedObjects
) -> Document:
    stated = spec = section(shoot, "spec")
    before = None if old is None else section(old, "spec")
    if not spec:
        return shoot
    if project is not None and (given := entries(section(project, "spec", "tolerations").get("defaults"))):
        spec = with_tolerations(spec, before, given)
    if key := _class_key(shoot):
        exposure_class = related.objects.get(key)
        if exposure_class is not None:
            spec = with_exposure_class(spec, before, exposure_class)
        elif old is None:
            raise invalid([FieldProblem("spec.exposureClassName", f"{key} is not there: apply it first")])
    return shoot if spec is stated else {**shoot, "spec": spec}


def _warnings(shoot: Document, old: Document | None, project: Document | None) -> Sequence[str]:
    if old is not None:
        return unchecked_warnings(shoot)
    if project is None:
        namespace = namespace_of(shoot)
        waits = f"metadata.namespace: {namespace} belongs to no Project: the shoot waits until one has it"
        return (waits, *unchecked_warnings(shoot))
    length = len(name_of(project)) + len(name_of(shoot))
    if length > LONGEST_NAMES:
        together = f"{length} characters together"
        return (f"metadata.name: project and shoot name have {together}, Gardener allows {LONGEST_NAMES}",)
    return ()


def admit_shoot(shoot: Document, old: Document | None, related: RelatedObjects, *, now: datetime) -> None:
    """Check a valid shoot against other objects. Raises Forbidden or InvalidResource."""
    project = related.projects.get(namespace_of(shoot))
    if old is None and project is not None and is_deleting(project):
        raise Forbidden(f"metadata.namespace: the project {name_of(project)} is being deleted")
    if old is not None:
        _keep_finalizer(shoot, old)
        admit_change(shoot, old)
    if project is not None:
        before = None if old is None else section(old, "spec")
        admit_tolerations(section(shoot, "spec"), before, project, _exposure_class(shoot, related))
    if seed_key := _seed_key(shoot):
        _admit_placed(shoot, old or {}, related, seed=related.objects.get(seed_key), project=project)
    admit_shoot_of_managed_seed(shoot, old, related)
    admit_use_as_seed(shoot, old, related)
    admit_profile(shoot, old, related, now=now)


def guards_of_shoot(shoot: Document, old: Document | None, related: RelatedObjects) -> Sequence[WritePrecondition]:
    """Conditions of the write of an admitted shoot."""
    return (*profile_guards(shoot, old, related), *guards_of_shoot_of_managed_seed(shoot, old, related))


def _admit_placed(
    shoot: Document, old: Document, related: RelatedObjects, *, seed: Document | None, project: Document | None
) -> None:
    spec, before = section(shoot, "spec"), section(old, "spec")
    key, key_before = profile_key(shoot), profile_key(old)
    if not before.get("seedName"):
        profile = related.objects.get(key) if key else None
        admit_binding(shoot, seed, project=project, profile_spec=profile_spec_of(profile))
        return
    if seed is not None and _differ(spec, before, "seedSelector"):
        _admit_selector(shoot, seed)
    if seed is not None and _differ(spec, before, "controlPlane"):
        _admit_control_plane(shoot, seed)
    if key != key_before and not is_of_one_parent(key, key_before, related.objects):
        message = f"a placed shoot keeps to {key_before} and what is derived of it, and {key} is not"
        raise invalid([FieldProblem("spec.cloudProfile", message)])


def _keep_finalizer(shoot: Document, old: Document) -> None:
    """The finalizer stays while there is a control plane. Source: Gardener's plugin FinalizerRemoval."""
    had, has = (FINALIZER in (section(one, "metadata").get("finalizers") or ()) for one in (old, shoot))
    status = section(old, "status")
    if had and not has and status.get("technicalID") and status.get("lastOperation") and not is_deleted(old):
        raise Forbidden(f"metadata.finalizers: {FINALIZER} is taken off by the gardenlet once the deletion is done")


def _admit_selector(shoot: Document, seed: Document) -> None:
    """The selector of a placed shoot may change but must still match its seed."""
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
        raise invalid([FieldProblem("spec.controlPlane", f"seed {on.name}: {'; '.join(problems)}")])


def _exposure_class(shoot: Document, related: RelatedObjects) -> Document | None:
    key = _class_key(shoot)
    return related.objects.get(key) if key else None


def _class_key(shoot: Document) -> ObjectKey | None:
    name: object = section(shoot, "spec").get("exposureClassName")
    return ObjectKey("exposureclass", "", name) if isinstance(name, str) and name else None


def _seed_key(shoot: Document) -> ObjectKey | None:
    name: object = section(shoot, "spec").get("seedName")
    return ObjectKey("seed", "", name) if isinstance(name, str) and name else None


def _differ(spec: Document, before: Document, *fields: str) -> bool:
    return any(spec.get(field) != before.get(field) for field in fields)
