"""Settings of a process that hosts several agents: one or several configuration files, and a state directory."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

import msgspec

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.configuration_file import read_configuration
from gardenbus.common.runtime.settings import CommonSettings, load

ConfigurationT = TypeVar("ConfigurationT")
ParsedT_co = TypeVar("ParsedT_co", covariant=True)
AgentSettingsT = TypeVar("AgentSettingsT", bound="AgentSettings")


class AgentSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of such a process; subclasses add `configurations`, a tuple of their own kind."""

    state_dir: str = ""
    """Directory of the agents' state."""

    shared_connection: bool = False
    """All agents use the process's connection, whatever credentials lie in their directories."""


class ConfigurationParser(Protocol[ParsedT_co]):
    """Parser of a file's content. Raises SettingsInvalid with the problems of each document."""

    def __call__(self, text: bytes, /, *, source: str) -> Sequence[ParsedT_co]:
        """`source` is the file's name."""
        ...


class _ArgumentParser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsInvalid((message, self.usage or ""))


def load_agent_settings(
    settings_type: type[AgentSettingsT],
    parse: ConfigurationParser[ConfigurationT],
    check_together: Callable[[Sequence[ConfigurationT]], Sequence[str]],
    arguments: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    usage: str,
) -> AgentSettingsT:
    """Read `--config FILE` (one or several), `--state-dir DIR` and the environment.

    `arguments` and `environ` of None are the process's. Raises SettingsInvalid with all problems, among them what
    `check_together` finds in the configurations as a whole.
    """
    parser = _ArgumentParser(add_help=False, usage=usage)
    parser.add_argument("--config", action="append", required=True)
    parser.add_argument("--state-dir")
    given = parser.parse_args(sys.argv[1:] if arguments is None else list(arguments))
    problems: list[str] = []
    configurations: list[ConfigurationT] = []
    for name in given.config:
        try:
            configurations += parse(read_configuration(Path(name)), source=name)
        except SettingsInvalid as error:
            problems += error.problems
    problems += check_together(configurations)
    settings: AgentSettingsT | None = None
    try:
        settings = load(settings_type, environ=environ)
    except SettingsInvalid as error:
        problems += error.problems
    if problems or settings is None:
        raise SettingsInvalid(tuple(problems))
    return msgspec.structs.replace(
        settings, configurations=tuple(configurations), state_dir=given.state_dir or settings.state_dir
    )
