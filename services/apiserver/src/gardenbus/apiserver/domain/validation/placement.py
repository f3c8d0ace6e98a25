"""Rules of ClusterResourcePlacements and ResourcePlacements: resource selectors and rollout strategy.

Source: KubeFleet's `pkg/utils/validator/placement.go` and the rules beside its API types.
"""

from functools import partial

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.limits import check_limit, is_zero_limit
from gardenbus.apiserver.domain.validation.metadata import object_name_problem
from gardenbus.apiserver.domain.validation.placement_policy import check_policy
from gardenbus.apiserver.domain.validation.shared import (
    OtherScope,
    check_label_selector,
    check_name_fits_label,
    check_scope,
)
from gardenbus.apiserver.domain.validation.status import check_status
from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.placements import Placement

MOST_SELECTORS = 100
MOST_REVISIONS = 1000
SCOPES = ("NamespaceOnly", "NamespaceWithResources")
STRATEGIES = ("RollingUpdate", "External")
_REPORTING_SCOPES = ("ClusterScopeOnly", "NamespaceAccessible")

_APPLY_CHOICES = {
    "type": ("ClientSideApply", "ServerSideApply", "ReportDiff"),
    "comparisonOption": ("PartialComparison", "FullComparison"),
    "whenToApply": ("Always", "IfNotDrifted"),
    "whenToTakeOver": ("Always", "IfNoDiff", "Never"),
}

_WAYS = OtherScope(
    of_no_namespace="select it in a ClusterResourcePlacement",
    of_a_namespace="select its Namespace, which takes along what is in it, or make a ResourcePlacement there",
)


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a placement of either kind, immutable fields included."""
    check_name_fits_label(manifest)
    check_status(manifest)
    spec = manifest.section("spec", required=True)
    _check_selectors(spec, is_namespaced=manifest.content.get("kind") == "ResourcePlacement")
    check_policy(spec, old)
    _check_strategy(spec)
    spec.choice("statusReportingScope", _REPORTING_SCOPES)
    spec.integer("revisionHistoryLimit", least=1, most=MOST_REVISIONS)
    if not manifest.errors.problems:
        Placement.from_document(dict(manifest.content))


def _check_selectors(spec: FieldCursor, *, is_namespaced: bool) -> None:
    selectors = spec.entries("resourceSelectors", required=True, most=MOST_SELECTORS)
    if spec.content.get("resourceSelectors") == []:
        spec.add_error("resourceSelectors", "must not be empty: name what is to be placed")
    for selector in selectors:
        group, kind = selector.text("group") or "", selector.text("kind", required=True)
        selector.text("version", required=True)
        name = selector.text("name", rule=partial(object_name_problem, group=group, kind=kind or ""))
        if labels := selector.section("labelSelector"):
            check_label_selector(labels)
            if name:
                selector.add_error("labelSelector", "cannot stand beside name: keep one of them")
        selector.choice("selectionScope", SCOPES)
        if kind:
            check_scope(selector, group, kind, _WAYS, is_namespaced=is_namespaced)


def _check_strategy(spec: FieldCursor) -> None:
    strategy = spec.section("strategy")
    strategy.choice("type", STRATEGIES)
    if rolling := strategy.section("rollingUpdate"):
        check_limit(rolling, "maxUnavailable")
        check_limit(rolling, "maxSurge")
        rolling.integer("unavailablePeriodSeconds", least=0)
        if is_zero_limit(rolling.content.get("maxUnavailable")) and is_zero_limit(rolling.content.get("maxSurge")):
            rolling.add_error("maxSurge", "must not be 0 while maxUnavailable is 0: no change could ever go out")
    apply = strategy.section("applyStrategy")
    for field, allowed in _APPLY_CHOICES.items():
        apply.choice(field, allowed)
    strategy.section("deleteStrategy").choice("propagationPolicy", ("Delete", "Abandon"))
    if back := strategy.section("reportBackStrategy"):
        back.choice("type", ("Disabled", "Mirror"), required=True)
        back.choice("destination", ("OriginalResource", "WorkAPI"))
    apply.boolean("allowCoOwnership")
    apply.section("serverSideApplyConfig").boolean("force")
