"""Rules of Leases."""

from gardenbus.common.api.document import Document
from gardenbus.common.api.validation.field_cursor import FieldCursor
from gardenbus.common.api.validation.shared import check_instant


def check(manifest: FieldCursor, _old: Document | None) -> None:
    """Note every problem of a Lease."""
    spec = manifest.section("spec")
    spec.text("holderIdentity")
    spec.integer("leaseDurationSeconds", least=1)
    spec.integer("leaseTransitions", least=0)
    check_instant(spec, "acquireTime")
    check_instant(spec, "renewTime")
