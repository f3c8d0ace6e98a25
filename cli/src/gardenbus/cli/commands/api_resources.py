"""`api-resources`: the kinds that a landscape serves, and what acts on them."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.commands.options import LandscapeOptions, Output, run_with_client
from gardenbus.cli.output.console import Format, exit_codes, printed, show_lines
from gardenbus.cli.output.printers import table_text
from gardenbus.common.errors import BadRequest

NOTHING = "nothing"

ResourceRow = dict[str, Any]


def api_resources(
    *,
    namespaced: Annotated[
        str | None,
        typer.Option("--namespaced", help="true: only kinds in namespaces; false: only others.", metavar="true|false"),
    ] = None,
    api_group: Annotated[
        str | None, typer.Option("--api-group", help="Only kinds of this group (the core group: '').")
    ] = None,
    no_headers: Annotated[bool, typer.Option("--no-headers", help="Rows without titles.")] = False,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Show the kinds that can be stored: names, groups, whether in namespaces, and what acts on them.

    Of a kind that nothing acts on the objects are stored, announced and given back, and that is all.

    Examples:
    gardenbus api-resources --api-group core.gardener.cloud
    gardenbus api-resources --namespaced=false -o wide
    """
    with exit_codes():
        wanted_scope = scope_of(namespaced)

    async def work(api: ApiClient) -> Sequence[ResourceRow]:
        return await api.call("kinds")

    served = run_with_client(work, *landscape)
    with exit_codes():
        _print(selected(served, namespaced=wanted_scope, group=api_group), output, headers=not no_headers)


def scope_of(text: str | None) -> bool | None:
    """Read the value of `--namespaced`. Raises BadRequest."""
    if text not in (None, "true", "false"):
        raise BadRequest(f"--namespaced={text}: true or false")
    return None if text is None else text == "true"


def selected(resources: Sequence[ResourceRow], *, namespaced: bool | None, group: str | None) -> Sequence[ResourceRow]:
    """The resources in (or not in) namespaces and of a group, where these are given, sorted by group and name."""
    found = [
        each
        for each in resources
        if (namespaced is None or bool(each.get("namespaced")) == namespaced)
        and (group is None or group_of(each) == group)
    ]
    return sorted(found, key=lambda each: (group_of(each), str(each.get("plural"))))


def group_of(resource: ResourceRow) -> str:
    """Its API group; "" for the core group."""
    return str(resource.get("apiVersion") or "").rpartition("/")[0]


def _print(resources: Sequence[ResourceRow], output: Format, *, headers: bool) -> None:
    names = [".".join(filter(None, (each["plural"], group_of(each)))) for each in resources]
    if printed(output, {"kind": "APIResourceList", "resources": list(resources)}, names):
        return
    titles = ["NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "ACTED ON BY"]
    rows = [_row(each) for each in resources]
    if output is Format.WIDE:
        titles.append("FIELDS")
        rows = [[*row, "checked" if each.get("understood") else ""] for row, each in zip(rows, resources, strict=True)]
    show_lines(table_text(titles if headers else None, rows).splitlines())


def _row(resource: ResourceRow) -> list[str]:
    return [
        str(resource["plural"]),
        ",".join(resource.get("shortNames") or ()),
        str(resource["apiVersion"]),
        str(bool(resource.get("namespaced"))).lower(),
        str(resource["kind"]),
        str(resource.get("actsOn") or NOTHING),
    ]
