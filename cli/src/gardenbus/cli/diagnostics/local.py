"""Checks of a landscape of this machine: its processes, and the disk that its servers write to."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from gardenbus.cli.local.directory import LandscapeFile, ServiceStatus
from gardenbus.common.diagnostics.findings import DiagnosticFinding, graded
from gardenbus.common.diagnostics.target import DiagnosticsTarget

NEARLY_FULL_DISK, FULL_DISK = 0.9, 0.98


async def processes(target: DiagnosticsTarget, landscape: LandscapeFile | None) -> Sequence[DiagnosticFinding]:
    """Findings for the processes of a local landscape."""
    from gardenbus.cli.local.health import service_rows  # noqa: PLC0415  its HTTP client is slow to import

    if landscape is None:
        return [DiagnosticFinding("processes", "skipped", "they are not of this machine", "ask what runs them")]
    return assess_processes(target, await service_rows(landscape))


def assess_processes(target: DiagnosticsTarget, rows: Sequence[ServiceStatus]) -> list[DiagnosticFinding]:
    """Assess whether processes are ready, and stay so."""
    found: list[DiagnosticFinding] = []
    for row in rows:
        logs = target.command(f"logs {row.name} --tail 20")
        if row.state not in ("ready", "external"):
            trouble = f": {row.trouble}" if row.trouble else ""
            found.append(DiagnosticFinding(f"process {row.name}", "failed", f"{row.state}{trouble}", logs))
        elif row.restarts:
            text = f"ended unasked and was started again {row.restarts} times"
            found.append(DiagnosticFinding(f"process {row.name}", "warning", text, logs))
    return found or [DiagnosticFinding("processes", "ok", f"all {len(rows)} are ready")]


def disk(directory: Path | None) -> list[DiagnosticFinding]:
    """Finding for the room that is left on the disk of a directory."""
    if directory is None:
        return []
    try:
        usage = shutil.disk_usage(directory)
    except OSError as error:
        return [DiagnosticFinding("disk", "warning", f"{directory}: {error.strerror}")]
    state = graded(usage.used / usage.total, warning=NEARLY_FULL_DISK, failed=FULL_DISK)
    text = f"{usage.free / 2**30:.1f} GiB left on this disk"
    return [
        DiagnosticFinding(
            "disk", state, text, "" if state == "ok" else "make room: NATS and Redis stop writing without it"
        )
    ]
