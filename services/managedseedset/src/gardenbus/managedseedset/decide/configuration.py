"""The configuration file: of Gardener's `ControllerManagerConfiguration` `controllers.managedSeedSet` has an effect.

A name that Gardener's schema lacks is refused where this module reads (the top, `controllers` and
`controllers.managedSeedSet`); what belongs to other controllers is accepted unread and listed in `ignored`. A field
that is left out has its default, also when others of its section are given (Gardener then makes syncPeriod 0).
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
_PATH = "controllers.managedSeedSet"
LOG_LEVELS = ("debug", "info", "error")
LOG_FORMATS = ("json", "text")

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
        "namespacedCloudProfile",
        "networkPolicy",
        "project",
        "quota",
        "secretBinding",
        "seed",
        "seedBackupBucketsCheck",
        "seedExtensionsCheck",
        "seedReference",
        "shootConditions",
        "shootHibernation",
        "shootMaintenance",
        "shootMigration",
        "shootQuota",
        "shootReference",
        "shootRetry",
        "shootState",
        "shootStatusLabel",
    }
)


class SetConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """How sets are looked at."""

    sync_period: timedelta = timedelta(minutes=30)
    """At the latest after this time a set is looked at again."""

    max_shoot_retries: int = 3
    """How often a Shoot's failed operation is asked to go on, until the Shoot or the set changes."""

    concurrent_syncs: int = 5
    """How many sets are looked at at once."""

    log_level: str | None = None
    log_format: str | None = None

    ignored: tuple[str, ...] = ()
    """Paths that were accepted and have no effect."""


def parse_configuration(text: str | bytes) -> SetConfiguration:
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

    def configuration(self) -> SetConfiguration:
        """What the file says; to be believed only when `problems` stays empty."""
        self._exactly("apiVersion", API_VERSION)
        self._exactly("kind", KIND)
        self._names(self.top, "", {"apiVersion", "kind", "controllers", "logLevel", "logFormat"}, _HAS_NO_EFFECT_AT_TOP)
        controllers = self._mapping(self.top, "controllers", "controllers")
        self._names(controllers, "controllers.", {"managedSeedSet"}, _OTHER_CONTROLLERS)
        sets = self._mapping(controllers, "managedSeedSet", _PATH)
        self._names(sets, f"{_PATH}.", {"syncPeriod", "maxShootRetries", "concurrentSyncs"}, frozenset())
        default = SetConfiguration()
        return SetConfiguration(
            sync_period=self._duration(sets, "syncPeriod", default.sync_period),
            max_shoot_retries=self._count(sets, "maxShootRetries", default.max_shoot_retries, least=0),
            concurrent_syncs=self._count(sets, "concurrentSyncs", default.concurrent_syncs),
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

    def _duration(self, sets: Mapping[str, Any], name: str, default: timedelta) -> timedelta:
        value = sets.get(name)
        if value is None:
            return default
        try:
            duration = parse_duration(value)
        except ValueError as error:
            self.problems.append(f"{_PATH}.{name}: {error}")
            return default
        if duration <= timedelta():
            self.problems.append(f"{_PATH}.{name}: must be a duration above 0 such as 10s, is {value!r}")
            return default
        return duration

    def _count(self, sets: Mapping[str, Any], name: str, default: int, *, least: int = 1) -> int:
        value = sets.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.problems.append(f"{_PATH}.{name}: must be a whole number, at least {least}, is {value!r}")
            return default
        return value

    def _one_of(self, name: str, choices: tuple[str, ...]) -> str | None:
        value = self.top.get(name)
        if value in (None, ""):
            return None
        if value not in choices:
            self.problems.append(f"{name}: must be one of {', '.join(choices)}, is {value!r}")
        return str(value)
