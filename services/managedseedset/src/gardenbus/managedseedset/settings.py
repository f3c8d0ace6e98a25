"""The settings of managedseedset: what every service has, and Gardener's configuration file."""

import os
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Literal, cast

import msgspec

from gardenbus.common.runtime.configuration_file import configuration_file, read_configuration
from gardenbus.common.runtime.settings import CommonSettings, LogFormat, LogLevel, load
from gardenbus.managedseedset.decide.actuator import ActuatorSettings
from gardenbus.managedseedset.decide.configuration import SetConfiguration, parse_configuration

USAGE = "usage: python -m gardenbus.managedseedset [--config FILE] (a ControllerManagerConfiguration)"

Seconds = Annotated[float, msgspec.Meta(gt=0)]


class SetSettings(CommonSettings, frozen=True, kw_only=True):
    """What a managedseedset process needs to know."""

    configuration: SetConfiguration = SetConfiguration()
    """The configuration file's content; Gardener's defaults (3 retries, 30 min) without one."""

    candidate_determination_strategy: Literal["SameRegion", "MinimalDistance"] = "SameRegion"
    """The scheduler's strategy, by which the shoots of a seed that is drained find another one."""

    drain_moves: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5
    """How many shoots of a drained seed move at once: each costs both gardenlets a whole flow."""

    drain_poll_seconds: Annotated[float, msgspec.Meta(ge=1)] = 2.0
    """How often a drained seed is looked at: that a shoot has arrived elsewhere is not announced to its set."""

    blocked_poll_seconds: Annotated[float, msgspec.Meta(ge=1)] = 10.0
    """How often a set is looked at whose replicas cannot go, as nobody announces that a seed is empty."""

    intent_seconds: Seconds = 5.0
    """So long a replica that the status announces may be missing before its ordinal is given up."""

    update_deadline_seconds: Seconds = 600.0
    """An updated replica that is not well for so long has failed, and holds up the rest."""

    @property
    def actuator(self) -> ActuatorSettings:
        """What the decisions need of it."""
        return ActuatorSettings(
            max_shoot_retries=self.configuration.max_shoot_retries,
            sync_period=self.configuration.sync_period,
            blocked_period=timedelta(seconds=self.blocked_poll_seconds),
            drain_period=timedelta(seconds=self.drain_poll_seconds),
            moves_at_once=self.drain_moves,
            intent_lifetime=timedelta(seconds=self.intent_seconds),
            update_deadline=timedelta(seconds=self.update_deadline_seconds),
        )


def load_settings(arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> SetSettings:
    """Read `--config FILE` (if given) and the environment; raises SettingsInvalid with all problems.

    logLevel and logFormat of the file count where the environment says nothing.
    """
    file = configuration_file(sys.argv[1:] if arguments is None else arguments, usage=USAGE)
    configuration = SetConfiguration() if file is None else parse_configuration(read_configuration(file))
    settings = load(SetSettings, environ=environ)
    given = os.environ if environ is None else environ
    if configuration.log_level and "GARDENBUS_LOG_LEVEL" not in given:
        settings = msgspec.structs.replace(settings, log_level=cast("LogLevel", configuration.log_level))
    if configuration.log_format and "GARDENBUS_LOG_FORMAT" not in given:
        settings = msgspec.structs.replace(settings, log_format=_format(configuration.log_format))
    return msgspec.structs.replace(settings, configuration=configuration)


def _format(configured: str) -> LogFormat:
    return "console" if configured == "text" else "json"
