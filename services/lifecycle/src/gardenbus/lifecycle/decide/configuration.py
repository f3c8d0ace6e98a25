"""The configuration file: Gardener's `ControllerManagerConfiguration`.

Of it `controllers.seed` and `controllers.shootMigration` have an effect. A name that Gardener's schema lacks is refused
where this module reads (the top, `controllers`, and these two);
what belongs to other controllers is accepted unread and listed in `ignored`.
Source: `pkg/apis/config/controllermanager/v1alpha1/{types,defaults}.go` of Gardener.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

import msgspec
import yaml

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.resources.durations import parse_duration

API_VERSION = "controllermanager.config.gardener.cloud/v1alpha1"
KIND = "ControllerManagerConfiguration"
LOG_LEVELS = ("debug", "info", "error")
LOG_FORMATS = ("json", "text")
MONITOR_PERIODS_UNTIL_SHOOTS = 5

_HAS_NO_EFFECT_AT_TOP = frozenset({"gardenClientConnection", "leaderElection", "server", "debugging", "featureGates"})
_OTHER_CONTROLLERS = frozenset(
    {
        "bastion",
        "cacheSyncTimeout",
        "certificateSigningRequest",
        "cloudProfile",
        "controllerDeployment",
        "controllerDeploymentReference",
        "controllerRegistration",
        "credentialsBinding",
        "event",
        "exposureClass",
        "managedSeedSet",
        "namespacedCloudProfile",
        "networkPolicy",
        "project",
        "quota",
        "secretBinding",
        "seedBackupBucketsCheck",
        "seedExtensionsCheck",
        "seedReference",
        "shootConditions",
        "shootHibernation",
        "shootMaintenance",
        "shootQuota",
        "shootReference",
        "shootRetry",
        "shootState",
        "shootStatusLabel",
    }
)


class LifecycleConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """How often is looked, and how long silence is borne."""

    sync_period: timedelta = timedelta(seconds=10)
    """At the latest after this time all seeds are looked at again."""

    monitor_period: timedelta = timedelta(seconds=40)
    """A Lease counts for so long after its arrival on the bus."""

    shoot_monitor_period: timedelta = timedelta(seconds=200)
    """So long after GardenletReady turned Unknown the seed's shoots do too; five monitor periods unless given."""

    concurrent_syncs: int = 5
    """How many silent seeds are worked on at once."""

    concurrent_migrations: int = 5
    """How many shoots on their way to another seed are looked at at once (controllers.shootMigration)."""

    log_level: str | None = None
    log_format: str | None = None

    ignored: tuple[str, ...] = ()
    """Paths that were accepted and have no effect."""


def parse_configuration(text: str | bytes) -> LifecycleConfiguration:
    """Read the file's content (YAML or JSON); raises SettingsInvalid with the path of everything that is wrong."""
    try:
        loaded: object = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SettingsInvalid((f"the configuration is not YAML: {' '.join(str(error).split())[:300]}",)) from error
    if not isinstance(loaded, dict):
        raise SettingsInvalid((f"the configuration is no mapping but {type(loaded).__name__}",))
    reading = _Reading(cast("dict[str, Any]", loaded))
    configuration = reading.configuration()
    if reading.problems:
        raise SettingsInvalid(tuple(reading.problems))
    return configuration


class _Reading:
    """One pass over the file that collects all problems instead of ending at the first."""

    def __init__(self, top: Mapping[str, Any]) -> None:
        self.top = top
        self.problems: list[str] = []
        self.ignored: list[str] = []

    def configuration(self) -> LifecycleConfiguration:
        """What the file says; to be believed only when `problems` stays empty."""
        self._exactly("apiVersion", API_VERSION)
        self._exactly("kind", KIND)
        self._names(self.top, "", {"apiVersion", "kind", "controllers", "logLevel", "logFormat"}, _HAS_NO_EFFECT_AT_TOP)
        controllers = self._mapping(self.top, "controllers", "controllers")
        self._names(controllers, "controllers.", {"seed", "shootMigration"}, _OTHER_CONTROLLERS)
        seed = self._mapping(controllers, "seed", "controllers.seed")
        known = {"syncPeriod", "monitorPeriod", "shootMonitorPeriod", "concurrentSyncs"}
        self._names(seed, "controllers.seed.", known, frozenset())
        migration = self._mapping(controllers, "shootMigration", "controllers.shootMigration")
        self._names(migration, "controllers.shootMigration.", {"concurrentSyncs"}, frozenset())
        default = LifecycleConfiguration()
        monitor_period = self._duration(seed, "monitorPeriod", default.monitor_period)
        return LifecycleConfiguration(
            sync_period=self._duration(seed, "syncPeriod", default.sync_period),
            monitor_period=monitor_period,
            shoot_monitor_period=self._duration(
                seed, "shootMonitorPeriod", MONITOR_PERIODS_UNTIL_SHOOTS * monitor_period
            ),
            concurrent_syncs=self._count(seed, "seed.concurrentSyncs", default.concurrent_syncs),
            concurrent_migrations=self._count(
                migration, "shootMigration.concurrentSyncs", default.concurrent_migrations
            ),
            log_level=self._one_of("logLevel", LOG_LEVELS),
            log_format=self._one_of("logFormat", LOG_FORMATS),
            ignored=tuple(self.ignored),
        )

    def _exactly(self, name: str, expected: str) -> None:
        if self.top.get(name) != expected:
            self.problems.append(f"{name}: must be {expected!r}, is {self.top.get(name)!r}")

    def _names(self, fields: Mapping[str, Any], prefix: str, read: set[str], unread: frozenset[str]) -> None:
        for name in fields:
            if name in unread:
                self.ignored.append(f"{prefix}{name}")
            elif name not in read:
                self.problems.append(f"{prefix}{name}: no such field")

    def _mapping(self, fields: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
        value = fields.get(name)
        if value is not None and not isinstance(value, dict):
            self.problems.append(f"{path}: must be a mapping, is {value!r}")
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    def _duration(self, seed: Mapping[str, Any], name: str, default: timedelta) -> timedelta:
        value = seed.get(name)
        if value is None:
            return default
        try:
            duration = parse_duration(value)
        except ValueError as error:
            self.problems.append(f"controllers.seed.{name}: {error}")
            return default
        if duration <= timedelta():
            self.problems.append(f"controllers.seed.{name}: must be a duration above 0 such as 10s, is {value!r}")
            return default
        return duration

    def _count(self, fields: Mapping[str, Any], path: str, default: int) -> int:
        value = fields.get(path.rpartition(".")[2])
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            self.problems.append(f"controllers.{path}: must be a whole number above 0, is {value!r}")
            return default
        return value

    def _one_of(self, name: str, choices: tuple[str, ...]) -> str | None:
        value = self.top.get(name)
        if value in (None, ""):
            return None
        if value not in choices:
            self.problems.append(f"{name}: must be one of {', '.join(choices)}, is {value!r}")
        return str(value)
