"""Projects that nobody uses: they become stale, are marked for deletion after a grace period, and deleted in the end.

| | stale since | deleted at |
|---|---|---|
| in use, young, active lately, or exempt | | |
| stale | first found so | |
| stale for the grace period | as before | stale since + expiration time, never earlier than it was stated before |

Source: Gardener's `pkg/controllermanager/controller/project/stale/reconciler.go`.
"""

from datetime import datetime, timedelta
from typing import NamedTuple

from gardenbus.common.api.configuration.controller_manager import ProjectControllerConfiguration
from gardenbus.common.api.confirmation import CONFIRMATION
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import name_of
from gardenbus.common.api.keys import GARDEN_NAMESPACE
from gardenbus.common.ports.clock import parse_timestamp, timestamp

SKIP_ANNOTATION = "project.gardener.cloud/skip-stale-check"

_SINCE, _DELETED_AT = "staleSinceTimestamp", "staleAutoDeleteTimestamp"
_LAST_ACTIVITY = "lastActivityTimestamp"
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
"""Words that Go's `strconv.ParseBool` takes for true."""


class ProjectUse(NamedTuple):
    """Use of a project as it is found."""

    created_at: datetime
    last_activity_at: datetime | None
    is_exempt: bool
    """Its namespace has the annotation that skips the check."""

    is_used: bool
    """It has shoots or BackupEntries, or shoots use its credentials or quotas by a binding."""


class Staleness(NamedTuple):
    """Since when a project is stale, and when it is deleted; as its status states them."""

    since: datetime | None = None
    deleted_at: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        """True when the project is to be deleted."""
        return self.deleted_at is not None and self.deleted_at <= now


def is_exempt(namespace: Document) -> bool:
    """True when a namespace skips the check: by its annotation, or as the landscape's own, `garden`."""
    return (
        name_of(namespace) == GARDEN_NAMESPACE
        or section(namespace, "metadata", "annotations").get(SKIP_ANNOTATION) in _TRUE
    )


def is_recent(use: ProjectUse, now: datetime, configuration: ProjectControllerConfiguration) -> bool:
    """True when a project is exempt, too young, or was active too lately to be stale, whoever uses it."""
    lifetime = timedelta(days=configuration.minimum_lifetime_days)
    last = use.last_activity_at
    return use.is_exempt or use.created_at + lifetime > now or (last is not None and last + lifetime > now)


def assess(
    use: ProjectUse, before: Staleness, now: datetime, configuration: ProjectControllerConfiguration
) -> Staleness:
    """The staleness of a project, after what its status says."""
    if use.is_used or is_recent(use, now, configuration):
        return Staleness()
    since = before.since or now
    if since + timedelta(days=configuration.stale_grace_period_days) > now:
        return Staleness(since)
    deleted_at = since + timedelta(days=configuration.stale_expiration_time_days)
    return Staleness(since, max(deleted_at, before.deleted_at or deleted_at))


def staleness_of(project: Document) -> Staleness:
    """The staleness that a project's status states."""
    status = section(project, "status")
    return Staleness(parse_timestamp(status.get(_SINCE)), parse_timestamp(status.get(_DELETED_AT)))


def last_activity_of(project: Document) -> datetime | None:
    """The instant of a project's last activity."""
    return parse_timestamp(section(project, "status").get(_LAST_ACTIVITY))


def with_staleness(project: Document, staleness: Staleness) -> Document:
    """A project whose status states a staleness."""
    status = {name: value for name, value in section(project, "status").items() if name not in (_SINCE, _DELETED_AT)}
    stated = {_SINCE: staleness.since, _DELETED_AT: staleness.deleted_at}
    return {**project, "status": {**status, **{name: timestamp(at) for name, at in stated.items() if at is not None}}}


def with_activity(project: Document, now: datetime) -> Document:
    """A project that was active now."""
    return {**project, "status": {**section(project, "status"), _LAST_ACTIVITY: timestamp(now)}}


def confirmed(project: Document) -> Document:
    """A project whose deletion is confirmed."""
    metadata = section(project, "metadata")
    annotations = {**section(metadata, "annotations"), CONFIRMATION: "true"}
    return {**project, "metadata": {**metadata, "annotations": annotations}}
