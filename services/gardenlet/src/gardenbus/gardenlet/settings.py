"""What a gardenlet process needs to know: what every service has, configurations of gardenlets, and a directory."""

from collections.abc import Mapping, Sequence

from gardenbus.common.runtime.agent_settings import AgentSettings, load_agents
from gardenbus.gardenlet.decide.configuration import GardenletConfiguration, parse_configurations

USAGE = "usage: python -m gardenbus.gardenlet --config FILE [--config FILE]… --state-dir DIR"


class GardenletSettings(AgentSettings, frozen=True, kw_only=True):
    """What a gardenlet process needs to know."""

    configurations: tuple[GardenletConfiguration, ...] = ()
    """The gardenlets that this process hosts, one a seed."""

    state_dir: str = ".gardenlet"
    """Where the local backend keeps what it built; processes with one directory and one configuration are standbys."""


def load_settings(
    arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None
) -> GardenletSettings:
    """Read `--config FILE` (one or several), `--state-dir DIR` and the environment.

    Raises SettingsInvalid with all problems, among them a seed that is configured twice.
    """
    return load_agents(
        GardenletSettings, parse_configurations, _check_together, usage=USAGE, arguments=arguments, environ=environ
    )


def _check_together(configurations: Sequence[GardenletConfiguration]) -> list[str]:
    names = [each.seed_name for each in configurations]
    return [f"seed {name} is configured twice" for name in sorted({n for n in names if names.count(n) > 1})]
