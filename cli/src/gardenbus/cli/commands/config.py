"""`config`: the landscapes in the config file."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from gardenbus.cli.commands.options import Output
from gardenbus.cli.contexts.config import (
    ContextEntry,
    ContextsConfig,
    check_context,
    config_file,
    context_names,
    read_config,
    write_config,
)
from gardenbus.cli.lazy import help_of, new_group
from gardenbus.cli.output.console import Exit, Format, errors, exit_codes, print_error, show_document, show_lines
from gardenbus.cli.output.printers import table_text
from gardenbus.common.adapters.addresses import check_nats_url, without_user
from gardenbus.common.errors import BadRequest

config = new_group("Keep several landscapes under names, and choose the current one.")

ContextName = Annotated[str, typer.Argument(help="The context.", metavar="NAME", autocompletion=context_names)]


def get_contexts(*, output: Output = Format.TABLE) -> None:
    """List the contexts; the current one has a star.

    Example: gardenbus config get-contexts -o name
    """
    with exit_codes():
        stored = read_config(config_file())
    if output is Format.NAME:
        show_lines(sorted(stored.contexts))
    elif output is Format.JSON:
        show_document(_for_programs(_shown(stored)), output)
    elif output is Format.YAML:
        show_document(msgspec.to_builtins(_shown(stored)), output)
    elif not stored.contexts:
        errors.print(f"no contexts in {config_file()}")
    else:
        rows = [
            ["*" if name == stored.current_context else "", name, _location(landscape), landscape.prefix]
            for name, landscape in sorted(stored.contexts.items())
        ]
        show_lines(table_text(["CURRENT", "NAME", "LANDSCAPE", "PREFIX"], rows).splitlines())


def _shown(stored: ContextsConfig) -> ContextsConfig:
    """Without who one is."""
    contexts = {
        name: msgspec.structs.replace(landscape, nats_url=without_user(landscape.nats_url))
        for name, landscape in stored.contexts.items()
    }
    return msgspec.structs.replace(stored, contexts=contexts)


def _location(landscape: ContextEntry) -> str:
    return landscape.dir or without_user(landscape.nats_url)


def view(
    *,
    raw: Annotated[bool, typer.Option("--raw", help="With user and password, where addresses have them.")] = False,
    minify: Annotated[bool, typer.Option("--minify", help="The current context alone.")] = False,
    output: Output = Format.YAML,
) -> None:
    """Show the config file; users and passwords in addresses are left out, and what credentials files hold.

    Example: gardenbus config view --minify
    """
    with exit_codes():
        stored = read_config(config_file())
        if minify:
            current = stored.current_context
            stored = ContextsConfig(current, {current: stored.named(current)})
    shown = stored if raw else _shown(stored)
    if output is Format.JSON:
        show_document(_for_programs(shown), output)
    else:
        show_document(msgspec.to_builtins(shown), Format.YAML)


def _for_programs(stored: ContextsConfig) -> dict[str, Any]:
    """In camelCase, as all JSON of this command line; the file has hyphens."""
    contexts = {
        name: {_camel_case(key): value for key, value in msgspec.to_builtins(landscape).items()}
        for name, landscape in stored.contexts.items()
    }
    return {"currentContext": stored.current_context, "contexts": contexts}


def _camel_case(key: str) -> str:
    first, *others = key.split("-")
    return first + "".join(other.capitalize() for other in others)


def current_context() -> None:
    """Print the current context; exit code 1 when there is none.

    Example: gardenbus config current-context
    """
    with exit_codes():
        stored = read_config(config_file())
    if not stored.current_context:
        print_error("no current context: `gardenbus config use-context NAME` chooses one")
        raise typer.Exit(Exit.FAILED)
    show_lines([stored.current_context])


def use_context(name: ContextName) -> None:
    """Make a context the one that is meant when nothing else says.

    Example: gardenbus config use-context lab
    """
    with exit_codes():
        stored = read_config(config_file())
        stored.named(name)
        write_config(config_file(), msgspec.structs.replace(stored, current_context=name))
    show_lines([f"context {name} is the current one"])


def set_context(  # noqa: PLR0913 - one parameter an option
    name: ContextName,
    *,
    nats_url: Annotated[str | None, typer.Option("--nats-url", help="Where its NATS is.")] = None,
    credentials: Annotated[
        Path | None, typer.Option("--credentials", help="A file as `identity issue` writes, or with user:password.")
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="Whose the nkey in --credentials is.")] = None,
    ca: Annotated[Path | None, typer.Option("--ca", help="The authorities of NATS' certificate, PEM.")] = None,
    prefix: Annotated[str | None, typer.Option("--prefix", help="First token of its subjects.")] = None,
    directory: Annotated[
        Path | None, typer.Option("--dir", help="Or: the state directory of a landscape on this machine.")
    ] = None,
    current: Annotated[bool, typer.Option("--current", help="And make it the current one.")] = False,
) -> None:
    """Make a context, or change what is given of one.

    Examples:
    gardenbus config set-context lab --nats-url tls://nats.example.com:4222 --credentials ann.json --ca ca.crt
    gardenbus config set-context here --dir .gardenbus --current
    """
    with exit_codes():
        stored = read_config(config_file())
        before = stored.contexts.get(name)
        given = {"user": user, "prefix": prefix, "credentials": _absolute(credentials), "ca": _absolute(ca)}
        after = _changed(before or ContextEntry(), nats_url, directory, given)
        if not name.strip():
            raise BadRequest("a context needs a name")
        if user:
            from gardenbus.common.api.identity.names import carried  # noqa: PLC0415  slow to import

            carried(user)
        if not after.nats_url and not after.dir:
            raise BadRequest(f"context {name}: it needs --nats-url or --dir")
        check_context(after)
        if after.nats_url:
            check_nats_url(after.nats_url)
        changed = ContextsConfig(name if current else stored.current_context, {**stored.contexts, name: after})
        write_config(config_file(), changed)
    show_lines([f"context {name} {'created' if before is None else 'configured'}"])


def _changed(
    landscape: ContextEntry, nats_url: str | None, directory: Path | None, given: Mapping[str, str | None]
) -> ContextEntry:
    """With what is given; an address takes the place of a directory, and the other way round."""
    if nats_url is not None and directory is not None:
        raise BadRequest("--nats-url or --dir, not both")
    if nats_url is not None:
        landscape = msgspec.structs.replace(landscape, nats_url=nats_url, dir="")
    if directory is not None:
        landscape = ContextEntry(dir=str(directory.absolute()), prefix=landscape.prefix)
    return msgspec.structs.replace(landscape, **{field: value for field, value in given.items() if value is not None})


def _absolute(file: Path | None) -> str | None:
    return None if file is None else str(file.expanduser().absolute())


def delete_context(name: ContextName) -> None:
    """Forget a context; the landscape itself stays as it is.

    Example: gardenbus config delete-context lab
    """
    with exit_codes():
        stored = read_config(config_file())
        stored.named(name)
        left = {each: landscape for each, landscape in stored.contexts.items() if each != name}
        current = "" if stored.current_context == name else stored.current_context
        write_config(config_file(), ContextsConfig(current, left))
    show_lines([f"context {name} deleted"])


for _command in (view, get_contexts, current_context, use_context, set_context, delete_context):
    config.command(_command.__name__.replace("_", "-"), help=help_of(_command))(_command)
