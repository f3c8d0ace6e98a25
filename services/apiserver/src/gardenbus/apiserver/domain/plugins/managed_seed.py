"""ManagedSeed: a ManagedSeed agrees with its shoot, gets what it leaves out from it, and stays while it has shoots.

Facts: the shoot and its seed, a Gardenlet of the same name, another ManagedSeed of the shoot, the shoots on the seed.
Source: `plugin/pkg/managedseed/validator`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.defaults import with_defaults
from gardenbus.apiserver.domain.managed_seeds import (
    MANAGED_SEED_REJECTIONS,
    admit_managed_seed,
    admit_name,
    guards_of_managed_seed,
    managed_seed_queries,
    namesake,
    with_defaults_of_its_shoot,
)
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change, of_stored
from gardenbus.apiserver.domain.plugins.seed_validator import SCHEDULED, deletion_guards
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.use_as_seed import is_made_from_annotation
from gardenbus.common.api.document import Document


def _queries(managed_seed: Document, old: Document | None) -> Sequence[RelatedQuery]:
    return managed_seed_queries(with_defaults(managed_seed), old)


def _admit(managed_seed: Document, change: Change, related: RelatedObjects) -> None:
    is_domain_needed = not is_made_from_annotation(managed_seed)
    admit_managed_seed(managed_seed, change.old, related, is_domain_needed=is_domain_needed)


def _queries_of_gardenlet(gardenlet: Document, old: Document | None) -> Sequence[RelatedQuery]:
    return (ObjectQuery(namesake(gardenlet)),) if old is None else ()


PLUGIN = AdmissionPlugin(
    name="ManagedSeed",
    acts="completes a ManagedSeed from its shoot; rejects what contradicts it, and a Gardenlet of the same name",
    rejections=(*MANAGED_SEED_REJECTIONS, SCHEDULED),
    rules=(
        AdmissionRule(
            ("ManagedSeed",),
            queries=_queries,
            mutate=of_stored(with_defaults_of_its_shoot),
            admit=_admit,
            guards=of_stored(guards_of_managed_seed),
            deletion_guards=deletion_guards,
        ),
        AdmissionRule(("Gardenlet",), queries=_queries_of_gardenlet, admit=of_stored(admit_name)),
    ),
)
