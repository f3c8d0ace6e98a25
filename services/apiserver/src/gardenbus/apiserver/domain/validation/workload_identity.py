"""Rules of WorkloadIdentities: whom their tokens are for. Source: Gardener's `pkg/api/security/validation`.

Their `status.sub` is not checked: nothing here issues tokens.
"""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.stored_problems import has_spec
from gardenbus.common.api.document import Document, section


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a WorkloadIdentity; the type of its target stays."""
    spec = manifest.section("spec", required=has_spec(old))
    if spec and not spec.content.get("audiences"):
        spec.add_error("audiences", "is needed: whom the tokens are for")
    spec.unique_texts("audiences")
    target = spec.section("targetSystem", required=True)
    target.text("type", required=True, rule=lambda kind: "must be one type, without comma" if "," in kind else "")
    target.same_as(section(old or {}, "spec", "targetSystem"), "type", "make a new identity")
