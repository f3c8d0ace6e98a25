"""The page of all commands of `gardenbus`, with their arguments, options and examples, as `--help` has them."""

import enum
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

from gardenbus.cli.lazy import loaded
from gardenbus.cli.main import COMMANDS, ENDS
from gardenbus.docs.markdown import row, table

LANDSCAPE_OPTIONS = frozenset({"directory", "nats_url", "prefix", "context"})
_PLACEHOLDERS = {"int": "NUMBER", "float": "NUMBER", "path": "PATH", "file": "PATH", "directory": "PATH"}
"""Options of all commands that connect to a landscape: described once, at the head of the page."""

_HEAD = """# Commands

All commands of `gardenbus`, as `gardenbus COMMAND --help` shows them too. `gardenbus completion` brings completion for
bash, zsh and fish.

{ends}

Kinds go by their singular, plural and short names. Colours are for terminals only; `NO_COLOR` turns them off there too.

## Which landscape

Commands that use a landscape have these options as well; they are not repeated below.

{landscape}"""


def commands_page() -> str:
    """The page's Markdown."""
    commands = {name: loaded(name, entry) for name, entry in COMMANDS.items()}
    landscape = _options([each for each in commands["get"].params if each.name in LANDSCAPE_OPTIONS])
    parts = [_HEAD.format(ends=ENDS, landscape=landscape)]
    panel = ""
    for name, entry in COMMANDS.items():
        if entry.panel != panel:
            panel = entry.panel
            parts.append(f"## {panel}\n")
        parts += _command(f"gardenbus {name}", commands[name])
    return "\n".join(parts)


def options_of(command: Any) -> frozenset[str]:
    """Every option of a command, in all spellings."""
    return frozenset(spelling for each in command.params for spelling in (*each.opts, *each.secondary_opts))


def _command(path: str, command: Any) -> Iterator[str]:
    subcommands: Mapping[str, Any] = getattr(command, "commands", {})
    is_called_alone = not subcommands or getattr(command, "invoke_without_command", False)
    yield f"### {path}\n"
    prose, examples = _prose(command.help or "")
    yield from (f"{paragraph}\n" for paragraph in prose)
    if is_called_alone:
        yield f"```text\n{_usage(path, command)}\n```\n"
        yield from _parameters(command)
    if examples:
        lines = "\n".join(examples)
        yield f"{'Examples' if len(examples) > 1 else 'Example'}:\n\n```text\n{lines}\n```\n"
    for name, child in subcommands.items():
        yield from _command(f"{path} {name}", child)


def _prose(text: str) -> tuple[Sequence[str], Sequence[str]]:
    """The paragraphs of a help text, and the commands of its examples."""
    paragraphs = [_single_line(each) for each in re.split(r"\n{2,}", text.strip()) if each.strip()]
    prose = [each for each in paragraphs if not each.startswith(("Example", "gardenbus "))]
    examples = [re.sub(r"^Examples?: ?", "", each) for each in paragraphs if each not in prose]
    return prose, [each for each in examples if each]


def _single_line(text: str) -> str:
    """Without what rich reads, and in one line."""
    return " ".join(text.replace("\b", "").replace("\\[", "[").split())


def _usage(path: str, command: Any) -> str:
    words = [path]
    for each in command.params:
        if each.param_type_name == "argument":
            word = _value(each)
            words.append(word if each.required or word.startswith("[") else f"[{word}]")
    return " ".join((*words, "[OPTIONS]"))


def _parameters(command: Any) -> Iterator[str]:
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    if {each.name for each in shown} >= LANDSCAPE_OPTIONS:
        shown = [each for each in shown if each.name not in LANDSCAPE_OPTIONS]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    if arguments:
        rows = [row(f"`{_value(each)}`", _single_line(each.help or "")) for each in arguments]
        yield table(("argument", "meaning"), rows)
    if options:
        yield _options(options)


def _options(options: Sequence[Any]) -> str:
    rows = [row(_spelled(each), _default(each), _single_line(each.help or "")) for each in options]
    return table(("option", "default", "meaning"), rows)


def _spelled(option: Any) -> str:
    """`-o`, `--output` with its value, and `--no-…` where there is one."""
    spellings = sorted((*option.opts, *option.secondary_opts), key=lambda each: (each.startswith("--"), len(each)))
    value = "" if option.is_flag or option.count else f" {_value(option)}"
    return ", ".join((*(f"`{each}`" for each in spellings[:-1]), f"`{spellings[-1]}{value}`"))


def _value(parameter: Any) -> str:
    """Placeholder of a value: its metavar, its choices, or its type."""
    if parameter.metavar:
        return str(parameter.metavar)
    many = "…" if parameter.multiple or parameter.nargs == -1 else ""
    if parameter.param_type_name == "argument":
        return f"{parameter.name.upper()}{many}"
    if choices := getattr(parameter.type, "choices", None):
        return "|".join(str(each.value) if isinstance(each, enum.Enum) else str(each) for each in choices)
    return _PLACEHOLDERS.get(parameter.type.name.partition(" ")[0], "TEXT")


def _default(parameter: Any) -> str:
    given = parameter.default.value if isinstance(parameter.default, enum.Enum) else parameter.default
    if parameter.required:
        return "must be given"
    if isinstance(given, bool):
        return "on" if given else "off"
    if given in (None, "", [], ()):
        return "none"
    if isinstance(given, timedelta):
        return f"`{given.total_seconds():g}s`"
    return f"`{given}`"
