"""Contexts of the `nats` command, which has them below ~/.config/nats: a file each, and the name of the current one."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from gardenbus.cli.local.directory import DirectoryUnwritable, write_whole
from gardenbus.common.errors import BadRequest

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


def write_nats_context(
    name: str, settings: Mapping[str, str], *, is_selected: bool, environ: Mapping[str, str] | None = None
) -> Path:
    """Write a context and return its file. Raises BadRequest for an impossible name, or without a place for it."""
    if not _NAME.fullmatch(name):
        raise BadRequest(f"{name!r} is no name of a context")
    folder = _folder(os.environ if environ is None else environ)
    file = folder / "context" / f"{name}.json"
    content = {"description": "A landscape of Gardenbus", **{key: value for key, value in settings.items() if value}}
    try:
        write_whole(file, json.dumps(content, indent=2).encode() + b"\n")
        if is_selected:
            write_whole(folder / "context.txt", name.encode())
    except DirectoryUnwritable as error:
        raise BadRequest(str(error)) from error
    return file


def _folder(environ: Mapping[str, str]) -> Path:
    if below := environ.get("XDG_CONFIG_HOME"):
        return Path(below) / "nats"
    if home := environ.get("HOME"):
        return Path(home) / ".config" / "nats"
    raise BadRequest("no place for a context of `nats`: set HOME")
