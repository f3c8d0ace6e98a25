"""A group of commands whose modules are imported when they are called, not when the group is listed.

Starting Python costs 10 ms, importing all commands half a second: a call of `get` pays for `get`.
"""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_command_from_info
from typer.models import CommandInfo

from gardenbus.cli.contexts.selection import context_option, selected_context
from gardenbus.cli.flag_values import take_flag_values
from gardenbus.cli.output.terminal import write_error

HELP_OPTIONS = {"help_option_names": ["-h", "--help"]}

PLUGINS = "gardenbus.cli.commands"
"""The entry point group of commands that other distributions bring: name → `module:name`."""

_COMMANDS = "gardenbus.cli.commands."
_LANDSCAPE_PARAMETERS = frozenset({"directory", "nats_url", "prefix"})
_MAKES_LANDSCAPES = frozenset({"up", "config", "login"})


class Entry(NamedTuple):
    """One command. `where` is `module:name` below `gardenbus.cli.commands`, of a function or of a `typer.Typer`."""

    where: str
    panel: str
    summary: str
    """Text in the list of commands; `--help` of the command itself shows its docstring."""

    extra: str = ""
    """The extra of this distribution that brings the command by an entry point; "" for the client's own commands."""


class LazyGroup(TyperGroup):
    """Lists `entries` from their summaries, and imports the one that is called."""

    entries: ClassVar[Mapping[str, Entry]] = {}
    has_plugins: ClassVar[bool] = False
    """Other distributions may add commands, by entry points of the group `PLUGINS`."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Entries first, then other plug-ins, then commands that were added as usual."""
        added = [*(_plugin_names() if self.has_plugins else ()), *super().list_commands(ctx)]
        return list(dict.fromkeys([*self.entries, *added]))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, or only its name and summary while it was not called."""
        found = super().get_command(ctx, cmd_name)
        entry = self.entries.get(cmd_name)
        if found is None and entry is None and self.has_plugins and cmd_name in _plugin_names():
            return loaded(cmd_name, Entry("", "Plug-ins", "", extra=cmd_name))
        if found is not None or entry is None:
            return found
        return TyperCommand(cmd_name, help=entry.summary, rich_help_panel=entry.panel)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of the group itself."""
        take_flag_values(self)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import what is called. Raises a usage error, with what may have been meant, for what there is not."""
        name = args[0]
        if name not in self.commands and name in self.entries:
            self.commands[name] = command = loaded(name, self.entries[name])
            take_flag_values(command)
            if selected_context.get() is not None and not ctx.resilient_parsing and not _has_context_option(command):
                raise typer.BadParameter(f"{name!r} needs no landscape of the config file: it takes no --context")
        elif name not in self.commands:
            self.commands = {**{each: self.get_command(ctx, each) for each in self.entries}, **self.commands}
        return super().resolve_command(ctx, args)


def loaded(name: str, entry: Entry) -> Any:
    """Import a command with its options; one that uses a landscape gets `--context` beside them."""
    if entry.extra:
        target: Any = _plugin(name, entry.extra)
    else:
        module, _, attribute = entry.where.partition(":")
        target = getattr(import_module(_COMMANDS + module), attribute)
    if isinstance(target, typer.Typer):
        for each in (*target.registered_commands, target.registered_callback):
            if each is not None and each.callback is not None:
                each.callback = with_options(each.callback)
        command = get_command(target)
        command.name = name
    else:
        info = CommandInfo(name, callback=with_options(target), help=help_of(target), context_settings=HELP_OPTIONS)
        command = get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode="rich")
    if name not in _MAKES_LANDSCAPES:
        _add_context(command)
    return command


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command with the fields of each parameter that is a NamedTuple as options, in its place."""
    own = inspect.signature(command).parameters.values()
    groups = {each.name: each.annotation for each in own if hasattr(each.annotation, "_fields")}

    @functools.wraps(command)
    def called(*arguments: Any, **values: Any) -> Any:
        for name, group in groups.items():
            values[name] = group(**{field: values.pop(field) for field in group._fields if field in values})
        return command(*arguments, **values)

    every: list[inspect.Parameter] = []
    for each in own:
        fields = inspect.signature(each.annotation).parameters.values() if each.name in groups else ()
        every += [one.replace(kind=each.kind) for one in fields] or [each]
    called.__signature__ = inspect.Signature(every)  # pyright: ignore[reportAttributeAccessIssue]
    called.__annotations__ = {each.name: each.annotation for each in every}
    return called


def _plugin_names() -> Sequence[str]:
    from importlib.metadata import entry_points  # noqa: PLC0415  the client's own commands need not pay for it

    return sorted(entry_points(group=PLUGINS).names)


def _plugin(name: str, extra: str) -> Any:
    """Load a command of another distribution; one that is not installed ends the process with the extra to install."""
    from importlib.metadata import entry_points  # noqa: PLC0415  as above

    for entry_point in entry_points(group=PLUGINS, name=name):
        return entry_point.load()
    write_error(f"gardenbus: `gardenbus {name}` is not part of the client: pip install 'gardenbus[{extra}]'\n")
    raise typer.Exit(1)


def _add_context(command: Any) -> None:
    for child in getattr(command, "commands", {}).values():
        _add_context(child)
    if {parameter.name for parameter in command.params} >= _LANDSCAPE_PARAMETERS:
        command.params.append(context_option())


def _has_context_option(command: Any) -> bool:
    subcommands = getattr(command, "commands", {}).values()
    return any(parameter.name == "context" for parameter in command.params) or any(
        map(_has_context_option, subcommands)
    )


def new_group(summary: str) -> typer.Typer:
    """A group of commands, which shows its help where none of them is named."""
    return typer.Typer(help=summary, no_args_is_help=True, add_completion=False, context_settings=HELP_OPTIONS)


def help_of(command: Callable[..., None]) -> str:
    """A command's docstring, each paragraph in one line (it is wrapped where it is shown).

    Examples, the lines of a last paragraph that begins with `Example`, keep their lines.
    """
    paragraphs = (inspect.getdoc(command) or "").split("\n\n")
    return "\n\n".join(
        paragraph.replace("\n", "\n\n") if paragraph.startswith("Example") else paragraph.replace("\n", " ")
        for paragraph in paragraphs
    )
