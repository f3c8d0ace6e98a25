"""The rules of evictions and disruption budgets of placements. Source: KubeFleet's `apis/placement/v1beta1`."""

from gardenbus.apiserver.decide.fields import Place
from gardenbus.apiserver.decide.metadata import label_problem, subdomain_problem
from gardenbus.apiserver.decide.validators.limits import check_limit
from gardenbus.apiserver.decide.validators.status import check_status
from gardenbus.common.errors import FieldProblem, InvalidResource
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.placement_parts import DisruptionBudget, Eviction
from gardenbus.common.resources.placements import PICK_ALL

_LIMITS = ("maxUnavailable", "minAvailable")


def check_eviction(manifest: Place, old: Document | None) -> None:
    """Note every problem of an eviction; once made it stays as it is."""
    check_status(manifest)
    spec = manifest.section("spec", required=True)
    if spec is None:
        return
    if (placement := spec.text("placementName", required=True)) and (problem := subdomain_problem(placement)):
        spec.note("placementName", problem)
    if (cluster := spec.text("clusterName", required=True)) and (problem := label_problem(cluster)):
        spec.note("clusterName", problem)
    if old is not None:
        for field in ("placementName", "clusterName"):
            spec.same_as(section(old, "spec"), field, "an eviction is carried out once: make a new one")
    if not manifest.notebook.problems:
        Eviction.from_document(dict(manifest.content))


def check_disruption_budget(manifest: Place, old: Document | None) -> None:
    """Note every problem of a budget."""
    _ = old
    spec = manifest.section("spec", required=True)
    if spec is None:
        return
    for field in _LIMITS:
        check_limit(spec, field)
    stated = [field for field in _LIMITS if spec.has(field)]
    if len(stated) > 1:
        spec.note("maxUnavailable", "cannot stand beside minAvailable: keep one of them")
    elif not stated:
        spec.note("", "needs one of maxUnavailable and minAvailable, as 1 or '25%'")
    if not manifest.notebook.problems:
        DisruptionBudget.from_document(dict(manifest.content))


def admit_disruption_budget(budget: Document, placement: Document | None) -> None:
    """Raise InvalidResource when a budget cannot be kept for its placement: nobody knows how many PickAll wants.

    Source: KubeFleet's webhook `clusterresourceplacementdisruptionbudget`.
    """
    if placement is None or (section(placement, "spec", "policy").get("placementType") or PICK_ALL) != PICK_ALL:
        return
    spec = section(budget, "spec")
    advice = "the placement is PickAll, where nobody knows how many clusters are wanted: write minAvailable as a number"
    for field in _LIMITS:
        value: object = spec.get(field)
        if value is not None and (field == "maxUnavailable" or isinstance(value, str)):
            path = f"spec.{field}"
            raise InvalidResource(f"{path}: {advice}", (FieldProblem(path, advice),))
