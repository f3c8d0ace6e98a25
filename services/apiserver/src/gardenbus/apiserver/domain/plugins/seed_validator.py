"""SeedValidator: a seed keeps the zones and domains that its shoots use, and is not deleted while it has shoots.

Facts: the shoots on the seed, when something is taken away. Source: `plugin/pkg/seed/validator`.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.seeds_in_use import REMOVALS, removals_in_use, shoots_on_seed_queries
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import key_of_document, name_of
from gardenbus.common.api.validation.field_cursor import invalid
from gardenbus.common.ports.store import WritePrecondition

SCHEDULED = RejectionMessage(
    "{object}: shoots are scheduled on the seed: move them first, with gardenbus drain {seed}; adopt or forget those"
    " that are unknown"
)


def _queries(seed: Document, old: Document | None) -> Sequence[RelatedQuery]:
    if old is None:
        return ()
    return shoots_on_seed_queries(name_of(seed), section(seed, "spec"), section(old, "spec"))


def _admit(seed: Document, change: Change, related: RelatedObjects) -> None:
    if change.old is None:
        return
    shoots_on = related.shoots_on.get(name_of(seed), ())
    if problems := removals_in_use("spec", section(seed, "spec"), section(change.old, "spec"), shoots_on):
        raise invalid(problems)


def deletion_guards(stored: Document) -> Sequence[WritePrecondition]:
    """No shoots on the seed of a Seed or a ManagedSeed."""
    key, name = key_of_document(stored), name_of(stored)
    return (WritePrecondition("usage", name, SCHEDULED(object=key, seed=name)),)


PLUGIN = AdmissionPlugin(
    name="SeedValidator",
    acts="keeps zones and domains that shoots on a seed use, and a seed with shoots",
    rejections=(*REMOVALS, SCHEDULED),
    rules=(AdmissionRule(("Seed",), queries=_queries, admit=_admit, deletion_guards=deletion_guards),),
)
