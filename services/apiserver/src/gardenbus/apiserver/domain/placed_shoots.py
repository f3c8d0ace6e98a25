"""Rules for a shoot that names its seed: it is placed by this change, or was before."""

from collections.abc import Iterable, Sequence

from gardenbus.apiserver.domain.bind_admission import (
    BIND_REJECTIONS,
    admit_binding,
    control_plane_problems,
    domain_problems,
    network_problems_on,
    selector_problems,
)
from gardenbus.apiserver.domain.cloud_profiles import is_of_one_parent, profile_key
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ObjectQuery, ProjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import differ, namespace_of
from gardenbus.common.api.garden.profile_parts import profile_spec_of
from gardenbus.common.api.garden.seeds import Seed
from gardenbus.common.api.garden.shoots import Shoot
from gardenbus.common.api.keys import ObjectKey
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
    queries: list[RelatedQuery] = []
    if differ(spec, before, "seedSelector", "controlPlane", "networking") or _states_domain(spec, before):
        queries = [ObjectQuery(key), *((ProjectQuery(namespace_of(shoot)),) if _states_domain(spec, before) else ())]
    if profile != profile_before:
        queries += [ObjectQuery(one) for one in (profile, profile_before) if one is not None]
    return queries


def admit_placed(shoot: Document, old: Document, related: RelatedObjects) -> None:
    """Check a valid shoot that names its seed; `old` is {} for a new one. Raises Forbidden or InvalidResource."""
    on = seed_key(shoot)
    if on is None:
        return
    seed = related.objects.get(on)
    before = section(old, "spec")
    key, key_before = profile_key(shoot), profile_key(old)
    if not before.get("seedName"):
        profile = related.objects.get(key) if key else None
        project = related.projects.get(namespace_of(shoot))
        admit_binding(shoot, seed, project=project, profile_spec=profile_spec_of(profile))
        return
    if seed is not None:
        _admit_changes(shoot, Seed.from_document(seed), before, related.projects.get(namespace_of(shoot)))
    if key != key_before and not is_of_one_parent(key, key_before, related.objects):
        raise invalid([FieldProblem("spec.cloudProfile", _OTHER_PROFILE(before=key_before, profile=key))])


def _states_domain(spec: Document, before: Document) -> bool:
    """True where a placed shoot without a domain may get one."""
    return spec.get("dns") != before.get("dns") and not section(before, "dns").get("domain")


def _admit_changes(shoot: Document, on: Seed, before: Document, project: Document | None) -> None:
    """Check that selector, control plane, ranges and first domain of a placed shoot fit its seed where they change."""
    view, spec = Shoot.from_document(shoot), section(shoot, "spec")
    if differ(spec, before, "seedSelector"):
        if view.spec.seed_selector is None:
            raise invalid([FieldProblem("spec.seedSelector", _TAKEN_AWAY())])
        _admit_fit("spec.seedSelector", on, selector_problems(view, on))
    if differ(spec, before, "controlPlane"):
        _admit_fit("spec.controlPlane", on, control_plane_problems(view, on))
    if differ(spec, before, "networking"):
        stood = network_problems_on(Shoot.from_document({**shoot, "spec": before}), on)
        _admit_fit("spec.networking", on, [one for one in network_problems_on(view, on) if one not in stood])
    if _states_domain(spec, before):
        _admit_fit("spec.dns.domain", on, domain_problems(view, on, project))


def _admit_fit(field: str, on: Seed, problems: Iterable[str]) -> None:
    if found := [FieldProblem(field, _UNFIT(seed=on.name, problem=one)) for one in problems]:
        raise invalid(found)
