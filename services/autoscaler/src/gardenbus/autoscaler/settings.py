"""The autoscaler's settings: what every service has, and its configuration file."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, cast

import msgspec

from gardenbus.autoscaler.decide.configuration import AutoscalerConfiguration, parse_configuration
from gardenbus.common.runtime.configuration_file import configuration_file, read_configuration
from gardenbus.common.runtime.settings import CommonSettings, LogFormat, LogLevel, load

USAGE = "usage: python -m gardenbus.autoscaler [--config FILE] (a SeedAutoscalerConfiguration)"


class AutoscalerSettings(CommonSettings, frozen=True, kw_only=True):
    """What an autoscaler process needs to know."""

    configuration: AutoscalerConfiguration = AutoscalerConfiguration()
    """The configuration file's content; without one, what a HorizontalPodAutoscaler would do (15 s, 10 %, 5 min)."""

    candidate_determination_strategy: Literal["SameRegion", "MinimalDistance"] = "SameRegion"
    """The strategy of the schedulers for which the configuration names none."""


def load_settings(
    arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None
) -> AutoscalerSettings:
    """Read `--config FILE` (if given) and the environment; raises SettingsInvalid with all problems.

    logLevel and logFormat of the file count where the environment says nothing.
    """
    file = configuration_file(sys.argv[1:] if arguments is None else arguments, usage=USAGE)
    configuration = AutoscalerConfiguration() if file is None else parse_configuration(read_configuration(file))
    settings = load(AutoscalerSettings, environ=environ)
    given = os.environ if environ is None else environ
    if configuration.log_level and "GARDENBUS_LOG_LEVEL" not in given:
        settings = msgspec.structs.replace(settings, log_level=cast("LogLevel", configuration.log_level))
    if configuration.log_format and "GARDENBUS_LOG_FORMAT" not in given:
        log_format: LogFormat = "console" if configuration.log_format == "text" else "json"
        settings = msgspec.structs.replace(settings, log_format=log_format)
    return msgspec.structs.replace(settings, configuration=configuration)
