"""`version`: of this client, and of the services in a landscape."""

from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version as installed_version
from typing import Annotated, Any

import typer

from gardenbus.cli.client.api import connected
from gardenbus.cli.client.targets import LandscapeTarget, credentials_of, find_landscape
from gardenbus.cli.commands.options import LandscapeOptions
from gardenbus.cli.output.console import PROGRAMS, Format, exit_codes, show_document, show_lines
from gardenbus.cli.output.printers import table_text
from gardenbus.common.errors import BadRequest
from gardenbus.common.runtime import event_loop


def version(
    *,
    client: Annotated[bool, typer.Option("--client", help="Only this client's; without a landscape.")] = False,
    output: Annotated[Format | None, typer.Option("-o", "--output", help="json or yaml.")] = None,
    landscape: LandscapeOptions,
) -> None:
    """Show the version of this client, and those of the landscape's services and its NATS server.

    Exit code 3 when no landscape is reached; the client's version is shown all the same.

    Example: gardenbus version -o json
    """
    with exit_codes():
        if output not in (None, *PROGRAMS):
            raise BadRequest(f"-o {output}: json or yaml")
    versions: dict[str, Any] = {"clientVersion": installed_version("gardenbus")}
    try:
        if not client:
            with exit_codes():
                versions |= _landscape(find_landscape(*landscape))
    finally:
        _print(versions, output)


def _landscape(where: LandscapeTarget) -> dict[str, Any]:

    async def query() -> dict[str, Any]:
        from gardenbus.diagnostics.admin import connect_admin  # noqa: PLC0415  slow to import

        async with connected(where), connect_admin(where.nats_url, "gardenbus-version", credentials_of(where)) as admin:
            responses = await admin.request_many("$SRV.PING")
            return {"services": service_versions(responses), "natsVersion": admin.server.version}

    return event_loop.run(query())


def service_versions(responses: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Name, version and number of replicas of each service that responded. Pure."""
    counts = Counter((str(each.get("name")), str(each.get("version"))) for each in responses)
    return [{"name": name, "version": each, "replicas": count} for (name, each), count in sorted(counts.items())]


def _print(versions: dict[str, Any], output: Format | None) -> None:
    if output is not None:
        show_document(versions, output)
        return
    rows = [["client", versions["clientVersion"], ""]]
    rows += [[each["name"], each["version"], str(each["replicas"])] for each in versions.get("services", [])]
    if nats_version := versions.get("natsVersion"):
        rows.append(["NATS server", nats_version, ""])
    show_lines(table_text(["COMPONENT", "VERSION", "REPLICAS"], rows).splitlines())
