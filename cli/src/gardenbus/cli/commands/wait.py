"""`wait`: until objects have come to something."""

from collections.abc import Sequence
from typing import Annotated

import typer

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.api_error import ApiError
from gardenbus.cli.client.resource_args import ResourceArgs, get_object, parse_resources, subject_tail
from gardenbus.cli.commands.apply import wait_for_conditions
from gardenbus.cli.commands.options import (
    AllNamespaces,
    LandscapeOptions,
    Namespace,
    Selector,
    Timeout,
    check_namespaces,
    run_with_client,
    seconds_of,
)
from gardenbus.cli.output.console import exit_codes, fail_unless, show_lines
from gardenbus.cli.wait.conditions import WaitCondition, parse_condition
from gardenbus.cli.wait.waiter import key_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest, NotFound


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
    condition_text: Annotated[
        str,
        typer.Option(
            "--for",
            help="condition=TYPE[=STATUS], scheduled, reconciled, delete, create, or jsonpath={.path}[=VALUE].",
            metavar="GOAL",
            autocompletion=completions.wait_conditions,
        ),
    ],
    timeout: Timeout = "30s",
    selector: Selector = "",
    namespace: Namespace = None,
    all_namespaces: AllNamespaces = False,
    landscape: LandscapeOptions,
) -> None:
    """Wait until objects have come to a goal; a line for each that has.

    Exit code 1 when one has not in time, has Failed, or is not there.

    Examples:
    gardenbus wait shoot apollo -n garden-dev --for scheduled
    gardenbus wait seeds --for condition=GardenletReady --timeout 2m
    gardenbus wait shoot/apollo -n garden-dev --for 'jsonpath={.status.lastOperation.state}=Succeeded'
    """
    with exit_codes():
        check_namespaces(namespace, all_namespaces=all_namespaces)
        wanted, timeout_seconds, wait_condition = (
            parse_resources(words),
            seconds_of(timeout),
            parse_condition(condition_text),
        )
        if selector and any(one.names for one in wanted):
            raise BadRequest("names or -l, not both")

    async def work(api: ApiClient) -> bool:
        keys = [key for one in wanted for key in await _keys(api, one, namespace, selector, wait_condition)]
        return await wait_for_conditions(api, dict.fromkeys(keys, wait_condition), timeout_seconds)

    fail_unless(run_with_client(work, *landscape))


async def _keys(
    api: ApiClient, wanted: ResourceArgs, namespace: str | None, selector: str, wait_condition: WaitCondition
) -> Sequence[ObjectKey]:
    """Keys of the objects to wait for. Raises NotFound when there are none, unless the condition is about absence."""
    if wanted.names:
        keys = [await _key(api, wanted, name, namespace, wait_condition) for name in wanted.names]
        return [key for key in keys if key is not None]
    scope = f".{namespace}" if namespace and wanted.is_namespaced else ""
    get_object = await api.items(f"{wanted.kind}{scope}", {"labelSelector": selector})
    if not get_object and not wait_condition.reached(None):
        raise NotFound(f"no {wanted.kind} to wait for")
    return [key_of(document) for document in get_object]


async def _key(
    api: ApiClient, wanted: ResourceArgs, name: str, namespace: str | None, wait_condition: WaitCondition
) -> ObjectKey | None:
    try:
        return key_of(await get_object(api, wanted, name, namespace))
    except (NotFound, ApiError):
        if wait_condition.reached(None):
            show_lines([f"{wanted.kind} {name} {wait_condition.past}"])
            return None
        if wait_condition.past == "created":
            return ObjectKey.from_tail(subject_tail(wanted, name, namespace))
        raise
