"""The rules of Leases: who holds it, for how long, since when."""

from gardenbus.apiserver.decide.fields import Place
from gardenbus.apiserver.decide.validators.scheduling import check_instant
from gardenbus.common.resources.document import Document


def check(manifest: Place, old: Document | None) -> None:
    """Note every problem of a Lease."""
    _ = old
    spec = manifest.section("spec")
    if spec is None:
        return
    spec.text("holderIdentity")
    spec.integer("leaseDurationSeconds", least=1)
    spec.integer("leaseTransitions", least=0)
    check_instant(spec, "acquireTime")
    check_instant(spec, "renewTime")
