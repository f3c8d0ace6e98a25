"""`backend.options` of the backend `exec`."""

import shlex

import msgspec

from gardenbus.common.api.configuration.failure_injection import SHOOT_STEPS
from gardenbus.common.api.document import Document
from gardenbus.common.errors import SettingsInvalid
from gardenbus.gardenlet.backend.outside_maker import HEALTH

DEFAULT = "default"
"""Name of the command for all steps that have none of their own."""


class ExecSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Commands, and how they are run."""

    commands: dict[str, str | list[str]]
    """Command of each step, `health` and `default`; a text is split into words as a shell does, but no shell is run."""

    timeout_seconds: float = 600.0
    """Time after which a command is ended."""

    kill_after_seconds: float = 5.0
    """Time between SIGTERM and SIGKILL."""

    environment: tuple[str, ...] = ("HOME", "LANG", "LC_ALL", "PATH", "TMPDIR", "TZ")
    """Variables of the gardenlet's environment that a command gets."""

    concurrent_commands: int = 20
    """Commands of this seed that run at once."""

    kubernetes_version: str = "1.34.1"
    """Kubernetes version that the Seed's status names."""

    def command(self, step: str) -> tuple[str, ...]:
        """Program and arguments for a step; empty without a command."""
        return _words(self.commands.get(step) or self.commands.get(DEFAULT) or ())


def read_settings(options: Document, *, where: str) -> ExecSettings:
    """Read the options. Raises SettingsInvalid with everything that is wrong, after `where`."""
    try:
        settings = msgspec.convert(options, ExecSettings)
    except msgspec.ValidationError as error:
        raise SettingsInvalid((f"{where}: {error}",)) from error
    problems = [*_command_problems(settings)]
    problems += [
        f"{name}: must be more than zero"
        for name, value in (
            ("timeoutSeconds", settings.timeout_seconds),
            ("concurrentCommands", settings.concurrent_commands),
        )
        if value <= 0
    ]
    if settings.kill_after_seconds < 0:
        problems.append("killAfterSeconds: must not be negative")
    if problems:
        raise SettingsInvalid(tuple(f"{where}.{problem}" for problem in problems))
    return settings


def _command_problems(settings: ExecSettings) -> list[str]:
    steps = SHOOT_STEPS | {DEFAULT, HEALTH}
    if not settings.commands:
        return ["commands: must name a command, at least `default`"]
    problems = [
        f"commands.{name}: there is no such step; known are {', '.join(sorted(steps))}"
        for name in sorted(settings.commands.keys() - steps)
    ]
    for name, command in settings.commands.items():
        try:
            if not _words(command) or not _words(command)[0]:
                problems.append(f"commands.{name}: must name a program")
        except ValueError as error:
            problems.append(f"commands.{name}: {error}")
    return problems


def _words(command: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    return tuple(shlex.split(command) if isinstance(command, str) else command)
