"""PlacementValidator: what a placement's policy and budget say makes sense together.

Facts: the placement of a budget, which has its name. Source: KubeFleet's webhooks for placements and budgets.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.document_parts import name_of
from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placements import CLUSTER_KIND
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.validation.placement_parts import admit_disruption_budget
from gardenbus.common.api.validation.placement_policy import policy_warnings


def _warn(placement: Document, _change: Change, _related: RelatedObjects) -> Sequence[str]:
    return policy_warnings(placement)


def _queries(budget: Document, _old: Document | None) -> Sequence[RelatedQuery]:
    return (ObjectQuery(_placement_of(budget)),)


def _admit(budget: Document, _change: Change, related: RelatedObjects) -> None:
    admit_disruption_budget(budget, related.objects.get(_placement_of(budget)))


def _placement_of(budget: Document) -> ObjectKey:
    return ObjectKey(CLUSTER_KIND, "", name_of(budget))


PLUGIN = AdmissionPlugin(
    name="PlacementValidator",
    acts="warns of parts of a placement's policy without effect; rejects a budget that does not fit its placement",
    rules=(
        AdmissionRule(("ClusterResourcePlacement", "ResourcePlacement"), warn=_warn),
        AdmissionRule(("ClusterResourcePlacementDisruptionBudget",), queries=_queries, admit=_admit),
    ),
)
