"""The rules of NamespacedCloudProfiles: a parent, which stays, and what is added to it."""

from gardenbus.apiserver.decide.fields import Place
from gardenbus.apiserver.decide.validators.cloudprofile import check_offers
from gardenbus.apiserver.decide.validators.scheduling import check_seed_selector
from gardenbus.common.resources.document import Document, section


def check(manifest: Place, old: Document | None) -> None:
    """Note every problem of a NamespacedCloudProfile."""
    if merged := manifest.nested("status", "cloudProfileSpec"):
        merged.text("type")
        check_seed_selector(merged)
    spec = manifest.section("spec", required=True)
    if spec is None:
        return
    check_offers(spec)
    parent = spec.section("parent", required=True)
    if parent is None:
        return
    parent.choice("kind", ("CloudProfile",))
    parent.text("name", required=True)
    if old is not None:
        parent.same_as(section(old, "spec", "parent"), "name", "make a new profile below the other parent")
