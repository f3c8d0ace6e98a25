"""What a process of member agents needs to know: what every service has, configurations, and a directory."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.configuration_file import read_configuration
from gardenbus.common.runtime.settings import CommonSettings, load
from gardenbus.memberagent.decide.configuration import (
    MemberAgentConfiguration,
    check_together,
    parse_configurations,
)

USAGE = "usage: python -m gardenbus.memberagent --config FILE [--config FILE]… --state-dir DIR"


class MemberAgentSettings(CommonSettings, frozen=True, kw_only=True):
    """What a process of member agents needs to know."""

    configurations: tuple[MemberAgentConfiguration, ...] = ()
    """The clusters that this process speaks for."""

    state_dir: str = ".memberagent"
    """Where the local backend keeps the manifests; a second process with the same directory is a standby."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsInvalid((message, USAGE))


def load_settings(
    arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None
) -> MemberAgentSettings:
    """Read `--config FILE` (one or several), `--state-dir DIR` and the environment.

    Raises SettingsInvalid with all problems, among them a cluster that is configured twice.
    """
    parser = _Parser(add_help=False, usage=USAGE)
    parser.add_argument("--config", action="append", required=True)
    parser.add_argument("--state-dir")
    given = parser.parse_args(sys.argv[1:] if arguments is None else list(arguments))
    problems: list[str] = []
    configurations: list[MemberAgentConfiguration] = []
    for name in given.config:
        try:
            configurations += parse_configurations(read_configuration(Path(name)), source=name)
        except SettingsInvalid as error:
            problems += error.problems
    problems += check_together(configurations)
    settings: MemberAgentSettings | None = None
    try:
        settings = load(MemberAgentSettings, environ=environ)
    except SettingsInvalid as error:
        problems += error.problems
    if problems or settings is None:
        raise SettingsInvalid(tuple(problems))
    return msgspec.structs.replace(
        settings, configurations=tuple(configurations), state_dir=given.state_dir or settings.state_dir
    )
