"""Lifecycle's settings: the common ones, and Gardener's configuration file."""

from functools import partial
from typing import Annotated

import msgspec

from gardenbus.common.api.configuration.controller_manager import LifecycleConfiguration, parse_lifecycle
from gardenbus.common.runtime.configuration_file import load_configured
from gardenbus.common.runtime.settings import CommonSettings

USAGE = "usage: python -m gardenbus.lifecycle [--config FILE] (a ControllerManagerConfiguration)"


class LifecycleSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of a lifecycle process."""

    configuration: LifecycleConfiguration = LifecycleConfiguration()
    """The configuration file's content; Gardener's defaults (10 s, 40 s, 200 s) without one."""

    fleet_metrics_seconds: Annotated[float, msgspec.Meta(ge=0.5)] = 10.0
    """Time between sums of seeds, usage and late Leases for `/metrics`: short enough for what scrapes every 15 s."""

    per_seed_metrics: bool = False
    """Use and readiness of each seed are in `/metrics` too: three series a seed, too much for thousands."""


load_settings = partial(load_configured, LifecycleSettings, parse_lifecycle, usage=USAGE)
"""Reads `--config FILE` (if given) and the environment; raises SettingsInvalid with all problems."""
