"""The rules of a ManagedSeedSet. Source: Gardener's `pkg/api/seedmanagement/validation/managedseedset.go`."""

from collections.abc import Mapping

from gardenbus.apiserver.decide.fields import Place
from gardenbus.apiserver.decide.metadata import check_labels
from gardenbus.apiserver.decide.validators import shoot
from gardenbus.apiserver.decide.validators.managed_seed import check_garden_namespace, check_way
from gardenbus.apiserver.decide.validators.scheduling import check_label_selector
from gardenbus.apiserver.decide.validators.status import check_status
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.selectors import LabelSelector

_NEVER_FALLING = ("nextReplicaNumber", "collisionCount")
_PART_OF_REPLICAS = ("readyReplicas", "currentReplicas", "updatedReplicas")


def check(manifest: Place, old: Document | None) -> None:
    """Note every problem of a ManagedSeedSet, immutable fields included."""
    check_garden_namespace(manifest, "a ManagedSeedSet")
    _check_status(manifest, section(old or {}, "status"))
    spec = manifest.section("spec", required=True)
    if spec is None:
        return
    spec.integer("replicas", least=0)
    spec.integer("revisionHistoryLimit", least=0)
    _check_strategy(spec)
    if scale_in := spec.section("scaleIn"):
        scale_in.boolean("drain")
    selector = _check_selector(spec)
    _check_template(spec, selector)
    _check_shoot_template(spec, selector)
    if old is not None:
        spec.same_as(section(old, "spec"), "selector", "it says which replicas are the set's")
        spec.same_as(section(old, "spec"), "revisionHistoryLimit", "it is set once")


def _check_selector(spec: Place) -> LabelSelector | None:
    place = spec.section("selector", required=True)
    if place is None:
        return None
    selector = check_label_selector(place)
    if not place.content.get("matchLabels") and not place.content.get("matchExpressions"):
        spec.note("selector", "must not be empty: it would take every shoot of the namespace for a replica")
        return None
    return None if selector.problems else selector


def _check_strategy(spec: Place) -> None:
    strategy = spec.section("updateStrategy")
    if strategy is None:
        return
    strategy.choice("type", ("RollingUpdate",))
    if rolling := strategy.section("rollingUpdate"):
        rolling.integer("partition", least=0)


def _check_template(spec: Place, selector: LabelSelector | None) -> None:
    template = spec.section("template", required=True)
    if template is None:
        return
    _check_template_labels(template, selector)
    content = template.section("spec", required=True)
    if content is None:
        return
    if content.content.get("shoot"):
        content.note("shoot", "must be left out: each replica has a shoot of its own name")
    template_of_seed = check_way(content)
    if gardenlet := content.section("gardenlet"):
        configuration = gardenlet.section("config", required=True)
        if configuration is not None:
            configuration.section("seedConfig", required=True)
    if template_of_seed is not None:
        _check_template_labels(template_of_seed, selector)


def _check_shoot_template(spec: Place, selector: LabelSelector | None) -> None:
    template = spec.section("shootTemplate", required=True)
    if template is None:
        return
    _check_template_labels(template, selector)
    content = template.section("spec", required=True)
    if content is None:
        return
    shoot.check_spec(content)
    if not section(content.content, "provider").get("workers"):
        content.note("provider.workers", "is needed: a seed cannot stand on a shoot without workers")
    nginx = content.nested("addons", "nginxIngress")
    if nginx is not None and nginx.boolean("enabled"):
        nginx.note("enabled", "must be false: the seed on the shoot brings its own ingress")
    autoscaler = content.nested("kubernetes", "verticalPodAutoscaler")
    if autoscaler is not None and autoscaler.boolean("enabled") is False:
        autoscaler.note("enabled", "must be true: the seed on the shoot relies on it")


def _check_template_labels(template: Place, selector: LabelSelector | None) -> None:
    metadata = template.section("metadata") or Place({}, template.at("metadata"), template.notebook)
    check_labels(metadata, "labels")
    metadata.text_map("annotations")
    labels: Mapping[str, str] = section(metadata.content, "labels")
    if selector is not None and not selector.meets(labels):
        metadata.note("labels", f"must match spec.selector ({selector})")


def _check_status(manifest: Place, old: Document) -> None:
    status = check_status(manifest)
    if status is None:
        return
    replicas = status.integer("replicas", least=0) or 0
    for field in _PART_OF_REPLICAS:
        if (count := status.integer(field, least=0)) and count > replicas:
            status.note(field, f"must not be above replicas ({replicas}), but is {count}")
    for field in _NEVER_FALLING:
        before, count = old.get(field) or 0, status.integer(field, least=0)
        if count is not None and count < before:
            status.note(field, f"must never fall, and was {before}")
    if pending := status.section("pendingReplica"):
        name = pending.text("name", required=True) or ""
        own = section(manifest.content, "metadata").get("name")
        if not name.removeprefix(f"{own}-").isdigit():
            pending.note("name", f"must be {own}-<number>")
