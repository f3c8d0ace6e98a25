"""Settings of a process of member agents: common settings, configurations, and a state directory."""

from functools import partial

from gardenbus.agent.settings import AgentSettings, load_agent_settings
from gardenbus.common.api.configuration.member_agent import (
    MemberAgentConfiguration,
    check_together,
    parse_configurations,
)

USAGE = "usage: python -m gardenbus.memberagent --config FILE [--config FILE]… --state-dir DIR"


class MemberAgentSettings(AgentSettings, frozen=True, kw_only=True):
    """Settings of a process of member agents."""

    configurations: tuple[MemberAgentConfiguration, ...] = ()
    """Configurations of the clusters of this process."""

    state_dir: str = ".memberagent"
    """Directory of the local backend; a second process with the same directory is a standby."""


load_settings = partial(load_agent_settings, MemberAgentSettings, parse_configurations, check_together, usage=USAGE)
"""Reads `--config FILE` (one or several), `--state-dir DIR` and the environment.

Raises SettingsInvalid with all problems, among them a cluster that is configured twice.
"""
