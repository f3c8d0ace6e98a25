"""`doctor`: is this landscape well, and what to do if not."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from gardenbus.cli.client.api import CONNECT_SECONDS, OPERATORS_ALONE, ApiClient, connected
from gardenbus.cli.client.store_address import local_landscape, redis_url_of, store_access
from gardenbus.cli.client.targets import LandscapeTarget, credentials_of, find_landscape
from gardenbus.cli.commands.options import LandscapeOptions, Output
from gardenbus.cli.diagnostics import authorities, local
from gardenbus.cli.diagnostics.rules import rules
from gardenbus.cli.diagnostics.scheduling import scheduling
from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile, default_directory, directory_option
from gardenbus.cli.output.console import Exit, Format, counted, exit_codes, new_table, printed, show_lines, show_rows
from gardenbus.common.adapters.addresses import without_user
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.signing_requests import SINGULAR
from gardenbus.common.errors import CredentialsRejected, Forbidden, Unavailable
from gardenbus.common.runtime import event_loop
from gardenbus.diagnostics.checks import CHECKS, DiagnosticCheck, examine
from gardenbus.diagnostics.findings import DiagnosticFinding, FindingState, worst
from gardenbus.diagnostics.target import DiagnosticsTarget

SIGNS: Mapping[FindingState, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "warning": ("WARNING", "yellow"),
    "failed": ("FAILED", "bold red"),
    "skipped": ("skipped", "dim"),
}


def doctor(
    *,
    redis_url: Annotated[str | None, typer.Option("--redis-url", help="Where Redis is (default: as for NATS).")] = None,
    output: Output = Format.TABLE,
    landscape: LandscapeOptions,
) -> None:
    """Check a landscape: servers, streams, work, heartbeats, clocks, versions, shoots' rules; and suggest what to do.

    Ends with 1 when something has failed; warnings do not count.

    Example: gardenbus doctor -o json
    """
    with exit_codes():
        where = find_landscape(*landscape)
        place = where.directory or landscape.directory or default_directory()
        described = local_landscape(where, landscape.directory)
        chosen = redis_url_of(described, redis_url)
        findings = event_loop.run(examined(where, chosen, described, place))
    _print(findings, output)
    if worst(findings) == "failed":
        raise typer.Exit(Exit.FAILED)


async def examined(
    where: LandscapeTarget, redis_url: str | None, landscape: LandscapeFile | None = None, directory: Path | None = None
) -> list[DiagnosticFinding]:
    """Run all checks."""
    try:
        async with _open_target(where, redis_url, landscape, directory) as target:
            return await examine(target, _checks(landscape, directory))
    except CredentialsRejected:
        raise
    except Unavailable as error:
        return [DiagnosticFinding("nats", "failed", error.message, "gardenbus status")]


@contextlib.asynccontextmanager
async def _open_target(
    where: LandscapeTarget, redis_url: str | None, landscape: LandscapeFile | None, directory: Path | None
) -> AsyncGenerator[DiagnosticsTarget]:
    from gardenbus.common.adapters.redis.access import RedisAccess  # noqa: PLC0415
    from gardenbus.common.adapters.redis.connection import RedisConnection  # noqa: PLC0415
    from gardenbus.diagnostics.admin import connect_admin  # noqa: PLC0415  slow to import, as the next

    async with contextlib.AsyncExitStack() as stack:
        api = await stack.enter_async_context(connected(where))
        if api.user:
            raise Forbidden(f"{api.user} may not examine servers and streams: {OPERATORS_ALONE}")
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                admin = await stack.enter_async_context(
                    connect_admin(where.nats_url, "gardenbus-doctor", credentials_of(where))
                )
        except TimeoutError as error:
            shown = without_user(where.nats_url)
            raise Unavailable(f"no NATS at {shown} within {CONNECT_SECONDS:g} s: is it up?") from error
        redis = None
        if redis_url:
            access = RedisAccess() if landscape and redis_url == landscape.redis_url else store_access()
            redis = RedisConnection(redis_url, where.prefix, timeout_seconds=3.0, access=access)
            stack.push_async_callback(redis.close)
        yield DiagnosticsTarget(api, admin, redis, directory_option(directory) if landscape and directory else "")


def _checks(landscape: LandscapeFile | None, directory: Path | None) -> Mapping[str, DiagnosticCheck]:
    """Return the checks of every landscape, and those of one on this machine behind the servers'."""

    async def processes(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
        return [*await local.processes(target, landscape), *local.disks(landscape, directory)]

    async def authority(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
        if landscape is None or directory is None:
            return []
        identity = LandscapeDirectory(directory).identity
        return authorities.findings(identity, await _signing_requests(target), target.command("ca rotate"))

    return {**CHECKS, "rules": rules, "scheduling": scheduling, "authority": authority, "processes": processes}


async def _signing_requests(target: DiagnosticsTarget) -> list[Document]:
    """All signing requests, the record of what was issued."""
    api = ApiClient(target.api.bus, target.api.subjects)
    return await api.items(SINGULAR)


def _print(findings: Sequence[DiagnosticFinding], output: Format) -> None:
    bad = [each for each in findings if each.state in ("warning", "failed")]
    document = {"state": worst(findings), "findings": [each.row for each in findings]}
    if printed(output, document, [each.check for each in bad]):
        return
    table = new_table("", "CHECK", folded="FOUND")
    for each in findings:
        sign, style = SIGNS[each.state]
        table.add_row(Text(sign, style=style), each.check, Text(each.found))
    show_rows(table)
    if suggestions := [each for each in bad if each.suggestion]:
        show_lines(["", "What to do:", *(f"  {each.check}: {each.suggestion}" for each in suggestions)])
    failed = sum(each.state == "failed" for each in bad)
    result = f"{failed} failed, {counted(len(bad) - failed, 'warning')}" if bad else "all is well"
    show_lines(["", f"{counted(len(findings), 'check')}: {result}"])
