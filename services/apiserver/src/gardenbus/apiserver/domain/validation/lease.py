"""Rules of Leases."""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.shared import check_instant
from gardenbus.common.api.document import Document


def check(manifest: FieldCursor, _old: Document | None) -> None:
    """Note every problem of a Lease."""
    spec = manifest.section("spec")
    spec.text("holderIdentity")
    spec.integer("leaseDurationSeconds", least=1)
    spec.integer("leaseTransitions", least=0)
    check_instant(spec, "acquireTime")
    check_instant(spec, "renewTime")
