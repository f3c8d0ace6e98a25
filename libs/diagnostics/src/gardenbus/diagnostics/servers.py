"""NATS and Redis: versions, limits, what is left of them, what they do with what they are given, and their clocks."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

from gardenbus.common.adapters.nats.micro_service import WRITE_TROUBLE
from gardenbus.common.api import server_versions
from gardenbus.common.api.document import section
from gardenbus.common.errors import Unavailable
from gardenbus.diagnostics import jetstream
from gardenbus.diagnostics.admin import ServerInfo
from gardenbus.diagnostics.findings import DiagnosticFinding, graded, some_of
from gardenbus.diagnostics.replication import assess_replicas, reported_replicas, sentinel_facts
from gardenbus.diagnostics.target import ClockReading, DiagnosticsTarget, info_of, version_of

LEAST_PAYLOAD = 8 * 1024 * 1024
NEARLY_FULL, FULL = 0.8, 0.95
SKEW_WARNING_SECONDS, SKEW_FAILED_SECONDS = 1.0, 10.0
SETTINGS = ("maxmemory", "maxmemory-policy", "appendonly", "appendfsync", "dir", "min-replicas-to-write")


async def nats(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """NATS itself: version, JetStream, limits, storage."""
    found = assess_nats(target.admin.server)
    account = await jetstream.account(target.api)
    services = await target.admin.request_many("$SRV.PING")
    return [*found, *assess_storage(account), assess_writes([section(each, "metadata") for each in services])]


def assess_nats(server: ServerInfo) -> list[DiagnosticFinding]:
    """Assess a NATS server by its own information."""
    found: list[DiagnosticFinding] = []
    if not server_versions.NATS.has(version_of(server.version)):
        suggestion = f"run nats-server {server_versions.NATS}: others have known vulnerabilities"
        found.append(DiagnosticFinding("nats version", "failed", server.version, suggestion))
    else:
        found.append(DiagnosticFinding("nats version", "ok", f"{server.version} ({server.name})"))
    if not server.has_jetstream:
        found.append(
            DiagnosticFinding("nats jetstream", "failed", "JetStream is off", "add `jetstream {}` to nats.conf")
        )
    if server.max_payload < LEAST_PAYLOAD:
        text = f"messages of {server.max_payload:,} bytes at the most"
        found.append(DiagnosticFinding("nats payload", "warning", text, "set `max_payload: 8MB` in nats.conf"))
    return found


def assess_storage(account: Mapping[str, Any]) -> list[DiagnosticFinding]:
    """Assess the storage that JetStream uses of its limit."""
    used = int(account.get("storage") or 0)
    most = int(section(dict(account), "limits").get("max_storage") or -1)
    if most < 0:
        return [
            DiagnosticFinding("nats storage", "ok", f"{used / 2**20:.1f} MiB used, without a limit of this account")
        ]
    share = used / most if most else 1.0
    text = f"{used / 2**20:.1f} of {most / 2**20:.1f} MiB used ({share:.0%})"
    state = graded(share, warning=NEARLY_FULL, failed=FULL)
    suggestion = "" if state == "ok" else "raise max_file_store, or the account's limit"
    return [DiagnosticFinding("nats storage", state, text, suggestion)]


def assess_writes(services: Sequence[Mapping[str, Any]]) -> DiagnosticFinding:
    """Assess whether NATS writes, by what the services (their metadata) find when they publish."""
    troubles = sorted({str(each[WRITE_TROUBLE]) for each in services if each.get(WRITE_TROUBLE)})
    if not troubles:
        return DiagnosticFinding("nats writes", "ok", "no service reports unstored messages")
    suggestion = "make room on the disk of its store, then restart nats-server (`gardenbus up` does the latter itself)"
    return DiagnosticFinding("nats writes", "failed", "; ".join(troubles), suggestion)


async def redis(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Redis itself: version, memory, what it keeps; and our functions there."""
    if target.redis is None:
        skipped = DiagnosticFinding("redis", "skipped", "its address is not known", "name it with --redis-url")
        return [skipped, *await replicas_by_relays(target)]
    try:
        facts = info_of(await target.redis.command("INFO", "everything"))
        info = {**facts, **sentinel_facts(await target.redis.sentinels(), target.redis.other_servers)}
    except Unavailable as error:
        return [DiagnosticFinding("redis", "failed", error.message, target.command("logs redis --tail 20"))]
    try:
        reply = await target.redis.pipeline([("CONFIG", "GET", name) for name in SETTINGS])
        settings = {str(name.decode()): str(value.decode()) for name, value in (_pair(each) for each in reply)}
    except Unavailable:
        settings = {}
    functions = assess_functions(await target.redis.libraries(), target.redis.library)
    replicas = assess_replicas(info, int(settings.get("min-replicas-to-write") or 0))
    return [*assess_redis(info, settings), *replicas, *functions]


async def replicas_by_relays(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Finding for Redis' replicas, as a relay says it, where there is no connection to Redis."""
    return reported_replicas(await target.admin.request_many("$SRV.PING"), target.api.subjects.prefix)


def _redis_version(version: str) -> DiagnosticFinding:
    if not server_versions.REDIS.has(version_of(version)):
        return DiagnosticFinding("redis version", "failed", version, f"run redis-server {server_versions.REDIS}")
    if server_versions.REDIS_WITHOUT_VULNERABILITIES.has(version_of(version)):
        return DiagnosticFinding("redis version", "ok", version)
    mended = f"{version}, where whoever packaged it mended known vulnerabilities as Redis did in"
    return DiagnosticFinding("redis version", "ok", f"{mended} {server_versions.REDIS_WITHOUT_VULNERABILITIES}")


def assess_redis(info: Mapping[str, str], settings: Mapping[str, str]) -> list[DiagnosticFinding]:
    """Assess a Redis server; `settings` is empty when CONFIG is not allowed."""
    version = info.get("redis_version", "")
    found = [_redis_version(version)]
    policy = settings.get("maxmemory-policy", info.get("maxmemory_policy", ""))
    if policy and policy != "noeviction":
        text = f"maxmemory-policy is {policy}: a full Redis evicts objects"
        found.append(
            DiagnosticFinding("redis eviction", "failed", text, "redis-cli CONFIG SET maxmemory-policy noeviction")
        )
    found.append(_memory(info))
    if not settings:
        found.append(
            DiagnosticFinding("redis persistence", "skipped", "its settings are not readable (CONFIG is denied)")
        )
    elif settings.get("appendonly") != "yes":
        text = "appendonly no: data is lost with the process"
        found.append(DiagnosticFinding("redis persistence", "failed", text, "redis-cli CONFIG SET appendonly yes"))
    elif info.get("aof_last_write_status", "ok") != "ok":
        place = settings.get("dir", "")
        text = "Redis cannot write its append-only file, and rejects writes: its disk is full, or failed"
        suggestion = f"make room on the disk of {place or 'its directory'}; it goes on by itself then"
        found.append(DiagnosticFinding("redis persistence", "failed", text, suggestion))
    elif settings.get("appendfsync") == "everysec":
        text = "appendfsync is everysec: acknowledged writes wait in the process while a sync is under way"
        suggestion = "redis-cli CONFIG SET appendfsync always (or no, where only kills are to be survived)"
        found.append(DiagnosticFinding("redis persistence", "warning", text, suggestion))
    else:
        found.append(
            DiagnosticFinding("redis persistence", "ok", f"appendonly yes, appendfsync {settings.get('appendfsync')}")
        )
    if info.get("role") not in (None, "master"):
        text = "this is a replica: it rejects writes"
        found.append(DiagnosticFinding("redis role", "failed", text, "name the primary in GARDENBUS_REDIS_URL"))
    return found


def _memory(info: Mapping[str, str]) -> DiagnosticFinding:
    used, most = int(info.get("used_memory") or 0), int(info.get("maxmemory") or 0)
    if not most:
        most = int(info.get("total_system_memory") or 0)
    share = used / most if most else 0.0
    state = graded(share, warning=NEARLY_FULL, failed=FULL)
    text = f"{used / 2**20:.1f} MiB of {most / 2**20:.0f} MiB used ({share:.0%})"
    suggestion = "" if state == "ok" else "give it more memory (maxmemory), before it rejects writes"
    return DiagnosticFinding("redis memory", state, text, suggestion)


def assess_functions(libraries: Sequence[str], own: str) -> list[DiagnosticFinding]:
    """Assess the versions of the store's functions; `own` is the one that this command would call."""
    others = [library for library in libraries if library != own]
    if not libraries:
        text = "none is loaded: no service has reached Redis since it started"
        return [DiagnosticFinding("functions", "failed", text, "gardenbus status")]
    if own not in libraries:
        text = f"the services call {some_of(libraries)}, this gardenbus would call {own}"
        return [
            DiagnosticFinding(
                "functions", "warning", text, "install the services' version of gardenbus, or upgrade them"
            )
        ]
    if others:
        text = f"{own}, beside {some_of(others)}"
        return [DiagnosticFinding("functions", "ok", text)]
    return [DiagnosticFinding("functions", "ok", own)]


async def clocks(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Offsets of the servers' clocks from this machine's."""
    found: list[DiagnosticFinding] = []
    before = datetime.now(UTC)
    theirs = await jetstream.server_time(target.api)
    if theirs is not None:
        found.append(assess_clock("nats", ClockReading(theirs, before, datetime.now(UTC))))
    if target.redis is not None:
        before = datetime.now(UTC)
        seconds, micros = await target.redis.command("TIME")
        theirs = datetime.fromtimestamp(int(seconds) + int(micros) / 1e6, UTC)
        found.append(assess_clock("redis", ClockReading(theirs, before, datetime.now(UTC))))
    return found


def assess_clock(name: str, reading: ClockReading) -> DiagnosticFinding:
    """Assess the offset of a clock."""
    ahead = reading.ahead_seconds
    state = graded(abs(ahead), warning=SKEW_WARNING_SECONDS, failed=SKEW_FAILED_SECONDS)
    text = f"{abs(ahead):.3f} s {'ahead of' if ahead > 0 else 'behind'} this machine" if ahead else "as this machine's"
    return DiagnosticFinding(
        f"clock of {name}", state, text, "" if state == "ok" else "let NTP set the clocks (timedatectl)"
    )


def _pair(reply: Any) -> tuple[bytes, bytes]:
    if isinstance(reply, dict):
        return next(iter(cast("dict[bytes, bytes]", reply).items()), (b"", b""))
    name, value = reply if len(reply) == 2 else (b"", b"")  # noqa: PLR2004 - a name and a value
    return name, value
