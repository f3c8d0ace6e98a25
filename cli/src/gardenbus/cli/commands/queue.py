"""`queue`, `retry`: what waits, what is being worked on, and trying now."""

import asyncio
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gardenbus.cli import completions
from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.resource_args import get_object, parse_resource
from gardenbus.cli.commands.options import LandscapeOptions, Namespace, Output, run_with_client
from gardenbus.cli.manifests.files import as_mapping
from gardenbus.cli.output.columns import age_of
from gardenbus.cli.output.console import (
    Exit,
    Format,
    errors,
    exit_codes,
    new_table,
    print_error,
    printed,
    show_lines,
    show_rows,
)
from gardenbus.cli.output.live import keep_showing
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.unschedulable import brief_reason, full_reason
from gardenbus.common.errors import BadRequest
from gardenbus.diagnostics import jetstream
from gardenbus.diagnostics.work_queues import WorkRow, work_rows

REFRESH_SECONDS = 2.0
POLL_SECONDS = 0.2
OPERATION = "gardener.cloud/operation"


def queue(  # noqa: PLR0913 - one parameter an option
    *,
    namespace: Namespace = None,
    everywhere: Annotated[bool, typer.Option("-A", "--all-namespaces", help="In all namespaces (the default).")] = True,
    scheduler: Annotated[str, typer.Option("--scheduler", help="Only what this scheduler is to place.")] = "",
    work: Annotated[bool, typer.Option("--work", help="Show the queues of work too, with what is in hand.")] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Shoots shown, at the most.")] = 100,
    follow: Annotated[bool, typer.Option("--watch", "-w", help="Keep it current until Ctrl-C.")] = False,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Show which shoots wait for a seed, why, since when, and when each is tried again.

    Of each reason the essence is shown; -o wide has the whole of it, and `gardenbus explain` the result of every rule.

    Example: gardenbus queue -n garden-dev --work
    """
    del everywhere  # said for the reader's sake: without -n it is all of them

    async def query_queue(api: ApiClient) -> tuple[Document, list[WorkRow]]:
        tail = f"waiting.{scheduler}" if scheduler else "waiting"
        query = {"limit": limit, **({"namespace": namespace} if namespace else {})}
        return await api.call(tail, query), await work_rows(api) if work else []

    async def keep(api: ApiClient) -> None:
        async def picture() -> RenderableType:
            unschedulable, rows = await query_queue(api)
            return Group(*_picture(unschedulable, rows, is_wide=output is Format.WIDE, with_work=work))

        await keep_showing(picture, every_seconds=REFRESH_SECONDS)

    if follow:
        run_with_client(keep, *landscape)
        return
    unschedulable, rows = run_with_client(query_queue, *landscape)
    _print(unschedulable, rows, output, with_work=work)


def _print(unschedulable: Document, rows: list[WorkRow], output: Format, *, with_work: bool) -> None:
    document = {**unschedulable, **({"work": [row.document for row in rows]} if with_work else {})}
    if printed(output, document, [f"{each['namespace']}/{each['name']}" for each in unschedulable["items"]]):
        return
    for part in _picture(unschedulable, rows, is_wide=output is Format.WIDE, with_work=with_work):
        if isinstance(part, Table):
            show_rows(part)
        else:
            show_lines([str(part)])


def _picture(unschedulable: Document, rows: list[WorkRow], *, is_wide: bool, with_work: bool) -> list[Table | Text]:
    parts: list[Table | Text] = [Text(_headline(unschedulable))]
    if unschedulable["items"]:
        parts.append(unschedulable_table(unschedulable["items"], is_wide=is_wide))
    if with_work:
        parts += [Text(""), _work_table(rows)]
    return parts


def _headline(unschedulable: Document) -> str:
    shown, total, undecided = len(unschedulable["items"]), unschedulable["total"], unschedulable["undecided"]
    if not total and not undecided:
        return "no shoot waits for a seed"
    waits = f"{total} {'shoot waits' if total == 1 else 'shoots wait'} for a seed"
    part = f", {shown or 'none'} of them {'is' if shown <= 1 else 'are'} shown" if shown < total else ""
    more = f", {undecided} more {'is' if undecided == 1 else 'are'} not decided yet" if undecided else ""
    return f"{waits}{part}{more}"


def unschedulable_table(items: list[Document], *, is_wide: bool) -> Table:
    """A row a shoot: since when it waits, when it is tried next, and why; wide, with the whole reason."""
    now = datetime.now(UTC)
    titles = ("NAMESPACE", "NAME", "WAITING", "TRIES", "NEXT", *(("SCHEDULER",) if is_wide else ()))
    table = new_table(*titles, folded="WHY")
    for each in items:
        table.add_row(
            each["namespace"],
            each["name"],
            age_of(each["since"], now),
            str(each["attempts"]),
            next_of(each, now),
            *((str(each["schedulerName"]),) if is_wide else ()),
            Text(full_reason(str(each["message"])) if is_wide else brief_reason(str(each["message"]))),
        )
    return table


def next_of(unschedulable: Document, now: datetime) -> str:
    """Time when a shoot is tried next: `in 40s`, `now`, or `on an event` (cluster event) where no timer runs."""
    if unschedulable.get("queued"):
        return "now"
    due = jetstream.parse_server_time(unschedulable.get("nextAttempt"))
    if due is None:
        return "on an event"
    seconds = (due - now).total_seconds()
    return "now" if seconds < 1 else f"in {age_of((now - (due - now)).isoformat(), now)}"


def _work_table(rows: list[WorkRow]) -> Table:
    now = datetime.now(UTC)
    table = new_table("QUEUE", ">WAITING", ">IN HAND", ">REDELIVERED", ">LATER", ">LISTENING", "OLDEST")
    for row in rows:
        counts = (row.pending, row.in_flight, row.redelivered, row.later, row.listening)
        style = "red" if not row.listening and row.pending else "yellow" if row.redelivered else ""
        table.add_row(row.queue, *map(str, counts), age_of(row.oldest, now) if row.oldest else "", style=style)
    return table


# ------------------------------------------------------------------------------------------------------------- retry


def retry(
    words: Annotated[
        list[str],
        typer.Argument(help="shoot NAME…, or NAMESPACE/NAME", metavar="shoot NAME", autocompletion=completions.shoots),
    ],
    *,
    namespace: Namespace = None,
    timeout: Annotated[float, typer.Option(min=0.0, help="Seconds to wait for what comes of it.")] = 10.0,
    landscape: LandscapeOptions,
) -> None:
    """Retry a shoot now: schedule it, or have its gardenlet repeat the failed operation.

    Says what came of it; ends with 1 when it still fits nowhere or there is nothing to try.

    Example: gardenbus retry shoot apollo -n garden-dev
    """
    with exit_codes():
        wanted = parse_resource(words)
        if wanted.kind != "shoot" or not wanted.names:
            raise BadRequest("only shoots are tried again: gardenbus retry shoot NAME")

    async def work(api: ApiClient) -> Exit:
        worst = Exit.DONE
        for name in wanted.names:
            shoot = await get_object(api, wanted, name, namespace)
            worst = max(worst, await _retry(api, shoot, timeout))
        return worst

    if code := run_with_client(work, *landscape):
        raise typer.Exit(code)


async def _retry(api: ApiClient, shoot: Document, timeout_seconds: float) -> Exit:
    metadata = as_mapping(shoot.get("metadata"))
    place, name = str(metadata.get("namespace")), str(metadata.get("name"))
    if not section(shoot, "spec").get("seedName"):
        return await _retry_scheduling(api, place, name, timeout_seconds)
    operation = section(shoot, "status", "lastOperation")
    state = operation.get("state")
    operation_text = f"{operation.get('type')} {state}"
    if state not in ("Failed", "Error"):
        print_error(f"shoot {place}/{name}: there is nothing to retry, its last operation is {operation_text}")
        return Exit.FAILED
    verb = "retry" if state == "Failed" else "reconcile"
    patch = {"metadata": {"annotations": {OPERATION: verb}}}
    patched = await api.call(f"patch.shoot.{place}.{name}", patch)
    generation = as_mapping(patched.get("metadata")).get("generation")
    seed = section(shoot, "spec").get("seedName")
    show_lines([f"shoot {place}/{name}: {operation_text}; {seed} is requested to {verb} it (generation {generation})"])
    return Exit.DONE


async def _retry_scheduling(api: ApiClient, place: str, name: str, timeout_seconds: float) -> Exit:
    """Have a scheduler try a shoot now, and print its decision."""
    before = await _queue_entry(api, place, name)
    retry_request = await api.call(f"retry.shoot.{place}.{name}")
    scheduler = retry_request["schedulerName"]
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    while asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(POLL_SECONDS)
        shoot = await api.call(f"get.shoot.{place}.{name}")
        if seed := section(shoot, "spec").get("seedName"):
            show_lines([f"shoot {place}/{name}: placed on {seed}"])
            return Exit.DONE
        now = await _queue_entry(api, place, name)
        if now is not None and (before is None or now["attempts"] != before["attempts"]):
            print_error(f"shoot {place}/{name} still fits nowhere: {brief_reason(str(now['message']))}")
            due = next_of(now, datetime.now(UTC))
            errors.print(f"  {now['attempts']} tries so far, next {due}; more: gardenbus explain shoot {place}/{name}")
            return Exit.FAILED
    if timeout_seconds <= 0:
        show_lines([f"shoot {place}/{name}: {scheduler} schedules it now"])
        return Exit.DONE
    print_error(
        f"shoot {place}/{name}: no decision within {timeout_seconds:g} s; is a scheduler of the name {scheduler} "
        "up? See: gardenbus queue --work"
    )
    return Exit.OUT_OF_REACH


async def _queue_entry(api: ApiClient, place: str, name: str) -> dict[str, Any] | None:
    """Queue entry of a shoot; None unless it is unschedulable."""
    items: list[dict[str, Any]] = (await api.call("waiting", {"namespace": place, "name": name}))["items"]
    return items[0] if items else None
