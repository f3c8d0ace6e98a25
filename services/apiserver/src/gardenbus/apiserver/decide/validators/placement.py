"""The rules of ClusterResourcePlacements and ResourcePlacements: what goes along, and how changes go out.

Source: KubeFleet's `pkg/utils/validator/placement.go` and the rules beside its API types.
"""

from gardenbus.apiserver.decide.fields import Place, shown
from gardenbus.apiserver.decide.metadata import subdomain_problem
from gardenbus.apiserver.decide.validators.limits import check_limit, is_none_at_all
from gardenbus.apiserver.decide.validators.placement_policy import check_policy
from gardenbus.apiserver.decide.validators.scheduling import check_label_selector
from gardenbus.apiserver.decide.validators.status import check_status
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.kinds import KINDS
from gardenbus.common.resources.placements import Placement

LONGEST_NAME = 63
"""Characters of a placement's name: it is the value of a label on all that belongs to it."""
MOST_SELECTORS = 100
MOST_REVISIONS = 1000
SCOPES = ("NamespaceOnly", "NamespaceWithResources")
STRATEGIES = ("RollingUpdate", "External")

_APPLY_CHOICES = {
    "type": ("ClientSideApply", "ServerSideApply", "ReportDiff"),
    "comparisonOption": ("PartialComparison", "FullComparison"),
    "whenToApply": ("Always", "IfNotDrifted"),
    "whenToTakeOver": ("Always", "IfNoDiff", "Never"),
}


def check(manifest: Place, old: Document | None) -> None:
    """Note every problem of a placement of either kind, immutable fields included."""
    name = str(section(manifest.content, "metadata").get("name"))
    if len(name) > LONGEST_NAME:
        manifest.note("metadata.name", f"must have at most {LONGEST_NAME} characters, not {len(name)}: it is a label")
    check_status(manifest)
    spec = manifest.section("spec", required=True)
    if spec is None:
        return
    _check_selectors(spec, is_namespaced=manifest.content.get("kind") == "ResourcePlacement")
    check_policy(spec, old)
    _check_strategy(spec)
    spec.integer("revisionHistoryLimit", least=1, most=MOST_REVISIONS)
    if not manifest.notebook.problems:
        Placement.from_document(dict(manifest.content))


def _check_selectors(spec: Place, *, is_namespaced: bool) -> None:
    selectors = spec.entries("resourceSelectors", required=True)
    if spec.content.get("resourceSelectors") == []:
        spec.note("resourceSelectors", "must not be empty: name what is to be placed")
    if len(selectors) > MOST_SELECTORS:
        spec.note("resourceSelectors", f"must be at most {MOST_SELECTORS}, not {len(selectors)}")
    for selector in selectors:
        group, kind = selector.text("group") or "", selector.text("kind", required=True)
        selector.text("version", required=True)
        if (name := selector.text("name")) and (problem := subdomain_problem(name)):
            selector.note("name", problem)
        if labels := selector.section("labelSelector"):
            check_label_selector(labels)
            if name:
                selector.note("labelSelector", "cannot stand beside name: keep one of them")
        selector.choice("selectionScope", SCOPES)
        if kind:
            _check_scope(selector, group, kind, is_namespaced=is_namespaced)


def _check_scope(selector: Place, group: str, kind: str, *, is_namespaced: bool) -> None:
    """Note a kind that is of the other scope than the placement; nobody knows that of kinds not known here."""
    known = KINDS.get(kind.lower())
    if known is None or known.group != group or known.namespaced in (None, is_namespaced):
        return
    if is_namespaced:
        selector.note("kind", f"{shown(kind)} is of no namespace: select it in a ClusterResourcePlacement")
    else:
        way = "select its Namespace, which takes along what is in it, or make a ResourcePlacement there"
        selector.note("kind", f"{shown(kind)} is of a namespace: {way}")


def _check_strategy(spec: Place) -> None:
    strategy = spec.section("strategy")
    if strategy is None:
        return
    strategy.choice("type", STRATEGIES)
    if rolling := strategy.section("rollingUpdate"):
        check_limit(rolling, "maxUnavailable")
        check_limit(rolling, "maxSurge")
        rolling.integer("unavailablePeriodSeconds", least=0)
        if is_none_at_all(rolling.content.get("maxUnavailable")) and is_none_at_all(rolling.content.get("maxSurge")):
            rolling.note("maxSurge", "must not be 0 while maxUnavailable is 0: no change could ever go out")
    if apply := strategy.section("applyStrategy"):
        for field, allowed in _APPLY_CHOICES.items():
            apply.choice(field, allowed)
        apply.boolean("allowCoOwnership")
        if server_side := apply.section("serverSideApplyConfig"):
            server_side.boolean("force")
