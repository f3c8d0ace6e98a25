"""Admission of the annotation `shoot.gardener.cloud/use-as-seed`: the ManagedSeed that it requests must be valid.

The ManagedSeed is written right after its shoot; a problem of the ManagedSeed rejects the shoot.
"""

from collections.abc import Sequence

import msgspec

from gardenbus.apiserver.domain.defaults import with_defaults
from gardenbus.apiserver.domain.managed_seeds import admit_managed_seed, namesake, with_defaults_of_its_shoot
from gardenbus.apiserver.domain.rejection_messages import SAME_SEED, RejectionMessage
from gardenbus.apiserver.domain.related_objects import (
    ManagedSeedOfShootQuery,
    ObjectQuery,
    RelatedObjects,
    RelatedQuery,
    ShootsOnSeedQuery,
)
from gardenbus.apiserver.domain.seeds_in_use import MOVE
from gardenbus.apiserver.domain.use_as_seed import FIELD, annotation_of, follows_annotation, requested_seed
from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import is_deleting, key_of_document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import FieldProblem, Forbidden, InvalidResource

_SHOOTS_ON_SEED = RejectionMessage(
    f"{FIELD}: cannot be taken off while shoots are on the seed {{seed}} ({{shoots}}): {MOVE}"
)
_REJECTED = RejectionMessage(f"{FIELD}: this ManagedSeed would be rejected: {{problem}}")
_FIELD_REJECTED = RejectionMessage("{field}: {problem}")
USE_AS_SEED_REJECTIONS = (_SHOOTS_ON_SEED, _REJECTED, _FIELD_REJECTED, SAME_SEED)


def use_as_seed_queries(shoot: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """Queries of the ManagedSeed of the shoot, when its annotation requests one or does so no more."""
    if not _has_annotation(shoot, old):
        return ()
    key, wanted = key_of_document(shoot), _wanted(shoot)
    if wanted is None and not _is_removed(shoot, old):
        return ()
    if wanted is not None and not _is_decided_anew(shoot, old):
        return ()
    queries: list[RelatedQuery] = [ObjectQuery(managed_seed_key(key)), ManagedSeedOfShootQuery(key)]
    return [*queries, ShootsOnSeedQuery(key.name) if wanted is None else ObjectQuery(namesake(wanted))]


def use_as_seed_warnings(shoot: Document, old: Document | None, related: RelatedObjects) -> Sequence[str]:
    """Parts of the annotation that have no effect, reported when it is set."""
    if annotation_of(shoot) is None or (old is not None and annotation_of(old) == annotation_of(shoot)):
        return ()
    used = requested_seed(shoot)
    other = _other(shoot, related) if used.managed_seed is not None else ""
    return (*used.warnings, f"{FIELD} is ignored: {other}") if other else used.warnings


def admit_use_as_seed(shoot: Document, old: Document | None, related: RelatedObjects) -> None:
    """Check that the ManagedSeed can be created, or deleted. Raises InvalidResource or Forbidden."""
    if not _has_annotation(shoot, old):
        return
    wanted, key = _wanted(shoot), key_of_document(shoot)
    if wanted is not None:
        if _is_decided_anew(shoot, old) and not _other(shoot, related):
            _admit_wanted(wanted, shoot, related)
        return
    managed_seeds = related.objects.get(managed_seed_key(key))
    if not _is_removed(shoot, old) or managed_seeds is None or not follows_annotation(managed_seeds, shoot):
        return
    if shoots_on := related.shoots_on.get(key.name, ()):
        raise Forbidden(_SHOOTS_ON_SEED(seed=key.name, shoots=len(shoots_on)))


def managed_seed_key(shoot: ObjectKey) -> ObjectKey:
    """The key of the ManagedSeed of a shoot's annotation."""
    return ObjectKey("managedseed", shoot.namespace, shoot.name)


def _has_annotation(shoot: Document, old: Document | None) -> bool:
    """True when the shoot has the annotation, or had it."""
    return annotation_of(shoot) is not None or (old is not None and annotation_of(old) is not None)


def _wanted(shoot: Document) -> Document | None:
    if is_deleting(shoot):
        return None
    return requested_seed(shoot).managed_seed


def _is_removed(shoot: Document, old: Document | None) -> bool:
    return old is not None and _wanted(old) is not None and requested_seed(shoot).managed_seed is None


def _is_decided_anew(shoot: Document, old: Document | None) -> bool:
    if old is None or annotation_of(shoot) != annotation_of(old):
        return True
    return shoot.get("spec") != old.get("spec")


def _other(shoot: Document, related: RelatedObjects) -> str:
    """The reason why the annotation has no effect; "" when it has."""
    key = key_of_document(shoot)
    managed_seeds = related.managed_seeds.get(key)
    if managed_seeds is not None and not follows_annotation(managed_seeds, shoot):
        return f"the ManagedSeed {section(managed_seeds, 'metadata').get('name')} stands on this shoot already"
    namesake_of_shoot = related.objects.get(managed_seed_key(key))
    if namesake_of_shoot is not None and not follows_annotation(namesake_of_shoot, shoot):
        return f"the ManagedSeed {key.name} was not made from it"
    return ""


def _admit_wanted(wanted: Document, shoot: Document, related: RelatedObjects) -> None:
    key = key_of_document(shoot)
    with_shoot = msgspec.structs.replace(related, objects={**related.objects, key: shoot})
    managed_seed = with_defaults_of_its_shoot(with_defaults(wanted), None, with_shoot)
    try:
        validate(managed_seed, related.objects.get(managed_seed_key(key)))
        admit_managed_seed(managed_seed, None, with_shoot, is_domain_needed=False)
    except InvalidResource as error:
        problems = tuple(
            FieldProblem(FIELD, _FIELD_REJECTED(field=problem.field, problem=problem.message))
            for problem in error.problems
        )
        raise InvalidResource(_REJECTED(problem=error.message), problems) from error
