"""Whether a manifest keeps the rules of its kind: dispatch, and the rules that hold for every kind."""

from collections.abc import Callable, Mapping

from gardenbus.apiserver.decide.fields import Notebook, Place
from gardenbus.apiserver.decide.plain_shoots import has_plain_spec
from gardenbus.apiserver.decide.validators import (
    cloudprofile,
    config_map,
    exposure_class,
    lease,
    managed_seed,
    managed_seed_set,
    member_cluster,
    namespaced_cloudprofile,
    placement,
    placement_parts,
    project,
    secret,
    seed,
    seed_autoscaler,
    shoot,
)
from gardenbus.apiserver.decide.validators.status import check_seed_status, check_shoot_status, check_status
from gardenbus.apiserver.decide.validators.work import check_work_status
from gardenbus.common.errors import Unsupported
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.keys import ObjectKey

Check = Callable[[Place, Document | None], None]

_CHECKS: Mapping[str, Check] = {
    "Shoot": shoot.check,
    "Seed": seed.check,
    "CloudProfile": cloudprofile.check,
    "NamespacedCloudProfile": namespaced_cloudprofile.check,
    "Project": project.check,
    "ExposureClass": exposure_class.check,
    "ConfigMap": config_map.check,
    "Secret": secret.check,
    "Lease": lease.check,
    "ManagedSeed": managed_seed.check,
    "ManagedSeedSet": managed_seed_set.check,
    "SeedAutoscaler": seed_autoscaler.check,
    "MemberCluster": member_cluster.check,
    "ClusterResourcePlacement": placement.check,
    "ResourcePlacement": placement.check,
    "ClusterResourcePlacementEviction": placement_parts.check_eviction,
    "ClusterResourcePlacementDisruptionBudget": placement_parts.check_disruption_budget,
}

_STATUS_CHECKS: Mapping[str, Callable[[Place], object]] = {
    "Shoot": check_shoot_status,
    "Seed": check_seed_status,
    "MemberCluster": member_cluster.check_member_cluster_status,
    "Work": check_work_status,
}


def validate(document: Document, old: Document | None) -> None:
    """Check a manifest whose metadata passed `metadata.key_of`, as it shall be stored.

    `old` is what is stored now, None on creation. Raises InvalidResource with every field problem (also in status, so
    that a report with a wrong type is refused), and Unsupported for an Event, which nobody writes by hand.
    """
    kind = str(document["kind"])
    if kind == "Event":
        raise Unsupported("kind: Events are recorded by the services: read them with garden.api.list.event")
    if kind == "Shoot" and old is None and has_plain_spec(document):
        return
    notebook = Notebook()
    manifest = Place.root(document, notebook)
    for part in ("spec", "status"):
        manifest.section(part)
    if old is not None:
        _check_identity(manifest, old)
    if check := _CHECKS.get(kind):
        check(manifest, old)
    metadata = section(document, "metadata")
    key = ObjectKey(kind, str(metadata.get("namespace") or ""), str(metadata.get("name")))
    notebook.settle(str(key))


def validate_status(document: Document) -> None:
    """Check the status of a stored object as a report has changed it. Raises InvalidResource."""
    notebook = Notebook()
    _STATUS_CHECKS.get(str(document["kind"]), check_status)(Place.root(document, notebook))
    metadata = section(document, "metadata")
    key = ObjectKey(str(document["kind"]), str(metadata.get("namespace") or ""), str(metadata.get("name")))
    notebook.settle(str(key))


def _check_identity(manifest: Place, old: Document) -> None:
    """Kind, group, name and namespace stay, and so does the uid where it is stated."""
    group, before = (str(one.get("apiVersion")).rpartition("/")[0] for one in (manifest.content, old))
    if group != before:
        manifest.note("apiVersion", f"an object of that kind and name is stored in the group {before or 'v1'}")
    manifest.same_as(old, "kind", "make a new object")
    if metadata := manifest.section("metadata"):
        for field in ("name", "namespace", "uid"):
            if field != "uid" or metadata.has("uid"):
                metadata.same_as(section(old, "metadata"), field, "make a new object")
        _check_new_finalizers(metadata, section(old, "metadata"))


def _check_new_finalizers(metadata: Place, before: Document) -> None:
    """Nobody takes hold any more of what is being deleted. Source: apimachinery's `validation/objectmeta.go`."""
    if not before.get("deletionTimestamp"):
        return
    held = before.get("finalizers") or ()
    if new := [finalizer for _, finalizer in metadata.texts("finalizers") if finalizer not in held]:
        metadata.note("finalizers", f"none can be added while the object is being deleted: leave out {', '.join(new)}")
