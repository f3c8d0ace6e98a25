"""Checks of a landscape of this machine: its processes, and the disk that its servers write to."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile, ServiceStatus, socket_url
from gardenbus.common.adapters.addresses import without_password
from gardenbus.diagnostics.findings import DiagnosticFinding, graded
from gardenbus.diagnostics.target import DiagnosticsTarget

NEARLY_FULL_DISK, FULL_DISK = 0.9, 0.98


async def processes(target: DiagnosticsTarget, landscape: LandscapeFile | None) -> Sequence[DiagnosticFinding]:
    """Findings for the processes of a local landscape."""
    from gardenbus.cli.local.health import service_rows  # noqa: PLC0415  its HTTP client is slow to import

    if landscape is None:
        return [DiagnosticFinding("processes", "skipped", "they are not of this machine", "use what runs them")]
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


def disks(landscape: LandscapeFile | None, directory: Path | None) -> list[DiagnosticFinding]:
    """Findings for the room on the disks that the servers of a local landscape write to."""
    if landscape is None or directory is None:
        return []
    place = LandscapeDirectory(directory)
    deepest = {
        "nats": (place.nats / "jetstream", place.nats, place.path),
        "redis": (place.redis / "appendonlydir", place.redis, place.path),
    }
    on_port = landscape.redis_url.rpartition("/")[0].endswith(f":{landscape.ports.get('redis')}")
    is_cluster = "nats-1" in landscape.ports
    is_own = {  # else it is somebody else's server
        "nats": is_cluster or landscape.nats_url.endswith(f":{landscape.ports.get('nats')}"),
        "redis": is_cluster or on_port or without_password(landscape.redis_url) == socket_url(place.redis_socket),
    }
    return [
        _disk(name, next((path for path in paths if path.exists()), directory))
        for name, paths in deepest.items()
        if is_own[name]
    ]


def _disk(server: str, directory: Path) -> DiagnosticFinding:
    check = f"disk of {server}"
    try:
        usage = shutil.disk_usage(directory)
    except OSError as error:
        return DiagnosticFinding(check, "warning", f"{directory}: {error.strerror}")
    state = graded(1 - usage.free / max(1, usage.total), warning=NEARLY_FULL_DISK, failed=FULL_DISK)
    text = f"{usage.free / 2**30:.1f} GiB left where {directory} lies"
    suggestion = "" if state == "ok" else f"make room: {server} stops writing without it"
    return DiagnosticFinding(check, state, text, suggestion)
