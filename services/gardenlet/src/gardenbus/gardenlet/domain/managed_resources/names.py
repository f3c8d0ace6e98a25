"""Names that ManagedResources and their objects carry, and the classes of resource managers.

Source: Gardener's `pkg/apis/resources/v1alpha1/types.go` and `pkg/resourcemanager/predicate/class_filter.go`.
"""

from collections.abc import Iterable, Mapping

from gardenbus.common.api.document import Document, section

GROUP = "resources.gardener.cloud"
API_VERSION = f"{GROUP}/v1alpha1"
KIND = "ManagedResource"

DESCRIPTION = f"{GROUP}/description"
DESCRIPTION_TEXT = (
    "DO NOT EDIT - This resource is managed by gardener-resource-manager.\n"
    "Any modifications are discarded and the resource is returned to the original state."
)
ORIGIN = f"{GROUP}/origin"
MANAGED_BY = f"{GROUP}/managed-by"
MANAGED_BY_VALUE = "gardener"
IGNORE = f"{GROUP}/ignore"
MODE = f"{GROUP}/mode"
MODE_IGNORE = "Ignore"
KEEP_OBJECT = f"{GROUP}/keep-object"
PRESERVE_REPLICAS = f"{GROUP}/preserve-replicas"
PRESERVE_RESOURCES = f"{GROUP}/preserve-resources"
SKIP_HEALTH_CHECK = f"{GROUP}/skip-health-check"
DELETE_ON_INVALID_UPDATE = f"{GROUP}/delete-on-invalid-update"
DELETION_PROPAGATION = f"{GROUP}/deletion-propagation-on-invalid-update"
FINALIZE_DELETION_AFTER = f"{GROUP}/finalize-deletion-after"
GARBAGE_COLLECTABLE = f"{GROUP}/garbage-collectable-reference"
REFERENCE_PREFIX = f"reference.{GROUP}/"
OPERATION = "gardener.cloud/operation"
RECONCILE = "reconcile"

COMPRESSED_SUFFIX = ".br"
"""End of a Secret's key whose value is compressed by Brotli."""

FINALIZER = f"{GROUP}/gardener-resource-manager"
SEED_CLASS = "seed"
"""Class of the ManagedResources whose objects are made in the seed."""

SHOOT_CLASS = ""
"""Class of those whose objects are made in the shoot in whose namespace they are."""

DEFAULT_CLASS = "resources"
"""Another name of `SHOOT_CLASS`, which a ManagedResource may give."""

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


def is_true(values: Mapping[str, object], name: str) -> bool:
    """True if a label or annotation is there with a value that Go's `strconv.ParseBool` takes for true."""
    return values.get(name) in _TRUE


def annotations_of(live: Document) -> Document:
    """Annotations of an object."""
    return section(live, "metadata", "annotations")


def class_of(managed_resource: Document) -> str:
    """Class of a ManagedResource: `SHOOT_CLASS` also where it names the default one."""
    name = str(section(managed_resource, "spec").get("class") or "")
    return SHOOT_CLASS if name == DEFAULT_CLASS else name


def finalizer_of(resource_class: str) -> str:
    """Finalizer of the resource manager of a class."""
    return f"{FINALIZER}-{resource_class}" if resource_class != SHOOT_CLASS else FINALIZER


def finalizers_of(live: Document) -> tuple[str, ...]:
    """Finalizers of an object."""
    found: object = section(live, "metadata").get("finalizers")
    return tuple(str(each) for each in found) if isinstance(found, list) else ()  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def is_ignored(live: Document) -> bool:
    """True for an object, or a ManagedResource, that is not to be touched."""
    return is_true(annotations_of(live), IGNORE)


def first_manager_finalizer(finalizers: Iterable[str]) -> str | None:
    """The first finalizer of a resource manager, of whatever class: it is the one that acts until it is off."""
    return next((each for each in finalizers if each.startswith(FINALIZER)), None)


def origin_of(cluster_identity: str, namespace: str, name: str) -> str:
    """Value of the annotation `ORIGIN`: `[<cluster identity>:]<namespace>/<name>`."""
    return f"{cluster_identity}:{namespace}/{name}" if cluster_identity else f"{namespace}/{name}"


def owner_by_origin(live: Document, cluster_identity: str) -> tuple[str, str] | None:
    """Namespace and name of the ManagedResource that an object names as its origin, if that is in this cluster."""
    identity, _, full_name = str(annotations_of(live).get(ORIGIN) or "").rpartition(":")
    namespace, _, name = full_name.partition("/")
    return (namespace, name) if name and identity == cluster_identity else None
