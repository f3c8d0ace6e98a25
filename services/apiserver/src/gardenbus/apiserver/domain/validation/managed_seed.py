"""The rules of a ManagedSeed. Source: Gardener's `pkg/api/seedmanagement/validation/managedseed.go`."""

from gardenbus.apiserver.domain.validation import seed
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.gardenlet_configuration import check_configuration, check_seed_template
from gardenbus.apiserver.domain.validation.metadata import check_labels, label_problem, subdomain_problem
from gardenbus.apiserver.domain.validation.shared import check_annotation_keys
from gardenbus.apiserver.domain.validation.status import check_status
from gardenbus.apiserver.domain.validation.stored_problems import check_new
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.shoot_operations import RECONCILE
from gardenbus.common.api.keys import GARDEN_NAMESPACE

OPERATIONS = (RECONCILE, "renew-kubeconfig")
BOOTSTRAPS = ("BootstrapToken", "ServiceAccount", "None")

WAYS = ("gardenlet", "seedTemplate", "seed")
"""Ways to state the seed of a ManagedSeed: a gardenlet to be deployed, or a template (`seed` is older)."""


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a ManagedSeed, immutable fields included."""
    check_garden_namespace(manifest, "a ManagedSeed")
    check_status(manifest)
    spec = manifest.section("spec", required=True)
    shoot = spec.section("shoot", required=True)
    shoot.text("name", required=True, rule=label_problem)
    check_way(spec)
    seed.check_operation(manifest, old, OPERATIONS, awaited=(RECONCILE,))
    stored = FieldCursor(section(old or {}, "spec"), "spec", manifest.errors)
    template, stored_template = (template_in(each).section("spec") for each in (spec, stored))
    check_new(template, dict(stored_template.content), seed.check_reserved)
    if old is None or not spec:
        return
    if shoot:
        shoot.same_as(section(old, "spec", "shoot"), "name", "the seed runs on that shoot")
    check_template_update(spec, stored)
    before = section(old, "spec", "gardenlet")
    if spec.has("gardenlet") != bool(before):
        stays = "is started" if before else "is managed outside of Gardenbus"
        spec.add_error("gardenlet", f"its gardenlet {stays}, and that stays: make a new ManagedSeed")
        return
    check_gardenlet_update(spec, before)


def check_gardenlet_update(spec: FieldCursor, before: Document) -> None:
    """Note changes of how a gardenlet was set up, also in the template of a set."""
    for field in ("bootstrap", "mergeWithParent"):
        spec.section("gardenlet").same_as(before, field, "the gardenlet was set up with it")


def check_template_update(spec: FieldCursor, stored: FieldCursor) -> None:
    """Note changes of a seed's template that its shoots would not bear; one that is taken away changes nothing."""
    if template := template_in(spec):
        seed.check_spec_update(template.section("spec"), section(template_in(stored).content, "spec"))


def template_in(spec: FieldCursor) -> FieldCursor:
    """The template of a seed, however it is stated."""
    if isinstance(spec.content.get("gardenlet"), dict):
        return spec.nested("gardenlet", "config", "seedConfig")
    return spec.section("seedTemplate" if spec.has("seedTemplate") else "seed")


def check_way(spec: FieldCursor) -> FieldCursor:
    """Check the seed of a ManagedSeed; returns its template.

    Exactly one way is stated, also in the template of a set.
    """
    stated = [way for way in WAYS if spec.has(way)]
    if not stated:
        if spec:
            spec.add_error(
                "gardenlet",
                "is needed, or seedTemplate if the gardenlet is managed outside of Gardenbus: state one of them",
            )
        return spec.nested("gardenlet", "config", "seedConfig")
    for way in stated[1:]:
        spec.add_error(way, f"cannot stand beside {stated[0]}: state one of them")
    if gardenlet := spec.section("gardenlet"):
        check_gardenlet(gardenlet)
        return gardenlet.nested("config", "seedConfig")
    template = spec.section(stated[0])
    check_seed_template(template)
    return template


def check_gardenlet(gardenlet: FieldCursor) -> None:
    """Check the gardenlet of a ManagedSeed."""
    gardenlet.choice("bootstrap", BOOTSTRAPS)
    gardenlet.boolean("mergeWithParent")
    check_deployment(gardenlet.section("deployment"))
    if config := gardenlet.section("config"):
        check_configuration(config)
        bootstrap = str(gardenlet.content.get("bootstrap") or BOOTSTRAPS[0])
        check_connection(config, bootstrap, merges=gardenlet.content.get("mergeWithParent") is not False)


def check_deployment(deployment: FieldCursor) -> None:
    """Check how a gardenlet is deployed."""
    deployment.integer("replicaCount", least=0)
    deployment.integer("revisionHistoryLimit", least=0)
    deployment.text("serviceAccountName", rule=subdomain_problem)
    _check_image(deployment.section("image"))
    check_labels(deployment, "podLabels")
    check_annotation_keys(deployment, "podAnnotations")


def check_connection(config: FieldCursor, bootstrap: str, *, merges: bool) -> None:
    """Note a connection to the garden that does not go with how the gardenlet gets its credentials.

    `merges`: it has the connection of its parent where it states none.
    """
    connection = config.section("gardenClientConnection")
    if not connection:
        return
    kubeconfig = connection.text("kubeconfig")
    if bootstrap != BOOTSTRAPS[-1]:
        if kubeconfig:
            connection.add_error("kubeconfig", f"cannot stand beside bootstrap {bootstrap}, which makes one")
        return
    if not kubeconfig and not merges:
        connection.add_error("kubeconfig", "is needed with bootstrap None, unless mergeWithParent is true")
    for field in ("bootstrapKubeconfig", "kubeconfigSecret"):
        if connection.has(field):
            connection.add_error(field, "is for gardenlets with a bootstrap: leave it out with None")


def _check_image(image: FieldCursor) -> None:
    for field in ("ref", "repository", "tag"):
        image.text(field, filled=True)
    if image.has("ref") and (image.has("repository") or image.has("tag")):
        image.add_error("ref", "must not stand beside repository and tag: write one or the other")
    image.choice("pullPolicy", ("Always", "IfNotPresent", "Never"))


def check_garden_namespace(manifest: FieldCursor, described: str) -> None:
    """Note an object outside of the garden namespace."""
    namespace = section(manifest.content, "metadata").get("namespace")
    if namespace != GARDEN_NAMESPACE:
        manifest.add_error("metadata.namespace", f"must be {GARDEN_NAMESPACE}: {described} belongs there")
