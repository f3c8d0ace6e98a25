"""Rules of Quotas: what they limit, and for whom. Source: Gardener's `pkg/api/core/validation/quota.go`."""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.limits import amount_problem
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.quotas import METRICS

SCOPES = (
    ("core.gardener.cloud/v1beta1", "Project"),
    ("v1", "Secret"),
    ("security.gardener.cloud/v1alpha1", "WorkloadIdentity"),
)


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a Quota, in what changes."""
    spec, before = manifest.section("spec", required=True), section(old or {}, "spec")
    if spec.content.get("scope") != before.get("scope") or old is None:
        _check_scope(spec)
        spec.same_as(before, "scope", "make a new Quota")
    if spec.content.get("metrics") != before.get("metrics"):
        _check_metrics(spec.section("metrics"))
    if spec.content.get("clusterLifetimeDays") != before.get("clusterLifetimeDays"):
        spec.integer("clusterLifetimeDays", least=1)


def _check_scope(spec: FieldCursor) -> None:
    scope = spec.section("scope", required=True)
    if scope and (scope.text("apiVersion"), scope.text("kind")) not in SCOPES:
        choices = ", ".join(f"{{apiVersion: {version}, kind: {kind}}}" for version, kind in SCOPES)
        spec.add_error("scope", f"must be one of {choices}")


def _check_metrics(metrics: FieldCursor) -> None:
    for metric, amount in metrics.content.items():
        problem = amount_problem(amount) if metric in METRICS else f"is no metric: there are {', '.join(METRICS)}"
        if problem:
            metrics.errors.add_error(f"{metrics.path}[{metric[:80]}]", problem)
