"""Prometheus metrics of controllermanager, besides those of its controllers and its informer."""

from prometheus_client import Counter, Gauge

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
HIBERNATION_SWITCHES = Counter(
    "gardenbus_controllermanager_hibernation_switches_total",
    "Shoots that this process has put to sleep, or woken up, by their schedules.",
    ["direction"],
)
MAINTENANCE_UPDATES = Counter(
    "gardenbus_controllermanager_maintenance_updates_total",
    "Updates that this process has made in maintenance windows, or that could not be made, by what was updated.",
    ["component", "result"],
)
RETRIED_SHOOTS = Counter(
    "gardenbus_controllermanager_retried_shoots_total",
    "Operations that this process has had tried again after exceeded rate limits.",
)
EXPIRED_SHOOTS = Counter(
    "gardenbus_controllermanager_expired_shoots_total",
    "Shoots that this process has deleted at the end of their lifetime.",
)
DELETED_BASTIONS = Counter(
    "gardenbus_controllermanager_deleted_bastions_total", "Bastions that this process has deleted."
)
INSTALLATIONS = Counter(
    "gardenbus_controllermanager_installations_total",
    "ControllerInstallations that this process has created, updated or deleted.",
    ["action"],
)
STALE_DELETED = Counter(
    "gardenbus_controllermanager_stale_projects_deleted_total", "Projects that this process has deleted as stale."
)
EVENTS_EXPIRED_UPTO = Gauge(
    "gardenbus_controllermanager_events_expired_sequence",
    "Sequence of EVENTS up to which this process has removed what is not about Shoots.",
)
