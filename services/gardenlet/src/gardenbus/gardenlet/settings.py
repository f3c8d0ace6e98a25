"""What a gardenlet process needs to know: what every service has, configurations of gardenlets, and a directory."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import msgspec

from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.settings import CommonSettings, load
from gardenbus.gardenlet.decide.configuration import GardenletConfiguration, parse_configurations

USAGE = "usage: python -m gardenbus.gardenlet --config FILE [--config FILE]… --state-dir DIR"


class GardenletSettings(CommonSettings, frozen=True, kw_only=True):
    """What a gardenlet process needs to know."""

    configurations: tuple[GardenletConfiguration, ...] = ()
    """The gardenlets that this process hosts, one a seed."""

    state_dir: str = ".gardenlet"
    """Where the local backend keeps what it built; processes with one directory and one configuration are standbys."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsInvalid((message, USAGE))


def load_settings(
    arguments: Sequence[str] | None = None, environ: Mapping[str, str] | None = None
) -> GardenletSettings:
    """Read `--config FILE` (one or several), `--state-dir DIR` and the environment.

    Raises SettingsInvalid with all problems, among them a seed that is configured twice.
    """
    parser = _Parser(add_help=False, usage=USAGE)
    parser.add_argument("--config", action="append", required=True)
    parser.add_argument("--state-dir")
    given = parser.parse_args(sys.argv[1:] if arguments is None else list(arguments))
    problems: list[str] = []
    configurations: list[GardenletConfiguration] = []
    for name in given.config:
        try:
            configurations += parse_configurations(_content(Path(name)), source=name)
        except SettingsInvalid as error:
            problems += error.problems
    names = [each.seed_name for each in configurations]
    problems += [f"seed {name} is configured twice" for name in sorted({n for n in names if names.count(n) > 1})]
    settings: GardenletSettings | None = None
    try:
        settings = load(GardenletSettings, environ=environ)
    except SettingsInvalid as error:
        problems += error.problems
    if problems or settings is None:
        raise SettingsInvalid(tuple(problems))
    return msgspec.structs.replace(
        settings, configurations=tuple(configurations), state_dir=given.state_dir or settings.state_dir
    )


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise SettingsInvalid((f"--config {file}: {error.strerror or error}",)) from error
