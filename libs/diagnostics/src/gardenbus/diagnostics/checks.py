"""The table of checks, and their run: one that cannot be made has failed, and keeps no other from being made."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from gardenbus.common.errors import GardenbusError
from gardenbus.diagnostics import queues, servers, services, static_credentials
from gardenbus.diagnostics.findings import DiagnosticFinding
from gardenbus.diagnostics.target import DiagnosticsTarget

CHECK_SECONDS = 20.0

DiagnosticCheck = Callable[[DiagnosticsTarget], Awaitable[Sequence[DiagnosticFinding]]]

CHECKS: Mapping[str, DiagnosticCheck] = {
    "nats": servers.nats,
    "redis": servers.redis,
    "streams": queues.configuration,
    "api": services.api,
    "versions": services.versions,
    "identity": services.identity,
    "outbox": queues.outbox,
    "work": queues.work,
    "rejected": queues.rejections,
    "unknown": services.unknown_objects,
    "lost": services.lost_messages,
    "recovery": services.recovery,
    "heartbeats": services.gardenlets,
    "clocks": servers.clocks,
    "credentials": static_credentials.static_credentials,
}
"""Checks that need a connection only, in the order in which they are shown."""


async def examine(target: DiagnosticsTarget, checks: Mapping[str, DiagnosticCheck] = CHECKS) -> list[DiagnosticFinding]:
    """Make all checks at once; their findings in order."""
    made = await asyncio.gather(*(_made(name, check, target) for name, check in checks.items()))
    return [finding for findings in made for finding in findings]


async def _made(name: str, check: DiagnosticCheck, target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check(target)
    except TimeoutError:
        return [DiagnosticFinding(name, "failed", f"no response within {CHECK_SECONDS:g} s", target.command("status"))]
    except GardenbusError as error:
        return [DiagnosticFinding(name, "failed", error.message, target.command("status"))]
