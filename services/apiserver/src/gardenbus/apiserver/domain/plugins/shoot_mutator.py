"""ShootMutator: a shoot that names its seed gets domain and ranges from the defaults of the seed.

Facts: the seed that the change places the shoot on, and its Project. Source: `plugin/pkg/shoot/mutator` and
`plugin/pkg/shoot/dns`. A shoot that a scheduler places gets the same with the bind.
"""

from gardenbus.apiserver.domain.bind_admission import defaulted_on_bind
from gardenbus.apiserver.domain.document_parts import namespace_of
from gardenbus.apiserver.domain.placed_shoots import placed_now_queries, seed_key
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.common.api.document import Document, section


def _mutate(shoot: Document, change: Change, related: RelatedObjects) -> Document:
    key = seed_key(shoot)
    if key is None or section(change.old or {}, "spec").get("seedName"):
        return shoot
    seed = related.objects.get(key)
    return shoot if seed is None else defaulted_on_bind(shoot, seed, related.projects.get(namespace_of(shoot)))


PLUGIN = AdmissionPlugin(
    name="ShootMutator",
    acts="gives a shoot that names its seed the domain and the ranges that the seed has as defaults",
    rules=(AdmissionRule(("Shoot",), queries=placed_now_queries, mutate=_mutate),),
)
