"""The class of resource manager that has to act on a ManagedResource, and what it has to do.

| ManagedResource                                     | step                                                        |
|-----------------------------------------------------|-------------------------------------------------------------|
| deleting, or has the finalizer of another class     | that class removes its objects, and takes its finalizer off |
| the finalizer belongs to a resource manager of others | nothing: it is awaited                                    |
| ignored                                             | conditions only                                             |
| else                                                | its class applies the objects                               |

Source: Gardener's `pkg/resourcemanager/predicate/class_filter.go`.
"""

from collections.abc import Collection
from typing import NamedTuple

from gardenbus.common.api.document import Document, section
from gardenbus.gardenlet.domain.managed_resources.names import (
    class_of,
    finalizer_of,
    finalizers_of,
    first_manager_finalizer,
    is_ignored,
)


class ApplyObjects(NamedTuple):
    """Apply the objects as a resource manager of this class."""

    resource_class: str


class RemoveObjects(NamedTuple):
    """Remove the objects as a resource manager of this class, then its finalizer."""

    resource_class: str


class ReportIgnored(NamedTuple):
    """Report that nothing is done."""


class LeaveAlone(NamedTuple):
    """Do nothing: it belongs to others, or is awaited."""


ManagedResourceStep = ApplyObjects | RemoveObjects | ReportIgnored | LeaveAlone


def next_step(managed_resource: Document, served: Collection[str]) -> ManagedResourceStep:
    """The step of a ManagedResource for a process that serves these classes."""
    own_class = class_of(managed_resource)
    finalizers = finalizers_of(managed_resource)
    is_deleting = bool(section(managed_resource, "metadata").get("deletionTimestamp"))
    if is_ignored(managed_resource) and not is_deleting:
        return ReportIgnored() if own_class in served else LeaveAlone()
    for resource_class in served:
        if finalizer_of(resource_class) in finalizers and (is_deleting or resource_class != own_class):
            return RemoveObjects(resource_class)
    if own_class not in served or is_deleting:
        return LeaveAlone()
    first = first_manager_finalizer(finalizers)
    return ApplyObjects(own_class) if first in (None, finalizer_of(own_class)) else LeaveAlone()
