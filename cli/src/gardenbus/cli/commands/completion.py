"""`completion`: what a shell is to read so that it completes commands, options, kinds and names."""

from enum import StrEnum
from typing import Annotated

import typer

from gardenbus.cli.main import COMPLETING
from gardenbus.cli.output.console import show_lines

PROGRAM = "gardenbus"


class Shell(StrEnum):
    """Shells that are known here."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish")]) -> None:
    """Print a completion script for a shell.

    Kinds are completed always, names and namespaces where the landscape answers within a second.

    Examples:
    source <(gardenbus completion bash)
    gardenbus completion zsh > "${fpath[1]}/_gardenbus"
    gardenbus completion fish > ~/.config/fish/completions/gardenbus.fish
    """
    from typer._completion_shared import get_completion_script  # noqa: PLC0415  nobody else needs it

    script = get_completion_script(prog_name=PROGRAM, complete_var=COMPLETING, shell=shell.value)
    show_lines([script])
