"""The `--config FILE` that a service takes, in Gardener's manner: where it is, and what is in it."""

from collections.abc import Sequence
from pathlib import Path

from gardenbus.common.errors import SettingsInvalid


def configuration_file(arguments: Sequence[str], *, usage: str) -> Path | None:
    """The file that `--config FILE` or `--config=FILE` names, None without arguments.

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


def read_configuration(file: Path) -> bytes:
    """The file's content; raises SettingsInvalid naming the file and why it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise SettingsInvalid((f"--config {file}: {error.strerror or error}",)) from error
