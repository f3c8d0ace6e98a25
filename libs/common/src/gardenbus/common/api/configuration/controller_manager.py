"""`ControllerManagerConfiguration`: lifecycle, managedseedset and controllermanager read one file.

Each service reads its own sections of `controllers` and accepts those of the others unread; sections that no service
reads are listed as ignored. A field that is left out has its default, also when others of its section are given
(Gardener then makes syncPeriod 0).
Source: `pkg/apis/config/controllermanager/v1alpha1/{types,defaults}.go` of Gardener.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, cast

import msgspec

from gardenbus.common.api.configuration import reader, shoot_controllers
from gardenbus.common.api.configuration.reader import ACCEPTED, Entries, Field, Table, ignored
from gardenbus.common.api.configuration.shoot_controllers import (
    BastionConfiguration,
    PlantConfiguration,
    ShootHibernationConfiguration,
    ShootMaintenanceConfiguration,
    ShootQuotaConfiguration,
    ShootReferenceConfiguration,
    ShootRetryConfiguration,
)
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.quantities import parse_quantity
from gardenbus.common.api.selectors import LabelSelector, parse_selector

API_VERSION = "controllermanager.config.gardener.cloud/v1alpha1"
KIND = "ControllerManagerConfiguration"
MONITOR_PERIODS_UNTIL_SHOOTS = 5
DEFAULT_CONCURRENT_SYNCS = 5


class LifecycleConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers.seed` and `controllers.shootMigration`."""

    sync_period: timedelta = timedelta(seconds=10)
    """Longest time between two reconciles of all seeds."""

    monitor_period: timedelta = timedelta(seconds=40)
    """Time that a Lease is valid after its arrival on the bus."""

    shoot_monitor_period: timedelta = timedelta(seconds=200)
    """Time from GardenletReady turning Unknown until the seed's shoots do too; five monitor periods unless given."""

    concurrent_syncs: int = 5
    """Seeds without a valid Lease that are reconciled at once."""

    concurrent_migrations: int = 5
    """Migrating shoots that are reconciled at once (controllers.shootMigration)."""

    log_level: str | None = None
    log_format: str | None = None
    ignored: tuple[str, ...] = ()
    """Paths of fields that were accepted and have no effect."""


class ManagedSeedSetConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers.managedSeedSet`."""

    sync_period: timedelta = timedelta(minutes=30)
    """Longest time between two reconciles of a set."""

    max_shoot_retries: int = 3
    """Retries of a Shoot's failed operation, until the Shoot or the set changes."""

    concurrent_syncs: int = 5
    """Sets that are reconciled at once."""

    log_level: str | None = None
    log_format: str | None = None
    ignored: tuple[str, ...] = ()
    """Paths of fields that were accepted and have no effect."""


class ProjectQuota(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of `controllers.project.quotas`: the ResourceQuota of projects with some labels."""

    config: Document = {}
    """The ResourceQuota: labels and annotations in `metadata`, quantities in `spec.hard`."""

    project_selector: LabelSelector = LabelSelector()


class ProjectControllerConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers.project`."""

    concurrent_syncs: int = 5
    """Projects that are reconciled at once."""

    minimum_lifetime_days: int = 30
    """Age, and time since the last activity, before which a project is not stale."""

    stale_grace_period_days: int = 14
    """Time that a project is stale before its deletion is scheduled."""

    stale_expiration_time_days: int = 90
    """Time that a project is stale before it is deleted."""

    stale_sync_period: timedelta = timedelta(hours=12)
    """Time between two checks whether a project is stale."""

    quotas: tuple[ProjectQuota, ...] | None = None
    """ResourceQuotas of projects; the first that matches a project is its own. None: each new project gets the default
    one, which is no longer reconciled once the project is ready."""


class EventConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """`controllers.event`: without this section Events live as long as the stream keeps them."""

    ttl_non_shoot_events: timedelta = timedelta(hours=1)
    """Life of Events that are not about Shoots."""


class ControllerManagerConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """The sections that controllermanager reads."""

    project: ProjectControllerConfiguration = ProjectControllerConfiguration()
    shoot_hibernation: ShootHibernationConfiguration = ShootHibernationConfiguration()
    shoot_maintenance: ShootMaintenanceConfiguration = ShootMaintenanceConfiguration()
    shoot_quota: ShootQuotaConfiguration = ShootQuotaConfiguration()
    shoot_reference: ShootReferenceConfiguration = ShootReferenceConfiguration()
    shoot_retry: ShootRetryConfiguration = ShootRetryConfiguration()
    bastion: BastionConfiguration = BastionConfiguration()
    plant: PlantConfiguration = PlantConfiguration()
    event: EventConfiguration | None = None
    """None: Events live as long as the stream keeps them."""

    concurrent_syncs: Mapping[str, int] = {}
    """Of the sections that have nothing else, in lower case: objects that are reconciled at once."""

    log_level: str | None = None
    log_format: str | None = None
    ignored: tuple[str, ...] = ()
    """Paths of fields that were accepted and have no effect."""

    def workers(self, section: str) -> int:
        """Objects that are reconciled at once, by a section of those."""
        return self.concurrent_syncs.get(section, DEFAULT_CONCURRENT_SYNCS)


def parse_controller_manager(text: str | bytes) -> ControllerManagerConfiguration:
    """Read controllermanager's sections; raises SettingsInvalid with the path of everything that is wrong."""
    values = reader.read_one(text, _CONTROLLER_MANAGER)
    sections = {name: make(**values.pop(name)) for name, make in _SECTION_TYPES.items() if name in values}
    return ControllerManagerConfiguration(**values, **sections)


def parse_lifecycle(text: str | bytes) -> LifecycleConfiguration:
    """Read lifecycle's sections; raises SettingsInvalid with the path of everything that is wrong."""
    values = reader.read_one(text, _LIFECYCLE)
    if "monitor_period" in values:
        values.setdefault("shoot_monitor_period", MONITOR_PERIODS_UNTIL_SHOOTS * values["monitor_period"])
    return LifecycleConfiguration(**values)


def parse_managed_seed_sets(text: str | bytes) -> ManagedSeedSetConfiguration:
    """Read managedseedset's section; raises SettingsInvalid with the path of everything that is wrong."""
    return ManagedSeedSetConfiguration(**reader.read_one(text, _MANAGED_SEED_SETS))


_UNREAD = (
    "cacheSyncTimeout certificateSigningRequest controllerDeployment controllerDeploymentReference "
    "networkPolicy seedBackupBucketsCheck "
    "shootConditions shootState shootStatusLabel"
)
"""Sections that no service reads."""

_COUNTED = (
    *("cloudProfile", "namespacedCloudProfile", "exposureClass", "quota", "secretBinding", "credentialsBinding"),
    *("seedReference", "controllerRegistration"),
)
"""Sections that have nothing but `concurrentSyncs`."""

_READ = (
    "seedExtensionsCheck",
    "seed",
    "shootMigration",
    "managedSeedSet",
    "project",
    "event",
    *_COUNTED,
    *shoot_controllers.TABLE,
)
"""Sections that one of the services reads."""


def _table(controllers: Table) -> Table:
    return {
        **reader.header(API_VERSION, KIND),
        **reader.logging(),
        **ignored("gardenClientConnection", "leaderElection", "server", "debugging", "featureGates"),
        "controllers": {**ignored(*_UNREAD.split()), **dict.fromkeys(_READ, ACCEPTED), **controllers},
    }


def _resource_quota(value: Any) -> Document:
    """A ResourceQuota with quantities. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError(f"must be a ResourceQuota, is {value!r}")  # noqa: TRY004  a reader's parser
    quota = cast("Document", value)
    hard: Any = section(quota, "spec").get("hard")
    if not isinstance(hard, dict) or not hard:
        raise ValueError("must be a ResourceQuota with spec.hard, such as {count/shoots.core.gardener.cloud: 100}")
    for name, quantity in cast("Document", hard).items():
        try:
            parse_quantity(quantity)
        except ValueError as error:
            raise ValueError(f"spec.hard[{name}]: {error}") from error
    return quota


def _selector(value: Any) -> LabelSelector:
    if not isinstance(value, dict):
        raise ValueError(f"must be a label selector, is {value!r}")  # noqa: TRY004  a reader's parser
    return parse_selector(cast("Document", value))


_EVENT: Table = {
    "concurrentSyncs": Field(parse=reader.count),  # Events are removed by ranges
    "ttlNonShootEvents": Field("ttl_non_shoot_events", reader.positive_duration),
}


def _event(value: Any) -> EventConfiguration:
    """The section `event`, which acts also when it is empty. Raises ValueError."""
    reading = reader.read(value, _EVENT)
    if reading.problems:
        raise ValueError("; ".join(reading.problems))
    return EventConfiguration(**reading.values)


_SECTION_TYPES: Mapping[str, Callable[..., Any]] = {
    "project": ProjectControllerConfiguration,
    **shoot_controllers.SECTION_TYPES,
}
"""The sections of ControllerManagerConfiguration, by attribute."""

_CONTROLLER_MANAGER = _table(
    {
        **shoot_controllers.TABLE,
        "event": Field("event", _event),
        "seedExtensionsCheck": {
            **ignored("syncPeriod", "conditionThresholds"),
            "concurrentSyncs": Field("concurrent_syncs.seedextensionscheck", reader.count),
        },
        **{
            section: {"concurrentSyncs": Field(f"concurrent_syncs.{section.lower()}", reader.count)}
            for section in _COUNTED
        },
        "project": {
            "concurrentSyncs": Field("project.concurrent_syncs", reader.count),
            "minimumLifetimeDays": Field("project.minimum_lifetime_days", reader.days_or_zero),
            "staleGracePeriodDays": Field("project.stale_grace_period_days", reader.days_or_zero),
            "staleExpirationTimeDays": Field("project.stale_expiration_time_days", reader.days_or_zero),
            "staleSyncPeriod": Field("project.stale_sync_period", reader.positive_duration),
            "quotas": Entries(
                "project.quotas",
                {
                    "config": Field("config", _resource_quota, is_required=True),
                    "projectSelector": Field("project_selector", _selector),
                },
                ProjectQuota,
                "quotas",
                may_be_empty=True,
            ),
        },
    }
)
_LIFECYCLE = _table(
    {
        "seed": {
            "syncPeriod": Field("sync_period", reader.positive_duration),
            "monitorPeriod": Field("monitor_period", reader.positive_duration),
            "shootMonitorPeriod": Field("shoot_monitor_period", reader.positive_duration),
            "concurrentSyncs": Field("concurrent_syncs", reader.count),
        },
        "shootMigration": {"concurrentSyncs": Field("concurrent_migrations", reader.count)},
    }
)
_MANAGED_SEED_SETS = _table(
    {
        "managedSeedSet": {
            "syncPeriod": Field("sync_period", reader.positive_duration),
            "maxShootRetries": Field("max_shoot_retries", reader.count_or_zero),
            "concurrentSyncs": Field("concurrent_syncs", reader.count),
        },
    }
)
