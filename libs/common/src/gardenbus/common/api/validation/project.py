"""The rules of Projects. Source: Gardener's `pkg/api/core/validation/project.go`, for the fields that are read here."""

from gardenbus.common.api.document import Document, section
from gardenbus.common.api.validation.field_cursor import FieldCursor
from gardenbus.common.api.validation.metadata import label_problem
from gardenbus.common.api.validation.shared import check_label_selector, check_tolerations


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a Project; its namespace stays."""
    spec = manifest.section("spec")
    if not spec:
        if section(old or {}, "spec").get("namespace"):
            manifest.add_error("spec.namespace", "cannot be taken away: a project keeps its namespace")
        return
    spec.text("namespace", rule=label_problem)
    spec.entries("members")
    spec.section("owner")
    for field in ("defaults", "whitelist"):
        check_tolerations(spec.section("tolerations"), field)
    if spec.content.get("dualApprovalForDeletion") != section(old or {}, "spec").get("dualApprovalForDeletion"):
        _check_dual_approval(spec)
    if old is not None:
        spec.same_as(section(old, "spec"), "namespace", "a project keeps its namespace")


def _check_dual_approval(spec: FieldCursor) -> None:
    taken: set[object] = set()
    for rule in spec.entries("dualApprovalForDeletion"):
        resource = rule.choice("resource", ("shoots",), required=True)
        rule.boolean("includeServiceAccounts")
        if resource in taken:
            rule.add_error("resource", "is there already")
        taken.add(resource)
        check_label_selector(rule.section("selector"))
