"""`doctor`: is this landscape well, and what to do if not."""

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from gardenbus.cli.client.api import CONNECT_SECONDS, LandscapeTarget, connected, find_landscape
from gardenbus.cli.commands.options import Directory, NatsUrl, Output, Prefix
from gardenbus.cli.contexts.addresses import check_redis_url, without_user
from gardenbus.cli.diagnostics import queues, servers, services
from gardenbus.cli.diagnostics.findings import DiagnosticFinding, State, worst
from gardenbus.cli.diagnostics.target import DiagnosticsTarget
from gardenbus.cli.local.directory import DEFAULT_DIRECTORY, LandscapeDirectory, LandscapeFile, directory_option
from gardenbus.cli.output.console import (
    Exit,
    Format,
    counted,
    exit_codes,
    new_table,
    show_document,
    show_lines,
    show_rows,
)
from gardenbus.common.errors import GardenbusError, Unavailable

CHECK_SECONDS = 20.0

Check = Callable[[DiagnosticsTarget], Awaitable[Sequence[DiagnosticFinding]]]

CHECKS: Mapping[str, Check] = {
    "nats": servers.nats,
    "redis": servers.redis,
    "streams": queues.configuration,
    "api": services.api,
    "processes": services.processes,
    "versions": services.versions,
    "outbox": queues.outbox,
    "work": queues.work,
    "rejected": queues.rejections,
    "heartbeats": services.gardenlets,
    "clocks": servers.clocks,
}
SIGNS: Mapping[State, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "warning": ("WARNING", "yellow"),
    "failed": ("FAILED", "bold red"),
    "skipped": ("skipped", "dim"),
}


def doctor(
    *,
    redis_url: Annotated[str | None, typer.Option("--redis-url", help="Where Redis is (default: as for NATS).")] = None,
    output: Output = Format.TABLE,
    directory: Directory = None,
    nats_url: NatsUrl = None,
    prefix: Prefix = None,
) -> None:
    """Examine a landscape: servers, streams, work, heartbeats, clocks, versions; and say what to do.

    Ends with 1 when something has failed; warnings do not count.

    Example: gardenbus doctor -o json
    """
    with exit_codes():
        where = find_landscape(directory, nats_url, prefix)
        place = where.directory or directory or DEFAULT_DIRECTORY
        landscape = LandscapeDirectory(place).read()
        if landscape is not None and landscape.nats_url != where.nats_url:
            landscape = None
        chosen = redis_url or (landscape.redis_url if landscape else os.environ.get("GARDENBUS_REDIS_URL"))
        if chosen:
            check_redis_url(chosen)
        findings = asyncio.run(examined(where, chosen, landscape, place))
    _print(findings, output)
    if worst(findings) == "failed":
        raise typer.Exit(Exit.FAILED)


async def examined(
    where: LandscapeTarget, redis_url: str | None, landscape: LandscapeFile | None = None, directory: Path | None = None
) -> list[DiagnosticFinding]:
    """Run all checks; a check that cannot be made has failed, and keeps no other from being made."""
    findings: list[DiagnosticFinding] = []
    try:
        async with _open_target(where, redis_url, landscape, directory) as target:
            for found in await asyncio.gather(*(_made(name, check, target) for name, check in CHECKS.items())):
                findings += found
    except Unavailable as error:
        findings.append(DiagnosticFinding("nats", "failed", error.message, "gardenbus status"))
    return findings


@contextlib.asynccontextmanager
async def _open_target(
    where: LandscapeTarget, redis_url: str | None, landscape: LandscapeFile | None, directory: Path | None
) -> AsyncGenerator[DiagnosticsTarget]:
    from gardenbus.common.adapters.nats.admin import connect_admin  # noqa: PLC0415  slow to import, as the next
    from gardenbus.common.adapters.redis.connection import RedisConnection  # noqa: PLC0415

    async with contextlib.AsyncExitStack() as stack:
        api = await stack.enter_async_context(connected(where))
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                admin = await stack.enter_async_context(connect_admin(where.nats_url, "gardenbus-doctor"))
        except TimeoutError as error:
            shown = without_user(where.nats_url)
            raise Unavailable(f"no NATS at {shown} within {CONNECT_SECONDS:g} s: is it up?") from error
        redis = RedisConnection(redis_url, where.prefix, timeout_seconds=3.0) if redis_url else None
        if redis is not None:
            stack.push_async_callback(redis.close)
        if landscape is None or directory is None:
            yield DiagnosticsTarget(api, admin, redis, None)
        else:
            yield DiagnosticsTarget(api, admin, redis, landscape, directory, directory_option(directory))


async def _made(name: str, check: Check, target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check(target)
    except TimeoutError:
        return [DiagnosticFinding(name, "failed", f"no answer within {CHECK_SECONDS:g} s", target.command("status"))]
    except GardenbusError as error:
        return [DiagnosticFinding(name, "failed", error.message, target.command("status"))]


def _print(findings: Sequence[DiagnosticFinding], output: Format) -> None:
    if output in (Format.JSON, Format.YAML):
        show_document({"state": worst(findings), "findings": [each.row for each in findings]}, output)
        return
    if output is Format.NAME:
        show_lines([each.check for each in findings if each.state in ("warning", "failed")])
        return
    table = new_table("", "CHECK", folded="FOUND")
    for each in findings:
        sign, style = SIGNS[each.state]
        table.add_row(Text(sign, style=style), each.check, Text(each.found))
    show_rows(table)
    suggestions = [each for each in findings if each.suggestion and each.state in ("warning", "failed")]
    if suggestions:
        show_lines(["", "What to do:", *(f"  {each.check}: {each.suggestion}" for each in suggestions)])
    bad = sum(each.state == "failed" for each in findings)
    warned = sum(each.state == "warning" for each in findings)
    seen = counted(len(findings), "check")
    show_lines(["", f"{seen}: {bad} failed, {counted(warned, 'warning')}" if bad or warned else f"{seen}: all is well"])
