"""`ControllerManagerConfiguration`: the sections of seeds, shoot migrations and ManagedSeedSets.

Each service reads its own sections of `controllers`; those of others are accepted unread and listed as ignored. A field
that is left out has its default, also when others of its section are given (Gardener then makes syncPeriod 0).
Source: `pkg/apis/config/controllermanager/v1alpha1/{types,defaults}.go` of Gardener.
"""

from datetime import timedelta

import msgspec

from gardenbus.common.api.configuration import reader
from gardenbus.common.api.configuration.reader import Field, Table, ignored

API_VERSION = "controllermanager.config.gardener.cloud/v1alpha1"
KIND = "ControllerManagerConfiguration"
MONITOR_PERIODS_UNTIL_SHOOTS = 5


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


def parse_lifecycle(text: str | bytes) -> LifecycleConfiguration:
    """Read lifecycle's sections; raises SettingsInvalid with the path of everything that is wrong."""
    values = reader.read_one(text, _LIFECYCLE)
    if "monitor_period" in values:
        values.setdefault("shoot_monitor_period", MONITOR_PERIODS_UNTIL_SHOOTS * values["monitor_period"])
    return LifecycleConfiguration(**values)


def parse_managed_seed_sets(text: str | bytes) -> ManagedSeedSetConfiguration:
    """Read managedseedset's section; raises SettingsInvalid with the path of everything that is wrong."""
    return ManagedSeedSetConfiguration(**reader.read_one(text, _MANAGED_SEED_SETS))


_CONTROLLERS = (
    "bastion cacheSyncTimeout certificateSigningRequest cloudProfile controllerDeployment "
    "controllerDeploymentReference controllerRegistration credentialsBinding event exposureClass managedSeedSet "
    "namespacedCloudProfile networkPolicy project quota secretBinding seed seedBackupBucketsCheck "
    "seedExtensionsCheck seedReference shootConditions shootHibernation shootMaintenance shootMigration shootQuota "
    "shootReference shootRetry shootState shootStatusLabel"
)


def _table(controllers: Table) -> Table:
    return {
        **reader.header(API_VERSION, KIND),
        **reader.logging(),
        **ignored("gardenClientConnection", "leaderElection", "server", "debugging", "featureGates"),
        "controllers": {**ignored(*_CONTROLLERS.split()), **controllers},
    }


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
