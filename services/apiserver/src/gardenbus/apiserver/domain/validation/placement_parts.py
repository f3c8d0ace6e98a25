"""The rules of evictions and disruption budgets of placements. Source: KubeFleet's `apis/placement/v1beta1`."""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.limits import check_limit
from gardenbus.apiserver.domain.validation.metadata import label_problem, subdomain_problem
from gardenbus.apiserver.domain.validation.status import check_status
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.fleet.placement_parts import DisruptionBudget, Eviction

_LIMITS = ("maxUnavailable", "minAvailable")


def check_eviction(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of an eviction; once made it stays as it is."""
    check_status(manifest)
    spec = manifest.section("spec", required=True)
    spec.text("placementName", required=True, rule=subdomain_problem)
    spec.text("clusterName", required=True, rule=label_problem)
    if old is not None and spec:
        for field in ("placementName", "clusterName"):
            spec.same_as(section(old, "spec"), field, "an eviction is carried out once: make a new one")
    if not manifest.errors.problems:
        Eviction.from_document(dict(manifest.content))


def check_disruption_budget(manifest: FieldCursor, _old: Document | None) -> None:
    """Note every problem of a budget."""
    spec = manifest.section("spec", required=True)
    for field in _LIMITS:
        check_limit(spec, field)
    stated = [field for field in _LIMITS if spec.has(field)]
    if len(stated) > 1:
        spec.add_error("maxUnavailable", "cannot stand beside minAvailable: keep one of them")
    elif spec and not stated:
        spec.add_error("", "needs one of maxUnavailable and minAvailable, as 1 or '25%'")
    if not manifest.errors.problems:
        DisruptionBudget.from_document(dict(manifest.content))
