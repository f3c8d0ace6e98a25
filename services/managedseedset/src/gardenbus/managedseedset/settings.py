"""Settings of managedseedset: the common ones, and Gardener's configuration file."""

from datetime import timedelta
from functools import partial
from typing import Annotated, Literal

import msgspec

from gardenbus.common.api.configuration.controller_manager import ManagedSeedSetConfiguration, parse_managed_seed_sets
from gardenbus.common.runtime.configuration_file import load_configured
from gardenbus.common.runtime.settings import CommonSettings
from gardenbus.managedseedset.domain.actuator import ActuatorSettings

USAGE = "usage: python -m gardenbus.managedseedset [--config FILE] (a ControllerManagerConfiguration)"

PositiveSeconds = Annotated[float, msgspec.Meta(gt=0)]


class ManagedSeedSetSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of a managedseedset process."""

    configuration: ManagedSeedSetConfiguration = ManagedSeedSetConfiguration()
    """The configuration file's content; Gardener's defaults (3 retries, 30 min) without one."""

    candidate_determination_strategy: Literal["SameRegion", "MinimalDistance", "Weighted"] = "SameRegion"
    """The scheduler's strategy, by which the shoots of a seed that is drained find another one."""

    scheduler_configurations: str = ""
    """SchedulerConfigurations (files, separated by colons) by whose profiles the shoots of a drained seed move.

    Without a file for its scheduler a shoot of the default scheduler moves by the strategy, and others stay."""

    drain_moves: Annotated[int, msgspec.Meta(ge=1, le=100)] = 5
    """Number of shoots of a drained seed that move at once: each costs both gardenlets a whole flow."""

    drain_poll_seconds: Annotated[float, msgspec.Meta(ge=1)] = 2.0
    """Time between looks at a drained seed: that a shoot has arrived elsewhere is not announced to its set."""

    blocked_poll_seconds: Annotated[float, msgspec.Meta(ge=1)] = 10.0
    """Time between looks at a set whose replicas cannot go, as nobody announces that a seed is empty."""

    intent_seconds: PositiveSeconds = 5.0
    """So long a replica that the status announces may be missing before its ordinal is given up."""

    update_deadline_seconds: PositiveSeconds = 600.0
    """An updated replica that is not well for so long has failed, and holds up the rest."""

    @property
    def actuator(self) -> ActuatorSettings:
        """The settings of decisions."""
        return ActuatorSettings(
            max_shoot_retries=self.configuration.max_shoot_retries,
            sync_period=self.configuration.sync_period,
            blocked_period=timedelta(seconds=self.blocked_poll_seconds),
            drain_period=timedelta(seconds=self.drain_poll_seconds),
            moves_at_once=self.drain_moves,
            intent_lifetime=timedelta(seconds=self.intent_seconds),
            update_deadline=timedelta(seconds=self.update_deadline_seconds),
        )


load_settings = partial(load_configured, ManagedSeedSetSettings, parse_managed_seed_sets, usage=USAGE)
"""Reads `--config FILE` (if given) and the environment; raises SettingsInvalid with all problems."""
