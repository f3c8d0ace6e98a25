"""Flags with values, `--wait=true` and `--wait=false`, as kubectl takes them."""

from collections.abc import Mapping, Sequence
from typing import Any


def take_flag_values(command: Any) -> None:
    """Let a command, and all commands below it, take `true` and `false` for the values of their flags."""
    for child in getattr(command, "commands", {}).values():
        take_flag_values(child)
    if not hasattr(command.parse_args, "reads_flag_values"):
        command.parse_args = _FlagValues(command)


class _FlagValues:
    """Parser of the words of a command that puts flags in the place of flags with values."""

    reads_flag_values = True

    def __init__(self, command: Any) -> None:
        self._command = command
        self._parse = command.parse_args

    def __call__(self, ctx: Any, args: list[str]) -> Any:
        """Parse the words with flags in place of their values."""
        flags = {name: each for each in self._command.get_params(ctx) if _is_flag(each) for name in each.opts}
        return self._parse(ctx, without_flag_values(args, flags))


def without_flag_values(args: Sequence[str], flags: Mapping[str, Any]) -> list[str]:
    """Words of a command line with `--flag` for `--flag=true`, and for `--flag=false` the flag that says no, or none.

    `flags` are parameters by their names.
    """
    ends = args.index("--") if "--" in args else len(args)
    found: list[str] = []
    for word in args[:ends]:
        name, _, value = word.partition("=")
        if name not in flags or value not in ("true", "false"):
            found.append(word)
            continue
        parameter = flags[name]
        found = [each for each in found if each not in (*parameter.opts, *parameter.secondary_opts)]
        found += [name] if value == "true" else parameter.secondary_opts[:1]
    return [*found, *args[ends:]]


def _is_flag(parameter: Any) -> bool:
    return bool(getattr(parameter, "is_flag", False)) and not getattr(parameter, "count", False)
