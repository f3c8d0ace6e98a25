"""The autoscaler's settings: the common ones, and its configuration file."""

from functools import partial
from typing import Literal

from gardenbus.common.api.configuration.seed_autoscaler import AutoscalerConfiguration, parse_configuration
from gardenbus.common.runtime.configuration_file import load_configured
from gardenbus.common.runtime.settings import CommonSettings

USAGE = "usage: python -m gardenbus.autoscaler [--config FILE] (a SeedAutoscalerConfiguration)"


class AutoscalerSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of an autoscaler process."""

    configuration: AutoscalerConfiguration = AutoscalerConfiguration()
    """The configuration file's content; without one, what a HorizontalPodAutoscaler would do (15 s, 10 %, 5 min)."""

    candidate_determination_strategy: Literal["SameRegion", "MinimalDistance", "Weighted"] = "SameRegion"
    """The strategy of the schedulers for which the configuration names none."""

    scheduler_configurations: str = ""
    """SchedulerConfigurations (files, separated by colons) whose profiles decide which shoots fit a new seed."""


load_settings = partial(load_configured, AutoscalerSettings, parse_configuration, usage=USAGE)
"""Reads `--config FILE` (if given) and the environment; raises SettingsInvalid with all problems."""
