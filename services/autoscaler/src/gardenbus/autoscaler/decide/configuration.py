"""The configuration file, `SeedAutoscalerConfiguration`. Gardener has none; it is written as its components' are.

apiVersion: seedautoscaler.config.gardener.cloud/v1alpha1
kind: SeedAutoscalerConfiguration
controllers:
  seedAutoscaler:
    syncPeriod: 15s
    concurrentSyncs: 5
    tolerance: 0.1
    downscaleStabilization: 5m
    schedulers:
    - schedulerName: default-scheduler
      candidateDeterminationStrategy: SameRegion
logLevel: info
logFormat: json
"""

from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from typing import Any, cast

import msgspec
import yaml

from gardenbus.autoscaler.decide.autoscaling import Pace
from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.resources.durations import parse_duration
from gardenbus.common.resources.quantities import parse_quantity
from gardenbus.common.resources.shoots import DEFAULT_SCHEDULER
from gardenbus.scheduling.landscape import STRATEGIES

API_VERSION = "seedautoscaler.config.gardener.cloud/v1alpha1"
KIND = "SeedAutoscalerConfiguration"
LOG_LEVELS = ("debug", "info", "error")
LOG_FORMATS = ("json", "text")
_SHORTEST_SYNC = timedelta(seconds=1)
_LARGEST_TOLERANCE = 1


class SchedulerChoice(msgspec.Struct, frozen=True):
    """A scheduler whose waiting shoots count as demand, and its strategy; "" is what the settings say."""

    scheduler_name: str = DEFAULT_SCHEDULER
    strategy: str = ""


class AutoscalerConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """How often is looked, and what holds where a SeedAutoscaler does not say otherwise."""

    sync_period: timedelta = timedelta(seconds=15)
    """At the latest after this time each autoscaler looks again; as Kubernetes' HorizontalPodAutoscaler does."""

    concurrent_syncs: int = 5
    """How many autoscalers are looked at at once."""

    pace: Pace = Pace()
    """Tolerance and the window down."""

    schedulers: tuple[SchedulerChoice, ...] = (SchedulerChoice(),)
    """Whose waiting shoots count."""

    log_level: str | None = None
    log_format: str | None = None


def parse_configuration(text: str | bytes) -> AutoscalerConfiguration:
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

    def configuration(self) -> AutoscalerConfiguration:
        """What the file says; to be believed only when `problems` stays empty."""
        for name, expected in (("apiVersion", API_VERSION), ("kind", KIND)):
            if self.top.get(name) != expected:
                self.problems.append(f"{name}: must be {expected!r}, is {self.top.get(name)!r}")
        self._names(self.top, "", {"apiVersion", "kind", "controllers", "logLevel", "logFormat"})
        controllers = self._mapping(self.top, "controllers", "controllers")
        self._names(controllers, "controllers.", {"seedAutoscaler"})
        path = "controllers.seedAutoscaler"
        own = self._mapping(controllers, "seedAutoscaler", path)
        known = {"syncPeriod", "concurrentSyncs", "tolerance", "downscaleStabilization", "schedulers"}
        self._names(own, f"{path}.", known)
        default = AutoscalerConfiguration()
        return AutoscalerConfiguration(
            sync_period=self._duration(own, f"{path}.syncPeriod", default.sync_period, least=_SHORTEST_SYNC),
            concurrent_syncs=self._count(own, f"{path}.concurrentSyncs", default.concurrent_syncs),
            pace=Pace(
                tolerance=self._tolerance(own, f"{path}.tolerance", default.pace.tolerance),
                downscale_stabilization=self._duration(
                    own, f"{path}.downscaleStabilization", default.pace.downscale_stabilization, least=timedelta()
                ),
            ),
            schedulers=self._schedulers(own, f"{path}.schedulers") or default.schedulers,
            log_level=self._one_of(self.top, "logLevel", LOG_LEVELS),
            log_format=self._one_of(self.top, "logFormat", LOG_FORMATS),
        )

    def _names(self, fields: Mapping[str, Any], prefix: str, known: set[str]) -> None:
        self.problems += [f"{prefix}{name}: no such field" for name in fields if name not in known]

    def _mapping(self, fields: Mapping[str, Any], name: str, path: str) -> Mapping[str, Any]:
        value = fields.get(name)
        if value is not None and not isinstance(value, dict):
            self.problems.append(f"{path}: must be a mapping, is {value!r}")
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}

    def _duration(self, fields: Mapping[str, Any], path: str, default: timedelta, *, least: timedelta) -> timedelta:
        value = fields.get(path.rpartition(".")[2])
        if value is None:
            return default
        try:
            duration = parse_duration(value)
        except ValueError as error:
            self.problems.append(f"{path}: {error}")
            return default
        if duration < least:
            self.problems.append(f"{path}: must not be below {least.total_seconds():g}s, is {value!r}")
        return duration

    def _count(self, fields: Mapping[str, Any], path: str, default: int) -> int:
        value = fields.get(path.rpartition(".")[2])
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
            self.problems.append(f"{path}: must be a whole number above 0, is {value!r}")
            return default
        return value

    def _tolerance(self, fields: Mapping[str, Any], path: str, default: Fraction) -> Fraction:
        value = fields.get("tolerance")
        if value is None:
            return default
        try:
            tolerance = parse_quantity(cast("str | float", value))
        except (ValueError, TypeError):
            tolerance = Fraction(-1)
        if not 0 <= tolerance < _LARGEST_TOLERANCE:
            self.problems.append(f"{path}: must be a number from 0 to below 1, is {value!r}")
            return default
        return tolerance

    def _schedulers(self, fields: Mapping[str, Any], path: str) -> tuple[SchedulerChoice, ...]:
        value = fields.get("schedulers")
        if value is None:
            return ()
        if not isinstance(value, list) or not value:
            self.problems.append(f"{path}: must be a list of schedulers, is {value!r}")
            return ()
        return tuple(
            self._scheduler(entry, f"{path}[{number}]") for number, entry in enumerate(cast("list[Any]", value))
        )

    def _scheduler(self, entry: Any, path: str) -> SchedulerChoice:
        fields = self._mapping({"": entry}, "", path)
        self._names(fields, f"{path}.", {"schedulerName", "candidateDeterminationStrategy"})
        name = fields.get("schedulerName", DEFAULT_SCHEDULER)
        if not isinstance(name, str) or not name:
            self.problems.append(f"{path}.schedulerName: must be a text, is {name!r}")
            name = DEFAULT_SCHEDULER
        strategy = self._one_of(fields, "candidateDeterminationStrategy", STRATEGIES, f"{path}.")
        return SchedulerChoice(name, strategy or "")

    def _one_of(self, fields: Mapping[str, Any], name: str, choices: tuple[str, ...], prefix: str = "") -> str | None:
        value = fields.get(name)
        if value in (None, ""):
            return None
        if value not in choices:
            self.problems.append(f"{prefix}{name}: must be one of {', '.join(choices)}, is {value!r}")
        return str(value)
