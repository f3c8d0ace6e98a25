"""What a process of member agents needs to know: what every service has, configurations, and a directory."""

from collections.abc import Mapping, Sequence

from gardenbus.common.runtime.agent_settings import AgentSettings, load_agents
from gardenbus.memberagent.decide.configuration import (
    MemberAgentConfiguration,
    check_together,
    parse_configurations,
)

USAGE = "usage: python -m gardenbus.memberagent --config FILE [--config FILE]… --state-dir DIR"


class MemberAgentSettings(AgentSettings, frozen=True, kw_only=True):
    """What a process of member agents needs to know."""

    configurations: tuple[MemberAgentConfiguration, ...] = ()
    """The clusters that this process speaks for."""

    state_dir: str = ".memberagent"
    """Where the local backend keeps the manifests; a second process with the same directory is a standby."""


def load_settings(
    arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None
) -> MemberAgentSettings:
    """Read `--config FILE` (one or several), `--state-dir DIR` and the environment.

    Raises SettingsInvalid with all problems, among them a cluster that is configured twice.
    """
    return load_agents(
        MemberAgentSettings, parse_configurations, check_together, usage=USAGE, arguments=arguments, environ=environ
    )
