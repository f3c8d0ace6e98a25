"""Values of parameters that are what they shall be: typer would import pydantic to find that out.

That is half of what a command costs before it does anything.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

_WHOLE = re.compile(r"-?[0-9]{1,18}")


class LazyConversion:
    """Conversion of the values of one parameter; typer's own where there is more to it than taking them over."""

    def __init__(self, parameter: Any, of_typer: Callable[[], Any]) -> None:
        self._of_typer = of_typer
        self._is_repeated = bool(parameter.multiple or parameter.nargs == -1)
        self._info = parameter.type_descriptor.parameter_info
        annotation = parameter.type_descriptor.annotation
        self._type: Any = get_args(annotation)[0] if get_origin(annotation) is list else annotation
        self._is_list = self._type is not annotation

    def coerce(self, value: Any, **where: Any) -> Any:
        """The value as the parameter's type."""
        if value is None:
            return () if self._is_repeated else None
        values: Sequence[Any] = value if self._is_list else (value,)
        if self._info.parser is None and isinstance(self._type, type) and all(map(self._is_plain, values)):
            taken = [each if type(each) is self._type else self._type(each) for each in values]
            return taken if self._is_list else taken[0]
        return self._of_typer().coerce(value, **where)

    def _is_plain(self, value: Any) -> bool:
        if issubclass(self._type, Enum):
            return value in {choice.value for choice in self._type}
        if self._type is Path:
            return isinstance(value, str) and self._takes_path(value)
        if self._type is int and isinstance(value, str):
            return _WHOLE.fullmatch(value) is not None and self._is_within(int(value))
        return type(value) is self._type

    def _is_within(self, number: int) -> bool:
        least, most = self._info.min, self._info.max
        return (least is None or number >= least) and (most is None or number <= most)

    def _takes_path(self, path: str) -> bool:
        info = self._info
        if info.writable or info.resolve_path or info.path_type or not (info.file_okay and info.dir_okay):
            return False
        return os.access(path, os.R_OK) or not (info.exists or os.path.exists(path))  # noqa: PTH110


def convert_lazily(command: Any, ctx: Any) -> None:
    """Convert the values of a command, `--help` too, by `LazyConversion`; those of all commands below it as well."""
    for child in getattr(command, "commands", {}).values():
        convert_lazily(child, ctx)
    for parameter in command.get_params(ctx):
        _replace_conversion(parameter)
    if not hasattr(command.parse_args, "reads_flag_values"):
        command.parse_args = _FlagValues(command)


class _FlagValues:
    """Parser of a command's words that takes `--flag=true` and `--flag=false`, as kubectl does."""

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


def _replace_conversion(parameter: Any) -> None:
    conversion = LazyConversion(parameter, parameter.get_runtime_param)
    parameter.get_runtime_param = lambda: conversion
