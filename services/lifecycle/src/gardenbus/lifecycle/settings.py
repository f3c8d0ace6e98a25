"""Lifecycle's settings: what every service has, and Gardener's configuration file."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, cast

import msgspec

from gardenbus.common.runtime.configuration_file import configuration_file, read_configuration
from gardenbus.common.runtime.settings import CommonSettings, LogFormat, LogLevel, load
from gardenbus.lifecycle.decide.configuration import LifecycleConfiguration, parse_configuration

USAGE = "usage: python -m gardenbus.lifecycle [--config FILE] (a ControllerManagerConfiguration)"


class LifecycleSettings(CommonSettings, frozen=True, kw_only=True):
    """What a lifecycle process needs to know."""

    configuration: LifecycleConfiguration = LifecycleConfiguration()
    """The configuration file's content; Gardener's defaults (10 s, 40 s, 200 s) without one."""

    fleet_metrics_seconds: Annotated[float, msgspec.Meta(ge=0.5)] = 10.0
    """How often seeds, usage and late Leases are added up for `/metrics`: often enough for what scrapes every 15 s."""

    per_seed_metrics: bool = False
    """Whether `/metrics` tells use and readiness of each seed too: three series a seed, too much for thousands."""


def load_settings(
    arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None
) -> LifecycleSettings:
    """Read `--config FILE` (if given) and the environment; raises SettingsInvalid with all problems.

    logLevel and logFormat of the file count where the environment says nothing.
    """
    file = configuration_file(sys.argv[1:] if arguments is None else arguments, usage=USAGE)
    configuration = LifecycleConfiguration() if file is None else parse_configuration(read_configuration(file))
    settings = load(LifecycleSettings, environ=environ)
    given = os.environ if environ is None else environ
    if configuration.log_level and "GARDENBUS_LOG_LEVEL" not in given:
        settings = msgspec.structs.replace(settings, log_level=cast("LogLevel", configuration.log_level))
    if configuration.log_format and "GARDENBUS_LOG_FORMAT" not in given:
        settings = msgspec.structs.replace(settings, log_format=_format(configuration.log_format))
    return msgspec.structs.replace(settings, configuration=configuration)


def _format(configured: str) -> LogFormat:
    return "console" if configured == "text" else "json"
