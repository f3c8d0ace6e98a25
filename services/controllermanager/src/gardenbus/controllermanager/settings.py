"""Settings of controllermanager: the common ones, and Gardener's configuration file."""

from functools import partial

from gardenbus.common.api.configuration.controller_manager import (
    ControllerManagerConfiguration,
    parse_controller_manager,
)
from gardenbus.common.runtime.configuration_file import load_configured
from gardenbus.common.runtime.settings import CommonSettings

USAGE = "usage: python -m gardenbus.controllermanager [--config FILE] (a ControllerManagerConfiguration)"


class ControllerManagerSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of a controllermanager process."""

    configuration: ControllerManagerConfiguration = ControllerManagerConfiguration()
    """The configuration file's content; Gardener's defaults without one."""


load_settings = partial(load_configured, ControllerManagerSettings, parse_controller_manager, usage=USAGE)
"""Reads `--config FILE` (if given) and the environment; raises SettingsInvalid with all problems."""
