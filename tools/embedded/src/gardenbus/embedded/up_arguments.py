"""Options of `gardenbus up`: how they stand on a command line, what may not be given together, and the way back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from gardenbus.cli.commands.options import Directory
from gardenbus.cli.local.directory import default_directory
from gardenbus.cli.manifests.files import SortedManifests, read_sources, sort_manifests
from gardenbus.cli.output.console import exit_codes
from gardenbus.common.adapters.addresses import check_nats_url, check_redis_url
from gardenbus.common.backups.destinations import destination_of
from gardenbus.embedded.durability import Durability
from gardenbus.embedded.examples import Example
from gardenbus.embedded.process_specs import parse_replicas

if TYPE_CHECKING:
    from gardenbus.embedded.landscape import UpOptions


class UpArguments(NamedTuple):
    """The command line of `up`; each field is an option."""

    directory: Directory = None
    files: Annotated[
        list[Path] | None,
        typer.Option("-f", "--filename", help="Manifests of any kind, and configurations of the services."),
    ] = None
    example: Annotated[list[Example] | None, typer.Option(help="Manifests of an example that is installed.")] = None
    replicas: Annotated[
        list[str] | None,
        typer.Option(help="How many of a service, as scheduler=2, or of one scheduler, as scheduler/mine=2."),
    ] = None
    detach: Annotated[
        bool, typer.Option("--detach", help="Return when it has all that is in the files; stop it with `down`.")
    ] = False
    fresh: Annotated[bool, typer.Option("--fresh", help="Start from nothing: remove the state in --dir first.")] = False
    exit_when_converged: Annotated[
        bool, typer.Option("--exit-when-settled", help="End with 0 when there is nothing left to do, 1 after 120 s.")
    ] = False
    nats_port: Annotated[int | None, typer.Option(min=1, max=65535, help="NATS' port (default: a free one).")] = None
    redis_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Redis' port (default: a socket in --dir).")
    ] = None
    kube_port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="The port of the Kubernetes API (default: 6443, or a free one)."),
    ] = None
    dashboard_port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="The dashboard's port (default: a free one).")
    ] = None
    nats_url: Annotated[str | None, typer.Option(help="Use a running NATS with JetStream.")] = None
    redis_url: Annotated[str | None, typer.Option(help="Use a running Redis.")] = None
    prefix: Annotated[str, typer.Option(help="First token of all subjects and keys.")] = "garden"
    durability: Annotated[
        Durability, typer.Option(help="What is to survive: the death of any process, or loss of power too.")
    ] = Durability.PROCESS
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None
    backend: Annotated[
        str | None,
        typer.Option(help="Backend of all gardenlets given, as processes (real control planes), in place of theirs."),
    ] = None
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Three NATS servers, and a Redis with two replicas and three Sentinels.")
    ] = False
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Disable authentication: everybody on this machine may act as any user.")
    ] = False
    restore: Annotated[
        str,
        typer.Option(help="Start with the latest backup in this place (as `backup create -d`).", metavar="PLACE"),
    ] = ""

    @property
    def paths(self) -> list[Path]:
        """Files and folders of manifests, those of examples last."""
        return [*(self.files or ()), *(each.folder for each in self.example or ())]


def read_options(arguments: UpArguments) -> "UpOptions":
    """Read the manifests and check all that was given. Raises BadParameter, and Exit with the code of other errors."""
    from gardenbus.embedded.landscape import UpOptions  # noqa: PLC0415

    _check_combination(arguments)
    replicas = _read_replicas(arguments.replicas or [])
    with exit_codes():
        given = _read_manifests(arguments.paths, arguments.backend)
        if arguments.nats_url is not None:
            check_nats_url(arguments.nats_url)
        if arguments.redis_url is not None:
            check_redis_url(arguments.redis_url)
        if arguments.restore:
            destination_of(arguments.restore)
    return UpOptions(
        directory=arguments.directory or default_directory(),
        given=given,
        replicas=replicas,
        nats_url=arguments.nats_url,
        redis_url=arguments.redis_url,
        nats_port=arguments.nats_port,
        redis_port=arguments.redis_port,
        dashboard_port=arguments.dashboard_port,
        kube_port=arguments.kube_port,
        prefix=arguments.prefix,
        durability=arguments.durability,
        log_level=arguments.log_level,
        backend=arguments.backend,
        is_insecure=arguments.insecure,
        is_cluster=arguments.cluster,
        restored_from=arguments.restore,
    )


def _check_combination(arguments: UpArguments) -> None:
    servers = (arguments.nats_url, arguments.redis_url)
    if arguments.fresh and any(each is not None for each in servers):
        message = "removes what is in the directory, not what other servers hold: without --nats-url and --redis-url"
        raise typer.BadParameter(message, param_hint="--fresh")
    if arguments.cluster and any((*servers, arguments.nats_port, arguments.redis_port)):
        message = "starts servers of its own, on free ports: without --nats-url, --redis-url, --nats-port, --redis-port"
        raise typer.BadParameter(message, param_hint="--cluster")


def _read_replicas(words: list[str]) -> dict[str, int]:
    try:
        return parse_replicas(words)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--replicas") from error


def _read_manifests(paths: list[Path], backend: str | None) -> SortedManifests:
    from gardenbus.embedded.configurations import check_configurations, with_backend  # noqa: PLC0415

    sources = read_sources(paths)
    given = sort_manifests([document for _, document in sources], [file for file, _ in sources])
    if backend is not None:
        given = with_backend(given, backend)
    check_configurations(given)
    return given


def detached_arguments(options: "UpOptions", files: list[Path]) -> list[str]:
    """The command line of the same `up`, not detached."""
    valued = {
        "--nats-url": options.nats_url,
        "--redis-url": options.redis_url,
        "--nats-port": options.nats_port,
        "--redis-port": options.redis_port,
        "--dashboard-port": options.dashboard_port,
        "--kube-port": options.kube_port,
        "--prefix": options.prefix,
        "--durability": options.durability.value,
        "--log-level": options.log_level,
        "--backend": options.backend,
        "--restore": options.restored_from or None,
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
