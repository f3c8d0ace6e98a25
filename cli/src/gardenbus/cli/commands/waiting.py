"""`wait`: until objects have come to something."""

from collections.abc import Sequence
from typing import Annotated

import typer

from gardenbus.cli import completions
from gardenbus.cli.awaiting import key_in
from gardenbus.cli.client import ApiClient
from gardenbus.cli.commands.naming import Meant, found, meant_all, subject_tail
from gardenbus.cli.commands.objects import arrived
from gardenbus.cli.commands.options import Directory, Namespace, NatsUrl, Prefix, Selector, Timeout, asked, seconds_of
from gardenbus.cli.goals import Goal, parse_goal
from gardenbus.cli.output import Exit, RefusedByApi, exit_codes, show_lines
from gardenbus.common.errors import BadRequest, NotFound
from gardenbus.common.resources.keys import ObjectKey


def wait(  # noqa: PLR0913 - one parameter an option
    words: Annotated[
        list[str],
        typer.Argument(
            help="KIND NAME…, KIND/NAME…, or KIND (all, or by -l)",
            metavar="KIND [NAME]…",
            autocompletion=completions.objects,
        ),
    ],
    *,
    goal: Annotated[
        str,
        typer.Option(
            "--for",
            help="condition=TYPE[=STATUS], scheduled, reconciled, delete, create, or jsonpath={.path}[=VALUE].",
            metavar="GOAL",
            autocompletion=completions.goals,
        ),
    ],
    timeout: Timeout = "30s",
    selector: Selector = "",
    namespace: Namespace = None,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Wait until objects have come to a goal; a line for each that has.

    Exit code 1 when one has not in time, has Failed, or is not there.

    Examples:
    gardenbus wait shoot apollo -n garden-dev --for scheduled
    gardenbus wait seeds --for condition=GardenletReady --timeout 2m
    gardenbus wait shoot/apollo -n garden-dev --for 'jsonpath={.status.lastOperation.state}=Succeeded'
    """
    with exit_codes():
        wanted, patience, aim = meant_all(words), seconds_of(timeout), parse_goal(goal)
        if selector and any(one.names for one in wanted):
            raise BadRequest("names or -l, not both")

    async def work(api: ApiClient) -> bool:
        keys = [key for one in wanted for key in await _keys(api, one, namespace, selector, aim)]
        return await arrived(api, dict.fromkeys(keys, aim), patience)

    if not asked(work, directory, nats_url, prefix):
        raise typer.Exit(Exit.REFUSED)


async def _keys(api: ApiClient, wanted: Meant, namespace: str | None, selector: str, aim: Goal) -> Sequence[ObjectKey]:
    """Who is waited for. Raises NotFound when there is nobody, unless that is the goal."""
    if wanted.names:
        keys = [await _key(api, wanted, name, namespace, aim) for name in wanted.names]
        return [key for key in keys if key is not None]
    scope = f".{namespace}" if namespace and wanted.is_namespaced else ""
    found = await api.items(f"{wanted.kind}{scope}", {"labelSelector": selector})
    if not found and not aim.reached(None):
        raise NotFound(f"no {wanted.kind} to wait for")
    return [key_in(document) for document in found]


async def _key(api: ApiClient, wanted: Meant, name: str, namespace: str | None, aim: Goal) -> ObjectKey | None:
    try:
        return key_in(await found(api, wanted, name, namespace))
    except (NotFound, RefusedByApi):
        if aim.reached(None):
            show_lines([f"{wanted.kind} {name} {aim.past}"])
            return None
        if aim.past == "created":
            return ObjectKey.from_tail(subject_tail(wanted, name, namespace))
        raise
