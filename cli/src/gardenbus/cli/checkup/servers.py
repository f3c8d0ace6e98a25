"""NATS and Redis: versions, limits, what is left of them, what they do with what they are given, and their clocks."""

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from gardenbus.cli import streams
from gardenbus.cli.checkup.findings import Finding, graded, some_of
from gardenbus.cli.checkup.patient import ClockReading, Patient, info_of, version_of
from gardenbus.common.adapters.jetstream_inquiry import ServerTold
from gardenbus.common.errors import Unavailable
from gardenbus.common.resources.document import section

LEAST_NATS = (2, 12)
"""Scheduled messages, atomic batches."""
LEAST_REDIS = (7, 0)
"""Functions."""
LEAST_PAYLOAD = 8 * 1024 * 1024
NEARLY_FULL, FULL = 0.8, 0.95
NEARLY_FULL_DISK, FULL_DISK = 0.9, 0.98
SKEW_WARNING_SECONDS, SKEW_FAILED_SECONDS = 1.0, 10.0
SETTINGS = ("maxmemory", "maxmemory-policy", "appendonly", "appendfsync")


async def nats(patient: Patient) -> Sequence[Finding]:
    """NATS itself: version, JetStream, limits, storage."""
    found = judge_nats(patient.inquiry.server)
    account = await streams.account(patient.api)
    found += judge_storage(account)
    return [*found, *_disk(patient.directory)]


def judge_nats(server: ServerTold) -> list[Finding]:
    """What a NATS server says of itself."""
    found: list[Finding] = []
    wanted = ".".join(map(str, LEAST_NATS))
    if version_of(server.version) < LEAST_NATS:
        found.append(Finding("nats version", "failed", server.version, f"run nats-server {wanted} or newer"))
    else:
        found.append(Finding("nats version", "ok", f"{server.version} ({server.name})"))
    if not server.has_jetstream:
        found.append(Finding("nats jetstream", "failed", "JetStream is off", "add `jetstream {}` to nats.conf"))
    if server.max_payload < LEAST_PAYLOAD:
        told = f"messages of {server.max_payload:,} bytes at the most"
        found.append(Finding("nats payload", "warning", told, "set `max_payload: 8MB` in nats.conf"))
    return found


def judge_storage(account: Mapping[str, Any]) -> list[Finding]:
    """How much of what JetStream may take is taken."""
    used = int(account.get("storage") or 0)
    most = int(section(dict(account), "limits").get("max_storage") or -1)
    if most < 0:
        return [Finding("nats storage", "ok", f"{used / 2**20:.1f} MiB used, without a limit of this account")]
    share = used / most if most else 1.0
    told = f"{used / 2**20:.1f} of {most / 2**20:.1f} MiB used ({share:.0%})"
    state = graded(share, warning=NEARLY_FULL, failed=FULL)
    remedy = "" if state == "ok" else "raise max_file_store, or the account's limit"
    return [Finding("nats storage", state, told, remedy)]


def _disk(directory: Path | None) -> list[Finding]:
    if directory is None:
        return []
    try:
        usage = shutil.disk_usage(directory)
    except OSError as error:
        return [Finding("disk", "warning", f"{directory}: {error.strerror}")]
    state = graded(usage.used / usage.total, warning=NEARLY_FULL_DISK, failed=FULL_DISK)
    told = f"{usage.free / 2**30:.1f} GiB left on this disk"
    return [Finding("disk", state, told, "" if state == "ok" else "make room: NATS and Redis stop writing without it")]


async def redis(patient: Patient) -> Sequence[Finding]:
    """Redis itself: version, memory, what it keeps; and our functions there."""
    if patient.redis is None:
        return [Finding("redis", "skipped", "nobody said where it is", "name it with --redis-url")]
    try:
        info = info_of(await patient.redis.command("INFO", "everything"))
    except Unavailable as error:
        return [Finding("redis", "failed", error.message, patient.command("logs redis --tail 20"))]
    try:
        reply = await patient.redis.pipeline([("CONFIG", "GET", name) for name in SETTINGS])
        settings = {str(name.decode()): str(value.decode()) for name, value in (_pair(each) for each in reply)}
    except Unavailable:
        settings = {}
    return [*judge_redis(info, settings), *judge_functions(await patient.redis.libraries(), patient.redis.library)]


def judge_redis(info: Mapping[str, str], settings: Mapping[str, str]) -> list[Finding]:
    """What a Redis server says of itself; `settings` is empty where it does not tell."""
    version = info.get("redis_version", "")
    wanted = ".".join(map(str, LEAST_REDIS))
    found = [Finding("redis version", "ok", version)]
    if version_of(version) < LEAST_REDIS:
        found = [Finding("redis version", "failed", version, f"run redis-server {wanted} or newer")]
    policy = settings.get("maxmemory-policy", info.get("maxmemory_policy", ""))
    if policy and policy != "noeviction":
        told = f"maxmemory-policy is {policy}: a full Redis throws objects away"
        found.append(Finding("redis eviction", "failed", told, "redis-cli CONFIG SET maxmemory-policy noeviction"))
    found.append(_memory(info))
    if not settings:
        found.append(Finding("redis persistence", "skipped", "its settings are not told (CONFIG is refused)"))
    elif settings.get("appendonly") != "yes":
        told = "appendonly is no: what is written dies with the process"
        found.append(Finding("redis persistence", "failed", told, "redis-cli CONFIG SET appendonly yes"))
    elif info.get("aof_last_write_status", "ok") != "ok":
        told = "the last write of the append-only file failed"
        found.append(Finding("redis persistence", "failed", told, "look at the disk of Redis, and at its log"))
    else:
        found.append(Finding("redis persistence", "ok", f"append-only, synced {settings.get('appendfsync')}"))
    if info.get("role") not in (None, "master"):
        told = "this is a replica: it refuses writes"
        found.append(Finding("redis role", "failed", told, "name the primary in GARDENBUS_REDIS_URL"))
    return found


def _memory(info: Mapping[str, str]) -> Finding:
    used, most = int(info.get("used_memory") or 0), int(info.get("maxmemory") or 0)
    if not most:
        most = int(info.get("total_system_memory") or 0)
    share = used / most if most else 0.0
    state = graded(share, warning=NEARLY_FULL, failed=FULL)
    told = f"{used / 2**20:.1f} MiB of {most / 2**20:.0f} MiB used ({share:.0%})"
    remedy = "" if state == "ok" else "give it more memory (maxmemory), before it refuses writes"
    return Finding("redis memory", state, told, remedy)


def judge_functions(libraries: Sequence[str], own: str) -> list[Finding]:
    """Which versions of the store's functions are there; `own` is the one that this command would call."""
    others = [library for library in libraries if library != own]
    if not libraries:
        told = "none is loaded: no service has reached Redis since it started"
        return [Finding("functions", "failed", told, "gardenbus status")]
    if own not in libraries:
        told = f"the services call {some_of(libraries)}, this gardenbus would call {own}"
        return [Finding("functions", "warning", told, "install the services' version of gardenbus, or upgrade them")]
    if others:
        told = f"{own}, beside {some_of(others)}"
        return [Finding("functions", "ok", told)]
    return [Finding("functions", "ok", own)]


async def clocks(patient: Patient) -> Sequence[Finding]:
    """How far the servers' clocks are from this machine's."""
    found: list[Finding] = []
    before = datetime.now(UTC)
    theirs = await streams.server_time(patient.api)
    if theirs is not None:
        found.append(judge_clock("nats", ClockReading(theirs, before, datetime.now(UTC))))
    if patient.redis is not None:
        before = datetime.now(UTC)
        seconds, micros = await patient.redis.command("TIME")
        theirs = datetime.fromtimestamp(int(seconds) + int(micros) / 1e6, UTC)
        found.append(judge_clock("redis", ClockReading(theirs, before, datetime.now(UTC))))
    return found


def judge_clock(name: str, reading: ClockReading) -> Finding:
    """Whether somebody's clock is close enough to ours."""
    ahead = reading.ahead_seconds
    state = graded(abs(ahead), warning=SKEW_WARNING_SECONDS, failed=SKEW_FAILED_SECONDS)
    told = f"{abs(ahead):.3f} s {'ahead of' if ahead > 0 else 'behind'} this machine" if ahead else "as this machine's"
    return Finding(f"clock of {name}", state, told, "" if state == "ok" else "let NTP set the clocks (timedatectl)")


def _pair(reply: Any) -> tuple[bytes, bytes]:
    if isinstance(reply, dict):
        return next(iter(cast("dict[bytes, bytes]", reply).items()), (b"", b""))
    name, value = reply if len(reply) == 2 else (b"", b"")  # noqa: PLR2004 - a name and a value
    return name, value
