"""The rules of a ManagedSeedSet. Source: Gardener's `pkg/api/seedmanagement/validation/managedseedset.go`."""

from collections.abc import Mapping

from gardenbus.apiserver.domain.validation import shoot
from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.managed_seed import (
    check_garden_namespace,
    check_gardenlet_update,
    check_template_update,
    check_way,
)
from gardenbus.apiserver.domain.validation.metadata import check_labels
from gardenbus.apiserver.domain.validation.shared import check_label_selector
from gardenbus.apiserver.domain.validation.shoot_updates import check_bindings, check_immutable
from gardenbus.apiserver.domain.validation.status import check_status
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.selectors import LabelSelector

_NEVER_FALLING = ("nextReplicaNumber", "collisionCount")
_PART_OF_REPLICAS = ("readyReplicas", "currentReplicas", "updatedReplicas")


def check(manifest: FieldCursor, old: Document | None) -> None:
    """Note every problem of a ManagedSeedSet, immutable fields included."""
    check_garden_namespace(manifest, "a ManagedSeedSet")
    _check_status(manifest, section(old or {}, "status"))
    spec = manifest.section("spec", required=True)
    spec.integer("replicas", least=0)
    spec.integer("revisionHistoryLimit", least=0)
    _check_strategy(spec)
    spec.section("scaleIn").boolean("drain")
    selector = _check_selector(spec)
    _check_template(spec, selector)
    before = section(old or {}, "spec")
    _check_shoot_template(spec, selector, section(before, "shootTemplate", "spec"))
    if old is not None and spec:
        spec.same_as(before, "selector", "it says which replicas are the set's")
        spec.same_as(before, "revisionHistoryLimit", "it is set once")
        _check_templates_kept(spec, FieldCursor(before, "spec", manifest.errors))


def _check_templates_kept(spec: FieldCursor, before: FieldCursor) -> None:
    """Note changes of the templates that no replica could follow."""
    template, had = (each.nested("template", "spec") for each in (spec, before))
    check_template_update(template, had)
    if template.has("gardenlet"):
        check_gardenlet_update(template, section(had.content, "gardenlet"))
    ordered, was_ordered = (each.nested("shootTemplate", "spec") for each in (spec, before))
    stays = "the shoots of the replicas stay there: make a new set"
    ordered.section("networking").same_as(was_ordered.section("networking").content, "nodes", stays)
    if ordered:
        check_immutable(ordered, dict(was_ordered.content))


def _check_selector(spec: FieldCursor) -> LabelSelector | None:
    place = spec.section("selector", required=True)
    if not place:
        return None
    selector = check_label_selector(place)
    if not place.content.get("matchLabels") and not place.content.get("matchExpressions"):
        spec.add_error("selector", "must not be empty: it would take every shoot of the namespace for a replica")
        return None
    return None if selector.problems else selector


def _check_strategy(spec: FieldCursor) -> None:
    strategy = spec.section("updateStrategy")
    strategy.choice("type", ("RollingUpdate",))
    strategy.section("rollingUpdate").integer("partition", least=0)


def _check_template(spec: FieldCursor, selector: LabelSelector | None) -> None:
    content = _check_template_labels(spec.section("template", required=True), selector)
    if content.content.get("shoot"):
        content.add_error("shoot", "must be left out: each replica has a shoot of its own name")
    template_of_seed = check_way(content)
    content.section("gardenlet").section("config", required=True).section("seedConfig", required=True)
    _check_labels(template_of_seed, selector)


def _check_shoot_template(spec: FieldCursor, selector: LabelSelector | None, before: Document) -> None:
    content = _check_template_labels(spec.section("shootTemplate", required=True), selector)
    if not content:
        return
    shoot.check_spec(content)
    shoot.check_times(content)
    shoot.check_changes(content, before)
    check_bindings(content, before)
    if not section(content.content, "provider").get("workers"):
        content.add_error("provider.workers", "is needed: a seed cannot stand on a shoot without workers")
    nginx = content.nested("addons", "nginxIngress")
    if nginx.boolean("enabled"):
        nginx.add_error("enabled", "must be false: the seed on the shoot brings its own ingress")
    autoscaler = content.nested("kubernetes", "verticalPodAutoscaler")
    if autoscaler.boolean("enabled") is False:
        autoscaler.add_error("enabled", "must be true: the seed on the shoot relies on it")


def _check_template_labels(template: FieldCursor, selector: LabelSelector | None) -> FieldCursor:
    """Report labels of a template that its selector does not match; returns its spec."""
    _check_labels(template, selector)
    return template.section("spec", required=True)


def _check_labels(template: FieldCursor, selector: LabelSelector | None) -> None:
    if not template:
        return
    metadata = template.section("metadata")
    check_labels(metadata, "labels")
    metadata.text_map("annotations")
    labels: Mapping[str, str] = section(metadata.content, "labels")
    if selector is not None and not selector.meets(labels):
        metadata.add_error("labels", f"must match spec.selector ({selector})")


def _check_status(manifest: FieldCursor, old: Document) -> None:
    status = check_status(manifest)
    replicas = status.integer("replicas", least=0) or 0
    for field in _PART_OF_REPLICAS:
        if (count := status.integer(field, least=0)) and count > replicas:
            status.add_error(field, f"must not be above replicas ({replicas}), but is {count}")
    for field in _NEVER_FALLING:
        before, count = old.get(field) or 0, status.integer(field, least=0)
        if count is not None and count < before:
            status.add_error(field, f"must never fall, and was {before}")
    if pending := status.section("pendingReplica"):
        name = pending.text("name", required=True) or ""
        own = section(manifest.content, "metadata").get("name")
        if not name.removeprefix(f"{own}-").isdigit():
            pending.add_error("name", f"must be {own}-<number>")
