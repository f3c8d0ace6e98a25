"""Rules for a shoot that names its seed: it is placed by this change, or was before."""

from collections.abc import Sequence

from gardenbus.apiserver.domain.bind_admission import (
    BIND_REJECTIONS,
    admit_binding,
    control_plane_problems,
    selector_problems,
)
from gardenbus.apiserver.domain.cloud_profiles import is_of_one_parent, profile_key
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ObjectQuery, ProjectQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import differ, namespace_of
from gardenbus.common.api.garden.profile_parts import profile_spec_of
from gardenbus.common.api.garden.seeds import Seed
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.validation.field_cursor import invalid
from gardenbus.common.errors import FieldProblem

_TAKEN_AWAY = RejectionMessage("it cannot be taken away once the shoot is placed")
_UNFIT = RejectionMessage("seed {seed}: {problem}")
_OTHER_PROFILE = RejectionMessage("a placed shoot keeps to {before} and what is derived of it, and {profile} is not")
PLACED_REJECTIONS = (*BIND_REJECTIONS, _TAKEN_AWAY, _UNFIT, _OTHER_PROFILE)


def seed_key(shoot: Document) -> ObjectKey | None:
    """The seed that a shoot names; None when it names none."""
    name: object = section(shoot, "spec").get("seedName")
    return ObjectKey("seed", "", name) if isinstance(name, str) and name else None


def placed_now_queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """Queries of the seed that this change places a shoot on, and of its Project."""
    key = seed_key(shoot)
    if key is None or section(old or {}, "spec").get("seedName"):
        return ()
    return (ProjectQuery(namespace_of(shoot)), ObjectQuery(key))


def placed_shoot_queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """Queries of the seed of a shoot, and of the profile that it keeps to there."""
    key = seed_key(shoot)
    if key is None:
        return ()
    spec, before = section(shoot, "spec"), section(old or {}, "spec")
    profile, profile_before = profile_key(shoot), profile_key(old or {})
    if not before.get("seedName"):
        return (*placed_now_queries(shoot, old), *((ObjectQuery(profile),) if profile else ()))
    queries = [ObjectQuery(key)] if differ(spec, before, "seedSelector", "controlPlane") else []
    if profile != profile_before:
        queries += [ObjectQuery(one) for one in (profile, profile_before) if one is not None]
    return queries


def admit_placed(shoot: Document, old: Document, related: RelatedObjects) -> None:
    """Check a valid shoot that names its seed; `old` is {} for a new one. Raises Forbidden or InvalidResource."""
    on = seed_key(shoot)
    if on is None:
        return
    seed = related.objects.get(on)
    spec, before = section(shoot, "spec"), section(old, "spec")
    key, key_before = profile_key(shoot), profile_key(old)
    if not before.get("seedName"):
        profile = related.objects.get(key) if key else None
        project = related.projects.get(namespace_of(shoot))
        admit_binding(shoot, seed, project=project, profile_spec=profile_spec_of(profile))
        return
    if seed is not None and differ(spec, before, "seedSelector"):
        _admit_selector(shoot, seed)
    if seed is not None and differ(spec, before, "controlPlane"):
        _admit_control_plane(shoot, seed)
    if key != key_before and not is_of_one_parent(key, key_before, related.objects):
        raise invalid([FieldProblem("spec.cloudProfile", _OTHER_PROFILE(before=key_before, profile=key))])


def _admit_selector(shoot: Document, seed: Document) -> None:
    """The selector of a placed shoot may change but must still match its seed."""
    view, on = Shoot.from_document(shoot), Seed.from_document(seed)
    field = "spec.seedSelector"
    if view.spec.seed_selector is None:
        raise invalid([FieldProblem(field, _TAKEN_AWAY())])
    if problems := list(selector_problems(view, on)):
        raise invalid([FieldProblem(field, _UNFIT(seed=on.name, problem=problem)) for problem in problems])


def _admit_control_plane(shoot: Document, seed: Document) -> None:
    """Once placed, a shoot's control plane may change as far as its seed can host it."""
    on = Seed.from_document(seed)
    if problems := list(control_plane_problems(Shoot.from_document(shoot), on)):
        raise invalid([FieldProblem("spec.controlPlane", _UNFIT(seed=on.name, problem="; ".join(problems)))])
