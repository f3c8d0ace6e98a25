"""Prometheus metrics of controllermanager, besides those of its controllers and its informer."""

from prometheus_client import Counter

NAMESPACES_MADE = Counter(
    "gardenbus_controllermanager_namespaces_created_total", "Namespaces of projects that this process has created."
)
NAMESPACES_RELEASED = Counter(
    "gardenbus_controllermanager_namespaces_released_total",
    "Namespaces that this process has removed with all that was in them, or kept after their project.",
)
CONTENTS_DELETED = Counter(
    "gardenbus_controllermanager_contents_deleted_total", "Objects that this process has deleted with their namespace."
)
