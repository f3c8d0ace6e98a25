"""Settings of a service with a configuration file: `--config FILE`, in the manner of Gardener's components."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from gardenbus.common.api.configuration.scheduler import PATH_SEPARATOR
from gardenbus.common.api.configuration.scheduler import parse_configuration as parse_scheduler
from gardenbus.common.api.garden.scheduling_profiles import SchedulingProfile
from gardenbus.common.errors import SettingsInvalid
from gardenbus.common.runtime.settings import CommonSettings, LogFormat, load

Settings = TypeVar("Settings", bound=CommonSettings)


class Configuration(Protocol):
    """Logging as every configuration file may set it; None leaves it to the environment."""

    @property
    def log_level(self) -> str | None:
        """`debug`, `info` or `error`."""
        ...

    @property
    def log_format(self) -> str | None:
        """`json` or `text`."""
        ...


def load_configured(  # noqa: PLR0913  the command line, the environment, and the differences between services
    settings_type: type[Settings],
    parse: Callable[[bytes], Configuration],
    arguments: Sequence[str] | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    usage: str,
    is_required: bool = False,
    json_format: LogFormat = "json",
) -> Settings:
    """Read the environment, and the file into the settings' `configuration`; raises SettingsInvalid with all problems.

    `arguments` and `environ` of None are the process's. logLevel and logFormat of the file apply unless the environment
    has them; `json_format` is the file's `json`.
    """
    file = configuration_file(sys.argv[1:] if arguments is None else arguments, usage=usage)
    if file is None and is_required:
        raise SettingsInvalid((usage,))
    configuration = None if file is None else parse(read_configuration(file))
    settings = load(settings_type, environ=environ)
    if configuration is None:
        return settings
    given = os.environ if environ is None else environ
    changes: dict[str, Any] = {"configuration": configuration}
    if configuration.log_level and "GARDENBUS_LOG_LEVEL" not in given:
        changes["log_level"] = configuration.log_level
    if configuration.log_format and "GARDENBUS_LOG_FORMAT" not in given:
        changes["log_format"] = "console" if configuration.log_format == "text" else json_format
    return msgspec.structs.replace(settings, **changes)


def configuration_file(arguments: Sequence[str], *, usage: str) -> Path | None:
    """Path of `--config FILE` or `--config=FILE`, None without arguments.

    Raises SettingsInvalid with `usage` for any other arguments.
    """
    match list(arguments):
        case []:
            return None
        case ["--config", file]:
            return Path(file)
        case [argument] if argument.startswith("--config="):
            return Path(argument.removeprefix("--config="))
        case _:
            raise SettingsInvalid((usage,))


def read_profiles(files: str) -> Sequence[SchedulingProfile]:
    """Read the profiles of SchedulerConfigurations, for services that decide as schedulers do.

    `files` have colons between them. Raises SettingsInvalid with all problems, each with its file.
    """
    problems: list[str] = []
    found: dict[str, SchedulingProfile] = {}
    for file in filter(None, files.split(PATH_SEPARATOR)):
        try:
            served = parse_scheduler(read_configuration(Path(file))).served
        except SettingsInvalid as error:
            problems += [f"{file}: {each.removeprefix('configuration: ')}" for each in error.problems]
            continue
        problems += [
            f"{file}: the scheduler {each.scheduler_name} is configured twice"
            for each in served
            if each.scheduler_name in found
        ]
        found |= {each.scheduler_name: each for each in served}
    if problems:
        raise SettingsInvalid(tuple(problems))
    return tuple(found.values())


def read_configuration(file: Path) -> bytes:
    """Read the file; raises SettingsInvalid with its path and the error."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise SettingsInvalid((f"--config {file}: {error.strerror or error}",)) from error
