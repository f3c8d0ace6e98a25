"""The rules of ExposureClasses: a handler, which stays, and what is merged into new shoots."""

from gardenbus.apiserver.decide.fields import Place
from gardenbus.apiserver.decide.validators.scheduling import check_seed_selector, check_tolerations
from gardenbus.common.resources.document import Document


def check(manifest: Place, old: Document | None) -> None:
    """Note every problem of an ExposureClass."""
    manifest.text("handler", required=True)
    if scheduling := manifest.section("scheduling"):
        check_seed_selector(scheduling)
        check_tolerations(scheduling)
    manifest.same_as(old, "handler", "shoots are exposed by it")
