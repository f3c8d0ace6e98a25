"""The scheduler's settings: what every service has, and Gardener's configuration file."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, cast

import msgspec

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.configuration_file import configuration_file, read_configuration
from gardenbus.common.runtime.settings import CommonSettings, LogFormat, LogLevel, load
from gardenbus.scheduler.decide.configuration import SchedulerConfiguration, parse_configuration

USAGE = "usage: python -m gardenbus.scheduler --config FILE (a SchedulerConfiguration)"


class SchedulerSettings(CommonSettings, frozen=True, kw_only=True):
    """What a scheduler process needs to know."""

    configuration: SchedulerConfiguration = SchedulerConfiguration()
    """The configuration file's content."""

    batch_size: Annotated[int, msgspec.Meta(ge=1, le=5000)] = 500
    """Shoots taken at once: enough that fetch, bind and acknowledgement are shared, few enough to be done in 10 s."""

    usage_poll_seconds: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    """How often usage is asked for; while work flows it comes with each reply anyway."""

    backoff_base_seconds: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    """Wait after the first refusal; doubled with each one more."""

    backoff_cap_seconds: Annotated[float, msgspec.Meta(gt=0)] = 300.0
    """The longest wait: what nothing wakes is still looked at every five minutes."""


def load_settings(
    arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None
) -> SchedulerSettings:
    """Read `--config FILE` (mandatory) and the environment; raises SettingsInvalid with all problems."""
    file = configuration_file(sys.argv[1:] if arguments is None else arguments, usage=USAGE)
    if file is None:
        raise SettingsInvalid((USAGE,))
    configuration = parse_configuration(read_configuration(file))
    settings = load(SchedulerSettings, environ=environ)
    given = os.environ if environ is None else environ
    return msgspec.structs.replace(
        settings,
        configuration=configuration,
        log_level=settings.log_level if "GARDENBUS_LOG_LEVEL" in given else cast("LogLevel", configuration.log_level),
        log_format=settings.log_format if "GARDENBUS_LOG_FORMAT" in given else _format(configuration.log_format),
    )


def _format(configured: str) -> LogFormat:
    return "console" if configured == "text" else "auto"
