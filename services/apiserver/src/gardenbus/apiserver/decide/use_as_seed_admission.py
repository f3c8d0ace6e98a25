"""Admission of the annotation `shoot.gardener.cloud/use-as-seed`: what it asks for must be possible to be stored.

The ManagedSeed is written right after its shoot; whatever would refuse it refuses the shoot.
"""

from collections.abc import Sequence

import msgspec

from gardenbus.apiserver.decide.defaults import with_defaults
from gardenbus.apiserver.decide.facts import FactQuery, Facts, GuestsQuery, ObjectQuery, StandingQuery
from gardenbus.apiserver.decide.managed_seeds import admit_managed_seed, namesake, with_its_shoot
from gardenbus.apiserver.decide.shoots_behind_seeds import key_of_shoot
from gardenbus.apiserver.decide.use_as_seed import FIELD, annotation_of, follows_annotation, used_as_seed
from gardenbus.apiserver.decide.used_seeds import MOVE
from gardenbus.apiserver.decide.validation import validate
from gardenbus.common.errors import FieldProblem, Forbidden, InvalidResource
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey


def facts_of_use_as_seed(shoot: Document, old: Document | None) -> Sequence[FactQuery]:
    """What stands on the shoot, asked when its annotation asks for a ManagedSeed or does so no more."""
    if not _is_asked(shoot, old):
        return ()
    key, wanted = key_of_shoot(shoot), _wanted(shoot)
    if wanted is None and not _is_taken_off(shoot, old):
        return ()
    if wanted is not None and not _is_decided_anew(shoot, old):
        return ()
    queries: list[FactQuery] = [ObjectQuery(managed_seed_key(key)), StandingQuery(key)]
    return [*queries, GuestsQuery(key.name) if wanted is None else ObjectQuery(namesake(wanted))]


def use_as_seed_warnings(shoot: Document, old: Document | None, facts: Facts) -> Sequence[str]:
    """What of the annotation has no effect, said when it is set."""
    if annotation_of(shoot) is None or (old is not None and annotation_of(old) == annotation_of(shoot)):
        return ()
    used = used_as_seed(shoot)
    other = _other(shoot, facts) if used.managed_seed is not None else ""
    return (*used.warnings, f"{FIELD} is ignored: {other}") if other else used.warnings


def admit_use_as_seed(shoot: Document, old: Document | None, facts: Facts) -> None:
    """Check that the ManagedSeed can be made, or taken away. Raises InvalidResource or Forbidden."""
    if not _is_asked(shoot, old):
        return
    wanted, key = _wanted(shoot), key_of_shoot(shoot)
    if wanted is not None:
        if _is_decided_anew(shoot, old) and not _other(shoot, facts):
            _admit_wanted(wanted, shoot, facts)
        return
    standing = facts.objects.get(managed_seed_key(key))
    if not _is_taken_off(shoot, old) or standing is None or not follows_annotation(standing, shoot):
        return
    if guests := facts.guests.get(key.name, ()):
        raise Forbidden(f"{FIELD}: cannot be taken off while shoots are on the seed {key.name} ({len(guests)}): {MOVE}")


def managed_seed_key(shoot: ObjectKey) -> ObjectKey:
    """Where the ManagedSeed of a shoot's annotation stands."""
    return ObjectKey("managedseed", shoot.namespace, shoot.name)


def _is_asked(shoot: Document, old: Document | None) -> bool:
    """Whether the annotation stands, or stood: without it there is nothing to look at."""
    return annotation_of(shoot) is not None or (old is not None and annotation_of(old) is not None)


def _wanted(shoot: Document) -> Document | None:
    if section(shoot, "metadata").get("deletionTimestamp"):
        return None
    return used_as_seed(shoot).managed_seed


def _is_taken_off(shoot: Document, old: Document | None) -> bool:
    return old is not None and _wanted(old) is not None and used_as_seed(shoot).managed_seed is None


def _is_decided_anew(shoot: Document, old: Document | None) -> bool:
    if old is None or annotation_of(shoot) != annotation_of(old):
        return True
    return shoot.get("spec") != old.get("spec")


def _other(shoot: Document, facts: Facts) -> str:
    """What keeps the annotation from having an effect; "" when nothing does."""
    key = key_of_shoot(shoot)
    standing = facts.standing.get(key)
    if standing is not None and not follows_annotation(standing, shoot):
        return f"the ManagedSeed {section(standing, 'metadata').get('name')} stands on this shoot already"
    namesake_of_shoot = facts.objects.get(managed_seed_key(key))
    if namesake_of_shoot is not None and not follows_annotation(namesake_of_shoot, shoot):
        return f"the ManagedSeed {key.name} was not made from it"
    return ""


def _admit_wanted(wanted: Document, shoot: Document, facts: Facts) -> None:
    key = key_of_shoot(shoot)
    known = msgspec.structs.replace(facts, objects={**facts.objects, key: shoot})
    managed_seed = with_its_shoot(with_defaults(wanted), None, known)
    try:
        validate(managed_seed, facts.objects.get(managed_seed_key(key)))
        admit_managed_seed(managed_seed, None, known, is_domain_needed=False)
    except InvalidResource as error:
        problems = tuple(FieldProblem(FIELD, f"{problem.field}: {problem.message}") for problem in error.problems)
        raise InvalidResource(f"{FIELD}: this ManagedSeed would be refused: {error.message}", problems) from error
