"""Admission: defaults, rules that involve other objects, and guards of deletions.

The caller fetches what `related_queries` lists, and passes it to `mutate` (before validation) and `admit` (after it).
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from gardenbus.apiserver.domain.annotations import CONFIRMATION, is_confirmed, with_confirmer, with_creator
from gardenbus.apiserver.domain.cloud_profiles import parent_key, with_parent
from gardenbus.apiserver.domain.defaults import with_creation_defaults, with_defaults
from gardenbus.apiserver.domain.document_parts import name_of
from gardenbus.apiserver.domain.field_cursor import invalid
from gardenbus.apiserver.domain.managed_seeds import (
    admit_gardenlet,
    admit_managed_seed,
    guards_of_managed_seed,
    managed_seed_queries,
    namesake,
    with_defaults_of_its_shoot,
)
from gardenbus.apiserver.domain.profile_removals import removal_guards, removal_queries
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.seeds_in_use import removals_in_use, shoots_on_seed_queries
from gardenbus.apiserver.domain.shoot_admission import admit_shoot, guards_of_shoot, mutate_shoot, shoot_queries
from gardenbus.apiserver.domain.use_as_seed import FIELD as USE_AS_SEED_FIELD
from gardenbus.apiserver.domain.use_as_seed import annotation_of, is_made_from_annotation
from gardenbus.apiserver.domain.validators.placement_parts import admit_disruption_budget
from gardenbus.apiserver.domain.validators.placement_policy import policy_warnings
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.placements import CLUSTER_KIND
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import FieldProblem, Forbidden
from gardenbus.common.ports.store import WritePrecondition

CONFIRMED_KINDS = frozenset({"Shoot", "Project", "ShootState"})


NOTHING_EXPIRED = datetime.min.replace(tzinfo=UTC)
"""An instant before every expiration."""


class Mutated(msgspec.Struct, frozen=True):
    """The manifest to be stored, and warnings for its sender."""

    document: Document
    warnings: tuple[str, ...] = ()


def related_queries(document: Document, old: Document | None) -> Sequence[RelatedQuery]:
    """Queries of the objects that `mutate` and `admit` need; none for a change that touches no rule of theirs."""
    match document.get("kind"):
        case "Shoot":
            return shoot_queries(document, old)
        case "ManagedSeed":
            return managed_seed_queries(with_defaults(document), old)
        case "Gardenlet":
            return (ObjectQuery(namesake(document)),) if old is None else ()
        case "Seed" if old is not None:
            return shoots_on_seed_queries(name_of(document), section(document, "spec"), section(old, "spec"))
        case "CloudProfile":
            return removal_queries(document, old)
        case "NamespacedCloudProfile":
            parent = parent_key(document)
            return (ObjectQuery(parent),) if parent else ()
        case "ClusterResourcePlacementDisruptionBudget":
            return (ObjectQuery(_placement_of_budget(document)),)
        case _:
            return ()


def mutate(document: Document, old: Document | None, related: RelatedObjects, *, user: str) -> Mutated:
    """Fill in defaults, also those that come from other objects, and record the creator.

    Accepts any manifest whose metadata is valid, also one that validation will reject. A Shoot that is bound by this
    change gets the defaults of its seed (domain, ranges). Raises Forbidden where defaults contradict the manifest, and
    InvalidResource where the object that they come from is missing.
    """
    warnings: list[str] = []
    document = with_defaults(document)
    if old is None:
        document = with_creation_defaults(document)
    document = with_creator(document, old, user, warnings)
    match document.get("kind"):
        case "Shoot":
            document, shoot_warnings = mutate_shoot(with_confirmer(document, old, user), old, related)
            warnings += shoot_warnings
        case "ManagedSeed":
            document = with_defaults_of_its_shoot(document, old, related)
        case "NamespacedCloudProfile":
            document = _with_parent(document, related)
        case "ClusterResourcePlacement" | "ResourcePlacement":
            warnings += policy_warnings(document)
        case _:
            pass
    return Mutated(document, tuple(warnings))


def admit(
    document: Document, old: Document | None, related: RelatedObjects, *, now: datetime = NOTHING_EXPIRED
) -> None:
    """Check a valid manifest against other objects, at an instant. Raises Forbidden or InvalidResource."""
    match document["kind"]:
        case "Shoot":
            admit_shoot(document, old, related, now=now)
        case "ManagedSeed":
            admit_managed_seed(document, old, related, is_domain_needed=not is_made_from_annotation(document))
        case "Gardenlet":
            admit_gardenlet(document, old, related)
        case "Seed" if old is not None:
            _admit_seed(document, old, related)
        case "NamespacedCloudProfile":
            parent = parent_key(document)
            if parent is not None and parent not in related.objects:
                raise invalid([FieldProblem("spec.parent.name", f"{parent} is not there: apply it first")])
        case "ClusterResourcePlacementDisruptionBudget":
            admit_disruption_budget(document, related.objects.get(_placement_of_budget(document)))
        case _:
            pass


def write_guards(document: Document, old: Document | None, related: RelatedObjects) -> Sequence[WritePrecondition]:
    """Conditions on other objects under which an admitted manifest may be written."""
    match document["kind"]:
        case "ManagedSeed":
            return guards_of_managed_seed(document, old, related)
        case "Shoot":
            return guards_of_shoot(document, old, related)
        case "CloudProfile" | "NamespacedCloudProfile":
            return removal_guards(document, old, related)
        case _:
            return ()


def delete_guards(stored: Document) -> Sequence[WritePrecondition]:
    """The sets that must be empty for this object to be deleted."""
    kind, metadata = str(stored["kind"]), section(stored, "metadata")
    name, namespace = str(metadata.get("name")), str(metadata.get("namespace") or "")
    key = ObjectKey(kind.lower(), namespace, name)
    match kind:
        case "Seed" | "ManagedSeed":
            message = f"{key}: shoots are scheduled on the seed: move them first, with gardenbus drain {name}"
            return (WritePrecondition("usage", name, message),)
        case "Project":
            owned = ObjectKey("namespace", "", Project.from_document(stored).namespace)
            return (
                WritePrecondition("references", owned.stored, f"{key}: there are shoots in its namespace {owned.name}"),
            )
        case "Namespace":
            return (
                WritePrecondition("references", key.stored, f"{key}: there are shoots in it"),
                WritePrecondition("claim", f"namespace/{name}", f"{key}: it is a project's, and goes after it"),
            )
        case "Shoot":
            return (
                WritePrecondition("references", key.stored, f"{key}: a ManagedSeed stands on it: {_way_out(stored)}"),
            )
        case "CloudProfile" | "NamespacedCloudProfile" | "ExposureClass" | "SecretBinding" | "CredentialsBinding":
            return (WritePrecondition("references", key.stored, f"{key}: it is in use"),)
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
    return ObjectKey(CLUSTER_KIND, "", name_of(budget))


def _way_out(shoot: Document) -> str:
    if annotation_of(shoot) is None:
        return "delete that first, and wait until it is gone"
    return f"take off {USE_AS_SEED_FIELD} first, which deletes that too, and wait until it is gone"


def _with_parent(profile: Document, related: RelatedObjects) -> Document:
    """Merge a NamespacedCloudProfile with its parent, in its status, where schedulers read it."""
    parent = parent_key(profile)
    above = related.objects.get(parent) if parent else None
    return profile if above is None else with_parent(profile, above)


def _admit_seed(seed: Document, old: Document, related: RelatedObjects) -> None:
    """Keep what shoots on the seed use. Source: Gardener's plugin SeedValidator."""
    shoots_on = related.shoots_on.get(name_of(seed), ())
    if problems := removals_in_use("spec", section(seed, "spec"), section(old, "spec"), shoots_on):
        raise invalid(problems)
