"""`kubeconfig`: a way into a shoot's cluster, for a while, or into the landscape itself."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gardenbus.agent.files import replace_file
from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.kubeconfigs import landscape_kubeconfig
from gardenbus.cli.client.resource_args import ResourceArgs, get_object, object_name
from gardenbus.cli.client.targets import find_landscape
from gardenbus.cli.commands.options import LandscapeOptions, Namespace, run_with_client
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.console import exit_codes, show_lines
from gardenbus.cli.output.terminal import write_document
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.errors import BadRequest


def kubeconfig(  # noqa: PLR0913 - one parameter an option
    shoot: Annotated[
        str,
        typer.Argument(
            help="The shoot: NAME, or NAMESPACE/NAME", metavar="[SHOOT]", autocompletion=completions.shoot_names
        ),
    ] = "",
    *,
    of_landscape: Annotated[
        bool, typer.Option("--landscape", help="Of the landscape: kubectl then lists Shoots and Seeds.")
    ] = False,
    server: Annotated[
        str,
        typer.Option("--server", help="Where its Kubernetes API is, unless it runs on this machine.", metavar="URL"),
    ] = "",
    expiration: Annotated[
        str, typer.Option("--expiration", help="Life of the certificate, 10m to 24h.", metavar="DURATION")
    ] = "1h",
    file: Annotated[
        Path | None, typer.Option("--file", help="Write it there, for you alone, instead of printing it.")
    ] = None,
    namespace: Namespace = None,
    landscape: LandscapeOptions,
) -> None:
    """Print a kubeconfig with which kubectl reaches a shoot, with a certificate of a limited life.

    It may do everything there. It is signed on the shoot's seed; a simulated seed has no API servers to reach.
    With --landscape it leads to the Kubernetes API of the landscape, as the one who runs this command.

    Examples:
    gardenbus kubeconfig garden-dev/apollo --expiration 8h --file apollo.yaml
    gardenbus kubeconfig --landscape --file landscape.yaml
    """
    if of_landscape:
        with exit_codes():
            if shoot:
                raise BadRequest("SHOOT, or --landscape: give one of them")
            text = landscape_kubeconfig(find_landscape(*landscape), server, namespace or "default")
        show(text, file, "leads to the landscape")
        return
    with exit_codes():
        if not shoot:
            raise BadRequest("SHOOT: name one, or give --landscape")
        shoot = object_name(shoot, "shoot")
        try:
            seconds = int(parse_duration(expiration).total_seconds())
        except ValueError as error:
            raise BadRequest(f"--expiration: {error}") from error

    async def work(api: ApiClient) -> dict[str, Any]:
        found = await get_object(api, ResourceArgs("shoot", (shoot,), is_namespaced=True), shoot, namespace)
        metadata = as_mapping(found.get("metadata"))
        return await api.call(
            f"adminkubeconfig.{metadata.get('namespace')}.{metadata.get('name')}", {"expirationSeconds": seconds}
        )

    result = run_with_client(work, *landscape)
    show(str(result["kubeconfig"]), file, f"is valid until {result['expirationTimestamp']}")


def show(text: str, file: Path | None, what: str) -> None:
    """Write a kubeconfig to a file, or to standard output."""
    if file is None:
        write_document(text)
        return
    with exit_codes():
        try:
            replace_file(file, text.encode())
        except OSError as error:
            raise BadRequest(f"--file: {file} cannot be written: {error.strerror}") from error
    show_lines([f"{file} {what}"])
