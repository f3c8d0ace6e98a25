"""`up`, `down`, `status`: the embedded landscape.

What only these commands need (the services' own readers, an HTTP client) is imported when they are called: `get` is
not to wait for it.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich import box
from rich.table import Table
from rich.text import Text

from gardenbus.cli.commands.options import Directory, Output
from gardenbus.cli.local.directory import (
    DirectoryUnwritable,
    LandscapeDirectory,
    LandscapeFile,
    LandscapeInUse,
    ServiceEntry,
    ServiceStatus,
    default_directory,
    directory_option,
    ready_url,
)
from gardenbus.cli.output.console import Exit, Format, errors, print_error, show, show_document, show_lines
from gardenbus.common.adapters.addresses import without_password, without_user
from gardenbus.embedded.picture import SERVICE_STYLES
from gardenbus.embedded.up_arguments import UpArguments, detached_arguments, read_options

if TYPE_CHECKING:
    from gardenbus.embedded.landscape import UpOptions


def up(arguments: UpArguments) -> None:
    """Start a landscape: NATS, Redis and all services as child processes, state below --dir.

    Everybody who connects has to prove who they are, but with --insecure; `gardenbus identity` lets others in. It goes
    on where it was; with --fresh nothing of before is left. A directory in which anything else lies, or whose landscape
    runs, is not touched.

    Examples:
    gardenbus up --example landscape --detach
    gardenbus up --replicas scheduler=2 --durability power
    gardenbus up --cluster
    gardenbus up --fresh -f my.yaml
    """
    from gardenbus.embedded.up import run_up  # noqa: PLC0415

    options = read_options(arguments)
    if arguments.fresh:
        _remove_state(LandscapeDirectory(options.directory))
    if arguments.detach:
        _detached(options, arguments.paths)
        return
    raise typer.Exit(run_up(options, exit_when_converged=arguments.exit_when_converged))


def _remove_state(directory: LandscapeDirectory) -> bool:
    from gardenbus.embedded.removal import NotALandscape, remove_state  # noqa: PLC0415

    try:
        return remove_state(directory)
    except (NotALandscape, LandscapeInUse, DirectoryUnwritable) as error:
        print_error(str(error))
        raise typer.Exit(Exit.FAILED) from error


def _detached(options: "UpOptions", files: list[Path]) -> None:
    from gardenbus.embedded.detached import DetachFailed, start_detached  # noqa: PLC0415

    directory = LandscapeDirectory(options.directory)
    if (pid := directory.supervisor()) is not None:
        print_error(str(LandscapeInUse(directory.path, pid)))
        raise typer.Exit(Exit.FAILED)
    try:
        landscape = start_detached(directory, detached_arguments(options, files), _remark)
    except DetachFailed as error:
        print_error(str(error))
        raise typer.Exit(error.code if error.code > 0 else Exit.FAILED) from error
    except DirectoryUnwritable as error:
        print_error(str(error))
        raise typer.Exit(Exit.FAILED) from error
    stop = f"gardenbus down{directory_option(options.directory)}"
    nats = without_user(landscape.nats_url)
    show_lines([f"{len(landscape.services)} processes are up; NATS {nats}, stop with: {stop}"])
    show_lines(
        [f"dashboard: {page} (gardenbus dashboard{directory_option(options.directory)})" for page in _pages(landscape)]
    )


def _remark(line: str) -> None:
    """Show what a supervisor waits for, or warns of, while it starts."""
    errors.print(line, soft_wrap=True, markup=False, highlight=False)


def _address(entry: ServiceEntry) -> str:
    """URL to open in a browser: the service's page if it has one, else its readiness."""
    return entry.url or (ready_url(entry.name, entry.health_url) if entry.health_url else "")


def _pages(landscape: LandscapeFile) -> list[str]:
    """URLs of the services that have a page for browsers."""
    return [entry.url for entry in landscape.services if entry.url and entry.name == "dashboard"]


def down(
    *,
    directory: Directory = None,
    purge: Annotated[bool, typer.Option("--purge", help="Remove the state too, for good.")] = False,
) -> None:
    """Stop the landscape of a directory; its state stays, unless --purge removes it.

    Exit code 1 where there is no landscape. What NATS and Redis hold that were given by --nats-url and --redis-url
    stays in either case. A directory in which anything else lies is not removed.

    Examples:
    gardenbus down --dir .gardenbus
    gardenbus down --purge
    """
    from gardenbus.embedded.detached import stop_supervisor  # noqa: PLC0415

    place = LandscapeDirectory(directory or default_directory())
    try:
        was_running = stop_supervisor(place)
    except DirectoryUnwritable as error:
        print_error(str(error))
        raise typer.Exit(Exit.FAILED) from error
    was_there = was_running or place.read() is not None
    if was_there:
        show_lines([f"{place.path}: {'stopped' if was_running else 'nothing was running'}"])
    if purge and _remove_state(place):
        was_there = True
        show_lines([f"{place.path}: its state was removed"])
    if not was_there:
        print_error(f"no landscape in {place.path}: there was nothing to stop")
        raise typer.Exit(Exit.FAILED)


def status(*, directory: Directory = None, output: Output = Format.TABLE) -> None:
    """Show the processes of a landscape and how they are; exit code 3 when it is not up.

    ADDRESS is the dashboard's page and the Kubernetes API, and of the other services what they say of their health; of
    the servers of a cluster their role: who leads, and what others lack.

    Example: gardenbus status -o json
    """
    from gardenbus.cli.local.health import service_rows  # noqa: PLC0415
    from gardenbus.embedded.server_roles import server_roles  # noqa: PLC0415

    place = LandscapeDirectory(directory or default_directory())
    landscape = place.read()
    if landscape is None:
        print_error(f"no landscape in {place.path}: start one with `gardenbus up{directory_option(place.path)}`")
        raise typer.Exit(Exit.OUT_OF_REACH)
    is_supervised = place.supervisor() is not None
    rows = asyncio.run(service_rows(landscape))
    roles: Mapping[str, str] = asyncio.run(server_roles(landscape)) if is_supervised else {}
    _print_status(landscape, rows, roles, output, is_supervised=is_supervised)
    if not is_supervised:
        print_error(f"landscape {place.path} is stopped (last state: {landscape.state})")
        raise typer.Exit(Exit.OUT_OF_REACH)
    if any(row.state not in ("ready", "external") for row in rows):
        raise typer.Exit(Exit.FAILED)


def _in_camel_case(fields: dict[str, Any]) -> dict[str, Any]:
    """The same for programs: landscape.json has underscores in its names, what commands print has none."""
    return {_camel_case(name): value for name, value in fields.items()}


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _print_status(
    landscape: LandscapeFile,
    rows: list[ServiceStatus],
    roles: Mapping[str, str],
    output: Format,
    *,
    is_supervised: bool,
) -> None:
    nats, redis = without_user(landscape.nats_url), without_password(landscape.redis_url)
    if output in (Format.JSON, Format.YAML):
        document: dict[str, Any] = _in_camel_case(msgspec.to_builtins(landscape)) | {"natsUrl": nats, "redisUrl": redis}
        document["state"] = landscape.state if is_supervised else "stopped"
        services = list(map(_in_camel_case, document["services"]))
        document["services"] = services
        for entry, row in zip(services, rows, strict=True):
            role = {"role": roles[row.name]} if row.name in roles else {}
            entry |= {"state": row.state, "trouble": row.trouble, **role}
        show_document(document, output)
        return
    if output is Format.NAME:
        show_lines([row.name for row in rows])
        return
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for column in ("SERVICE", "STATE", "PID", "ADDRESS"):
        table.add_column(column, no_wrap=True)
    for entry, row in zip(landscape.services, rows, strict=True):
        state = Text(row.state, style=SERVICE_STYLES.get(row.state, "red"))
        table.add_row(row.name, state, str(row.pid or ""), row.trouble or roles.get(row.name) or _address(entry))
    show(table)
    show_lines([f"NATS {nats}   Redis {redis}   prefix {landscape.prefix}"])
    show_lines([f"Dashboard {page}" for page in _pages(landscape)])
