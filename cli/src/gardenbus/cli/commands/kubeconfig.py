"""`kubeconfig`: a way into a shoot's cluster, for a while."""

from pathlib import Path
from typing import Annotated, Any

import typer

from gardenbus.agent.files import replace_file
from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.resource_args import ResourceArgs, get_object, object_name
from gardenbus.cli.commands.options import LandscapeOptions, Namespace, run_with_client
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.console import exit_codes, show_lines
from gardenbus.cli.output.terminal import write_document
from gardenbus.common.api.durations import parse_duration
from gardenbus.common.errors import BadRequest


def kubeconfig(
    shoot: Annotated[
        str,
        typer.Argument(
            help="The shoot: NAME, or NAMESPACE/NAME", metavar="SHOOT", autocompletion=completions.shoot_names
        ),
    ],
    *,
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

    Example: gardenbus kubeconfig garden-dev/apollo --expiration 8h --file apollo.yaml
    """
    with exit_codes():
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
    text = str(result["kubeconfig"])
    if file is None:
        write_document(text)
        return
    replace_file(file, text.encode())
    show_lines([f"{file} is valid until {result['expirationTimestamp']}"])
