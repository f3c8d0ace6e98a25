"""Settings of a gardenlet process: common settings, gardenlet configurations, and a state directory."""

from collections.abc import Sequence
from functools import partial

from gardenbus.agent.settings import AgentSettings, load_agent_settings
from gardenbus.common.api.configuration.gardenlet import GardenletConfiguration, parse_configurations

USAGE = "usage: python -m gardenbus.gardenlet --config FILE [--config FILE]… --state-dir DIR"


class GardenletSettings(AgentSettings, frozen=True, kw_only=True):
    """Settings of a gardenlet process."""

    configurations: tuple[GardenletConfiguration, ...] = ()
    """The gardenlets that this process hosts, one a seed."""

    state_dir: str = ".gardenlet"
    """Directory of the local backend; processes with the same directory and configuration are standbys."""


def _check_together(configurations: Sequence[GardenletConfiguration]) -> list[str]:
    names = [each.seed_name for each in configurations]
    return [f"seed {name} is configured twice" for name in sorted({n for n in names if names.count(n) > 1})]


load_settings = partial(load_agent_settings, GardenletSettings, parse_configurations, _check_together, usage=USAGE)
"""Reads `--config FILE` (one or several), `--state-dir DIR` and the environment.

Raises SettingsInvalid with all problems, among them a seed that is configured twice.
"""
