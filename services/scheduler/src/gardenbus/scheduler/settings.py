"""Settings of the scheduler: those of every service, and Gardener's configuration file."""

from functools import partial
from typing import Annotated

import msgspec

from gardenbus.common.api.configuration.scheduler import SchedulerConfiguration, parse_configuration
from gardenbus.common.runtime.configuration_file import load_configured
from gardenbus.common.runtime.settings import CommonSettings
from gardenbus.scheduling.installed_filters import load_filters

USAGE = "usage: python -m gardenbus.scheduler --config FILE (a SchedulerConfiguration)"


class SchedulerSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of one scheduler process."""

    configuration: SchedulerConfiguration = SchedulerConfiguration()
    """The configuration file's content."""

    batch_size: Annotated[int, msgspec.Meta(ge=1, le=5000)] = 500
    """Shoots per batch: enough that fetch, bind and acknowledgement are shared, few enough to be done in 10 s."""

    usage_poll_seconds: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    """Interval of reading usage; while shoots are scheduled it comes with each reply anyway."""

    backoff_base_seconds: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    """Wait after the first unschedulable result; doubled with each one more."""

    backoff_cap_seconds: Annotated[float, msgspec.Meta(gt=0)] = 300.0
    """The longest wait: a shoot that no cluster event unblocks is still tried every five minutes."""


def _parse(text: bytes) -> SchedulerConfiguration:
    return parse_configuration(text, lambda: [each.name for each in load_filters()])


load_settings = partial(load_configured, SchedulerSettings, _parse, usage=USAGE, is_required=True, json_format="auto")
"""Reads `--config FILE` (mandatory) and the environment; raises SettingsInvalid with all problems."""
