"""`SeedAutoscalerConfiguration`, ours in the form of Gardener's component configurations.

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

from datetime import timedelta
from fractions import Fraction
from typing import Any

import msgspec

from gardenbus.common.api.configuration import reader
from gardenbus.common.api.configuration.reader import Entries, Field, Table
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER
from gardenbus.common.api.garden.strategies import STRATEGIES
from gardenbus.common.api.quantities import parse_quantity

API_VERSION = "seedautoscaler.config.gardener.cloud/v1alpha1"
KIND = "SeedAutoscalerConfiguration"


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """Defaults of `spec.behavior` for all SeedAutoscalers of a landscape."""

    tolerance: Fraction = Fraction(1, 10)
    """Deviation from the target, as a part of it, that changes nothing."""

    downscale_stabilization: timedelta = timedelta(minutes=5)
    """Window whose highest recommendation a set shrinks to."""


class SchedulerReference(msgspec.Struct, frozen=True):
    """A scheduler whose unschedulable shoots count as demand, and its strategy; "" is what the settings say."""

    scheduler_name: str = DEFAULT_SCHEDULER
    strategy: str = ""


class AutoscalerConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """Sync period, parallelism, and defaults of SeedAutoscalers."""

    sync_period: timedelta = timedelta(seconds=15)
    """Longest time between two reconciles of an autoscaler; that of Kubernetes' HorizontalPodAutoscaler."""

    concurrent_syncs: int = 5
    """Autoscalers that are reconciled at once."""

    pace: Pace = Pace()
    schedulers: tuple[SchedulerReference, ...] = (SchedulerReference(),)
    """Schedulers whose unschedulable shoots count."""

    log_level: str | None = None
    log_format: str | None = None


def parse_configuration(text: str | bytes) -> AutoscalerConfiguration:
    """Read the file's content (YAML or JSON); raises SettingsInvalid with the path of everything that is wrong."""
    values = reader.read_one(text, _TABLE)
    del values["ignored"]
    values["pace"] = Pace(**values.get("pace", {}))
    return AutoscalerConfiguration(**values)


def _tolerance(value: Any) -> Fraction:
    try:
        tolerance = parse_quantity(value)
    except (ValueError, TypeError):
        tolerance = Fraction(-1)
    if not 0 <= tolerance < 1:
        raise ValueError(f"must be a number from 0 to below 1, is {value!r}")
    return tolerance


_SCHEDULER: Table = {
    "schedulerName": Field("scheduler_name", reader.name),
    "candidateDeterminationStrategy": Field("strategy", reader.one_of(*STRATEGIES)),
}
_TABLE: Table = {
    **reader.header(API_VERSION, KIND),
    **reader.logging(),
    "controllers": {
        "seedAutoscaler": {
            "syncPeriod": Field("sync_period", reader.duration_from(timedelta(seconds=1))),
            "concurrentSyncs": Field("concurrent_syncs", reader.count),
            "tolerance": Field("pace.tolerance", _tolerance),
            "downscaleStabilization": Field("pace.downscale_stabilization", reader.duration_from(timedelta())),
            "schedulers": Entries("schedulers", _SCHEDULER, SchedulerReference, "schedulers"),
        },
    },
}
