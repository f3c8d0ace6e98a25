"""A group of commands whose modules are imported when they are called, not when the group is listed.

Starting Python costs 10 ms, importing all commands half a second: who asks for `get` pays for `get`.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import getdoc
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_command_from_info
from typer.models import CommandInfo

from gardenbus.cli.selecting import chosen, context_option

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}

_COMMANDS = "gardenbus.cli.commands."
_ASKS_A_LANDSCAPE = frozenset({"directory", "nats_url", "prefix"})
_MAKES_LANDSCAPES = frozenset({"up", "config"})


class Entry(NamedTuple):
    """One command. `where` is `module:name` below `gardenbus.cli.commands`, of a function or of a `typer.Typer`."""

    where: str
    panel: str
    summary: str
    """What the list of commands says; `--help` of the command itself shows its docstring."""


class LazyGroup(TyperGroup):
    """Lists `entries` from their summaries, and imports the one that is called."""

    entries: ClassVar[Mapping[str, Entry]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """Entries first, then commands that were added as usual."""
        return [*self.entries, *(name for name in super().list_commands(ctx) if name not in self.entries)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, or only its name and summary while it was not called."""
        found = super().get_command(ctx, cmd_name)
        entry = self.entries.get(cmd_name)
        if found is not None or entry is None:
            return found
        return TyperCommand(cmd_name, help=entry.summary, rich_help_panel=entry.panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import what is called. Raises a usage error, with what may have been meant, for what there is not."""
        name = args[0]
        if name not in self.commands and name in self.entries:
            self.commands[name] = command = loaded(name, self.entries[name])
            if chosen.get() is not None and not ctx.resilient_parsing and not _takes_context(command):
                raise typer.BadParameter(f"{name!r} asks no landscape of the config file: it takes no --context")
        elif name not in self.commands:
            self.commands = {**{each: self.get_command(ctx, each) for each in self.entries}, **self.commands}
        return super().resolve_command(ctx, args)


def loaded(name: str, entry: Entry) -> Any:
    """A command with its options, imported now; one that asks a landscape gets `--context` beside them."""
    module, _, attribute = entry.where.partition(":")
    target: Any = getattr(import_module(_COMMANDS + module), attribute)
    if isinstance(target, typer.Typer):
        command = get_command(target)
        command.name = name
    else:
        info = CommandInfo(name, callback=target, help=help_of(target), context_settings=HELP_OPTIONS)
        command = get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode="rich")
    if name not in _MAKES_LANDSCAPES:
        _add_context(command)
    return command


def _add_context(command: Any) -> None:
    for child in getattr(command, "commands", {}).values():
        _add_context(child)
    if {parameter.name for parameter in command.params} >= _ASKS_A_LANDSCAPE:
        command.params.append(context_option())


def _takes_context(command: Any) -> bool:
    children = getattr(command, "commands", {}).values()
    return any(parameter.name == "context" for parameter in command.params) or any(map(_takes_context, children))


def help_of(command: Callable[..., None]) -> str:
    """A command's docstring, each paragraph in one line (it is wrapped where it is shown).

    Examples, the lines of a last paragraph that begins with `Example`, keep their lines.
    """
    paragraphs = (getdoc(command) or "").split("\n\n")
    return "\n\n".join(
        paragraph.replace("\n", "\n\n") if paragraph.startswith("Example") else paragraph.replace("\n", " ")
        for paragraph in paragraphs
    )
