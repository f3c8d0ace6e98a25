"""PlacementValidator: what a placement's policy and budget say makes sense together.

Facts: the placement of a budget, which has its name. Source: KubeFleet's webhooks for placements and budgets.
"""

from collections.abc import Sequence

from gardenbus.apiserver.domain.plugins.plugin import AdmissionPlugin, AdmissionRule, Change
from gardenbus.apiserver.domain.rejection_messages import RejectionMessage
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects, RelatedQuery
from gardenbus.apiserver.domain.validation.field_cursor import invalid
from gardenbus.apiserver.domain.validation.placement_policy import policy_warnings
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.api.fleet.placements import CLUSTER_KIND, PICK_ALL
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import FieldProblem

_OF_PICK_ALL = RejectionMessage(
    "the placement is PickAll, which has no desired number of clusters: write minAvailable as a number"
)


def _warn(placement: Document, _change: Change, _related: RelatedObjects) -> Sequence[str]:
    return policy_warnings(placement)


def _queries(budget: Document, _old: Document | None) -> Sequence[RelatedQuery]:
    return (ObjectQuery(_placement_of(budget)),)


def _admit(budget: Document, _change: Change, related: RelatedObjects) -> None:
    """Raise InvalidResource when a budget does not fit its placement: PickAll has no fixed number of clusters.

    Source: KubeFleet's webhook `clusterresourceplacementdisruptionbudget`.
    """
    placement = related.objects.get(_placement_of(budget))
    if placement is None or (section(placement, "spec", "policy").get("placementType") or PICK_ALL) != PICK_ALL:
        return
    spec = section(budget, "spec")
    for field in ("maxUnavailable", "minAvailable"):
        value: object = spec.get(field)
        if value is not None and (field == "maxUnavailable" or isinstance(value, str)):
            raise invalid([FieldProblem(f"spec.{field}", _OF_PICK_ALL())])


def _placement_of(budget: Document) -> ObjectKey:
    return ObjectKey(CLUSTER_KIND, "", name_of(budget))


PLUGIN = AdmissionPlugin(
    name="PlacementValidator",
    acts="warns of parts of a placement's policy without effect; rejects a budget that does not fit its placement",
    rejections=(_OF_PICK_ALL,),
    rules=(
        AdmissionRule(("ClusterResourcePlacement", "ResourcePlacement"), warn=_warn),
        AdmissionRule(("ClusterResourcePlacementDisruptionBudget",), queries=_queries, admit=_admit),
    ),
)
