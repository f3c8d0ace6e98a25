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
from gardenbus.cli.contexts.addresses import check_nats_url, check_redis_url, without_password, without_user
from gardenbus.cli.local.directory import (
    DEFAULT_DIRECTORY,
    DirectoryUnwritable,
    LandscapeDirectory,
    LandscapeFile,
    LandscapeInUse,
    ServiceEntry,
    ServiceStatus,
    directory_option,
    ready_url,
)
from gardenbus.cli.manifests.files import read_sources, sort_manifests
from gardenbus.cli.output.console import Exit, Format, exit_codes, print_error, show, show_document, show_lines
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.examples import Example
from gardenbus.embedded.picture import SERVICE_STYLES
from gardenbus.embedded.process_specs import parse_replicas

if TYPE_CHECKING:
    from gardenbus.embedded.landscape import UpOptions


def up(  # noqa: PLR0913 - one parameter an option
    *,
    directory: Directory = None,
    files: Annotated[
        list[Path] | None,
        typer.Option("-f", "--filename", help="Manifests of any kind, and configurations of the services."),
    ] = None,
    example: Annotated[list[Example] | None, typer.Option(help="Manifests of an example that is installed.")] = None,
    replicas: Annotated[
        list[str] | None,
        typer.Option(help="How many of a service, as scheduler=2, or of one scheduler, as scheduler/mine=2."),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", help="Return when it is ready; stop it with `down`.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew: remove the state in --dir first.")] = False,
    exit_when_converged: Annotated[
        bool, typer.Option("--exit-when-settled", help="End with 0 when there is nothing left to do, 1 after 120 s.")
    ] = False,
    nats_port: Annotated[int | None, typer.Option(min=1, max=65535, help="NATS' port (default: a free one).")] = None,
    redis_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Redis' port (default: a socket in --dir).")
    ] = None,
    dashboard_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The dashboard's port (default: a free one).")
    ] = None,
    nats_url: Annotated[str | None, typer.Option(help="Use a running NATS with JetStream.")] = None,
    redis_url: Annotated[str | None, typer.Option(help="Use a running Redis.")] = None,
    prefix: Annotated[str, typer.Option(help="First token of all subjects and keys.")] = "garden",
    durability: Annotated[
        Durability, typer.Option(help="What is to survive: the death of any process, or loss of power too.")
    ] = Durability.PROCESS,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
    backend: Annotated[
        str | None,
        typer.Option(help="Backend of all gardenlets given, as processes (real control planes), in place of theirs."),
    ] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Three NATS servers, and a Redis with two replicas and three Sentinels.")
    ] = False,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let everybody on this machine into NATS, as whoever they say they are.")
    ] = False,
) -> None:
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
    from gardenbus.embedded.configurations import check_configurations, with_backend  # noqa: PLC0415
    from gardenbus.embedded.landscape import UpOptions  # noqa: PLC0415
    from gardenbus.embedded.up import run_up  # noqa: PLC0415

    try:
        counts = parse_replicas(replicas or [])
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--replicas") from error
    if fresh and (nats_url is not None or redis_url is not None):
        message = "removes what is in the directory, not what other servers hold: without --nats-url and --redis-url"
        raise typer.BadParameter(message, param_hint="--fresh")
    if cluster and any((nats_url, redis_url, nats_port, redis_port)):
        message = "starts servers of its own, on free ports: without --nats-url, --redis-url, --nats-port, --redis-port"
        raise typer.BadParameter(message, param_hint="--cluster")
    paths = [*(files or ()), *(each.folder for each in example or ())]
    with exit_codes():
        sources = read_sources(paths)
        given = sort_manifests([document for _, document in sources], [file for file, _ in sources])
        if backend is not None:
            given = with_backend(given, backend)
        check_configurations(given)
        if nats_url is not None:
            check_nats_url(nats_url)
        if redis_url is not None:
            check_redis_url(redis_url)
    options = UpOptions(
        directory=directory or DEFAULT_DIRECTORY,
        given=given,
        replicas=counts,
        nats_url=nats_url,
        redis_url=redis_url,
        nats_port=nats_port,
        redis_port=redis_port,
        dashboard_port=dashboard_port,
        prefix=prefix,
        durability=durability,
        log_level=log_level,
        backend=backend,
        is_insecure=insecure,
        is_cluster=cluster,
    )
    if fresh:
        _remove_state(LandscapeDirectory(options.directory))
    if detach:
        _detached(options, paths)
        return
    raise typer.Exit(run_up(options, exit_when_converged=exit_when_converged))


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
        landscape = start_detached(directory, up_arguments(options, files))
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


def _address(entry: ServiceEntry) -> str:
    """URL to open in a browser: the service's page if it has one, else its readiness."""
    return entry.url or (ready_url(entry.name, entry.health_url) if entry.health_url else "")


def _pages(landscape: LandscapeFile) -> list[str]:
    """URLs of the services that have a page."""
    return [entry.url for entry in landscape.services if entry.url]


def up_arguments(options: "UpOptions", files: list[Path]) -> list[str]:
    """The command line of the same `up`, not detached."""
    valued = {
        "--nats-url": options.nats_url,
        "--redis-url": options.redis_url,
        "--nats-port": options.nats_port,
        "--redis-port": options.redis_port,
        "--dashboard-port": options.dashboard_port,
        "--prefix": options.prefix,
        "--durability": options.durability.value,
        "--log-level": options.log_level,
        "--backend": options.backend,
    }
    return [
        "up",
        "--dir",
        str(options.directory),
        *(word for file in files for word in ("-f", str(file))),
        *(word for role, count in options.replicas.items() for word in ("--replicas", f"{role}={count}")),
        *(["--insecure"] if options.is_insecure else []),
        *(["--cluster"] if options.is_cluster else []),
        *(word for option, value in valued.items() if value is not None for word in (option, str(value))),
    ]


def down(
    *,
    directory: Directory = None,
    purge: Annotated[bool, typer.Option("--purge", help="Remove the state too, for good.")] = False,
) -> None:
    """Stop the landscape of a directory; its state stays, unless --purge removes it.

    What NATS and Redis hold that were given by --nats-url and --redis-url stays in either case. A directory in which
    anything else lies is not removed.

    Examples:
    gardenbus down --dir .gardenbus
    gardenbus down --purge
    """
    from gardenbus.embedded.detached import stop_supervisor  # noqa: PLC0415

    place = LandscapeDirectory(directory or DEFAULT_DIRECTORY)
    was_running = stop_supervisor(place)
    show_lines([f"{place.path}: {'stopped' if was_running else 'nothing was running'}"])
    if purge:
        was_there = _remove_state(place)
        show_lines([f"{place.path}: {'its state was removed' if was_there else 'there was no state'}"])


def status(*, directory: Directory = None, output: Output = Format.TABLE) -> None:
    """Show the processes of a landscape and how they are; exit code 3 when it is not up.

    ADDRESS is the dashboard's page, and of the other services what they say of their health; of the servers of a
    cluster their role: who leads, and what others lack.

    Example: gardenbus status -o json
    """
    from gardenbus.cli.local.health import service_rows  # noqa: PLC0415
    from gardenbus.cli.local.roles import server_roles  # noqa: PLC0415

    place = LandscapeDirectory(directory or DEFAULT_DIRECTORY)
    landscape = place.read()
    if landscape is None:
        print_error(f"no landscape in {place.path}: start one with `gardenbus up{directory_option(place.path)}`")
        raise typer.Exit(Exit.OUT_OF_REACH)
    is_supervised = place.supervisor() is not None
    rows = asyncio.run(service_rows(landscape))
    roles: Mapping[str, str] = asyncio.run(server_roles(landscape)) if is_supervised else {}
    _print_status(landscape, rows, roles, output, is_supervised=is_supervised)
    if not is_supervised:
        print_error(f"nobody looks after {place.path} (state: {landscape.state})")
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
