"""The rules of a ManagedSeed. Source: Gardener's `pkg/api/seedmanagement/validation/managedseed.go`."""

from gardenbus.apiserver.decide.fields import Place
from gardenbus.apiserver.decide.metadata import label_problem
from gardenbus.apiserver.decide.validators.gardenlet_configuration import check_configuration, check_seed_template
from gardenbus.apiserver.decide.validators.status import check_status
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import GARDEN_NAMESPACE

BOOTSTRAPS = ("BootstrapToken", "ServiceAccount", "None")

WAYS = ("gardenlet", "seedTemplate", "seed")
"""How a ManagedSeed says what its seed shall be like: a gardenlet to be started, or a template (`seed` is older)."""


def check(manifest: Place, old: Document | None) -> None:
    """Note every problem of a ManagedSeed, immutable fields included."""
    check_garden_namespace(manifest, "a ManagedSeed")
    check_status(manifest)
    spec = manifest.section("spec", required=True)
    if spec is None:
        return
    shoot = spec.section("shoot", required=True)
    if shoot is not None and (name := shoot.text("name", required=True)) and (problem := label_problem(name)):
        shoot.note("name", problem)
    check_way(spec)
    if old is None:
        return
    if shoot is not None:
        shoot.same_as(section(old, "spec", "shoot"), "name", "the seed runs on that shoot")
    before = section(old, "spec", "gardenlet")
    if spec.has("gardenlet") != bool(before):
        stays = "is started" if before else "is somebody else's"
        spec.note("gardenlet", f"its gardenlet {stays}, and that stays: make a new ManagedSeed")
        return
    gardenlet = spec.section("gardenlet") or Place({}, spec.at("gardenlet"), spec.notebook)
    for field in ("bootstrap", "mergeWithParent"):
        gardenlet.same_as(before, field, "the gardenlet was set up with it")


def check_way(spec: Place) -> Place | None:
    """Note every problem of what the seed shall be like; answer its template, where one is stated.

    Exactly one way is stated, also in the template of a set.
    """
    stated = [way for way in WAYS if spec.has(way)]
    if not stated:
        spec.note("gardenlet", "is needed, or seedTemplate if the gardenlet is somebody else's: state one of them")
        return None
    for way in stated[1:]:
        spec.note(way, f"cannot stand beside {stated[0]}: state one of them")
    if gardenlet := spec.section("gardenlet"):
        check_gardenlet(gardenlet)
        return gardenlet.nested("config", "seedConfig")
    template = spec.section(stated[0])
    if template is not None:
        check_seed_template(template)
    return template


def check_gardenlet(gardenlet: Place) -> None:
    """Note every problem of what the gardenlet shall be like."""
    gardenlet.choice("bootstrap", BOOTSTRAPS)
    gardenlet.boolean("mergeWithParent")
    if deployment := gardenlet.section("deployment"):
        deployment.integer("replicaCount", least=0)
        deployment.integer("revisionHistoryLimit", least=0)
    if configuration := gardenlet.section("config"):
        check_configuration(configuration)


def check_garden_namespace(manifest: Place, described: str) -> None:
    """Note an object outside of the garden namespace."""
    namespace = section(manifest.content, "metadata").get("namespace")
    if namespace != GARDEN_NAMESPACE:
        manifest.note("metadata.namespace", f"must be {GARDEN_NAMESPACE}: {described} belongs there")
