"""Services, their versions and processes; gardenlets with their heartbeats and clocks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from gardenbus.cli import streams
from gardenbus.cli.checkup.findings import Finding, some_of
from gardenbus.cli.checkup.patient import Patient
from gardenbus.cli.checkup.servers import SKEW_FAILED_SECONDS, SKEW_WARNING_SECONDS
from gardenbus.cli.documents import as_mapping
from gardenbus.cli.supervisor.picture import ServiceRow
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import Delivered, ReplayDone
from gardenbus.common.resources.keys import CANARY_LEASE

DEFAULT_LEASE_SECONDS = 40.0
LATE_SHARE = 0.5
"""Of the life of a Lease: a heartbeat that is older is late."""


class Heartbeat(NamedTuple):
    """The last renewal of a seed's Lease: how old it is, and how far its gardenlet's clock is ahead of NATS'."""

    seed: str
    age_seconds: float
    ahead_seconds: float


async def api(patient: Patient) -> Sequence[Finding]:
    """Whether an apiserver answers, and what it says there is."""
    try:
        census = await patient.api.census(timeout_seconds=5.0)
    except GardenbusError as error:
        return [Finding("api", "failed", error.message, patient.command("logs apiserver --tail 20"))]
    told = f"{census.get('objects.seed', 0)} seeds, {census.get('objects.shoot', 0)} shoots"
    return [Finding("api", "ok", f"answers: {told}, {census.get('shoots.waiting', 0)} waiting")]


async def versions(patient: Patient) -> Sequence[Finding]:
    """Which services of the landscape answer as micro services, and whether their versions agree."""
    answers = await patient.inquiry.all_answers("$SRV.PING")
    return judge_versions([(str(each.get("name")), str(each.get("version"))) for each in answers])


def judge_versions(services: Sequence[tuple[str, str]]) -> list[Finding]:
    """Whether all services are of one version."""
    if not services:
        return [Finding("versions", "failed", "no service answers on $SRV.PING", "gardenbus status")]
    by_version: dict[str, list[str]] = {}
    for name, version in sorted(services):
        by_version.setdefault(version, []).append(name)
    told = "; ".join(f"{version}: {some_of(_counted(names), 9)}" for version, names in sorted(by_version.items()))
    if len(by_version) > 1:
        return [Finding("versions", "warning", told, "finish the upgrade: all services of one version")]
    return [Finding("versions", "ok", told)]


def _counted(names: Sequence[str]) -> list[str]:
    return [name if count == 1 else f"{count} {name}" for name, count in Counter(names).items()]


async def processes(patient: Patient) -> Sequence[Finding]:
    """Whether the processes of a local landscape are ready, and stay so."""
    from gardenbus.cli.supervisor.health import service_rows  # noqa: PLC0415  its HTTP client is slow to import

    if patient.landscape is None:
        return [Finding("processes", "skipped", "they are not of this machine", "ask what runs them")]
    return judge_processes(patient, await service_rows(patient.landscape))


def judge_processes(patient: Patient, rows: Sequence[ServiceRow]) -> list[Finding]:
    """Whether processes are ready, and stay so."""
    found: list[Finding] = []
    for row in rows:
        logs = patient.command(f"logs {row.name} --tail 20")
        if row.state not in ("ready", "external"):
            trouble = f": {row.trouble}" if row.trouble else ""
            found.append(Finding(f"process {row.name}", "failed", f"{row.state}{trouble}", logs))
        elif row.restarts:
            told = f"ended unasked and was started again {row.restarts} times"
            found.append(Finding(f"process {row.name}", "warning", told, logs))
    return found or [Finding("processes", "ok", f"all {len(rows)} are ready")]


async def gardenlets(patient: Patient) -> Sequence[Finding]:
    """Whether heartbeats come in time, and what they tell of the gardenlets' clocks."""
    seeds = [str(as_mapping(each.get("metadata")).get("name")) for each in await patient.api.items("seed")]
    now = await streams.server_time(patient.api) or datetime.now(UTC)
    stream = patient.api.subjects.stream("LEASES")
    state = next((each for each in await streams.streams(patient.api) if each.name == stream), None)
    life = float(state.config.get("max_age") or 0) / 1e9 if state else 0.0
    return judge_heartbeats(patient, seeds, await heartbeats(patient, now), life or DEFAULT_LEASE_SECONDS)


async def heartbeats(patient: Patient, now: datetime) -> dict[str, Heartbeat]:
    """The last heartbeat of each seed, `now` being the bus' time."""
    subjects = patient.api.subjects
    found: dict[str, Heartbeat] = {}
    async with patient.api.bus.follow(
        subjects.stream("LEASES"), [subjects.lease("*")], last_per_subject=True
    ) as follower:
        async for event in follower:
            if isinstance(event, ReplayDone):
                break
            if isinstance(event, Delivered) and event.marker is None:
                seed = event.subject.removeprefix(subjects.lease(""))
                if seed != CANARY_LEASE:
                    found[seed] = _heartbeat(seed, event, now)
    return found


def _heartbeat(seed: str, event: Delivered, now: datetime) -> Heartbeat:
    try:
        lease = msgspec.json.decode(event.body, type=dict[str, Any])
    except msgspec.MsgspecError:
        lease = {}
    renewed = streams.moment(as_mapping(lease.get("spec")).get("renewTime")) or event.at
    return Heartbeat(seed, max(0.0, (now - event.at).total_seconds()), (renewed - event.at).total_seconds())


def judge_heartbeats(
    patient: Patient, seeds: Sequence[str], beats: Mapping[str, Heartbeat], life_seconds: float
) -> list[Finding]:
    """Seeds without a Lease, Leases that are late, and clocks that differ."""
    found: list[Finding] = []
    silent = sorted(seed for seed in seeds if seed not in beats)
    late = sorted(seed for seed, beat in beats.items() if beat.age_seconds > life_seconds * LATE_SHARE)
    if silent:
        remedy = patient.command(f"describe seed {silent[0]}") + "; is its gardenlet running?"
        found.append(Finding("heartbeats", "failed", f"none of {some_of(silent)}", remedy))
    if late:
        told = f"late: {some_of(f'{seed} ({beats[seed].age_seconds:.0f} s)' for seed in late)}"
        found.append(Finding("heartbeats", "warning", told, patient.command("logs gardenlet --since 5m")))
    if not found:
        oldest = max((beat.age_seconds for beat in beats.values()), default=0.0)
        found.append(Finding("heartbeats", "ok", f"{len(beats)} seeds, the oldest {oldest:.0f} s ago"))
    astray = sorted(beats.values(), key=lambda beat: (-abs(beat.ahead_seconds), beat.seed))
    astray = [beat for beat in astray if abs(beat.ahead_seconds) >= SKEW_WARNING_SECONDS]
    if astray:
        is_far = abs(astray[0].ahead_seconds) >= SKEW_FAILED_SECONDS
        told = some_of(f"{beat.seed} {beat.ahead_seconds:+.1f} s" for beat in astray)
        remedy = "let NTP set the gardenlets' clocks"
        found.append(Finding("clocks of gardenlets", "failed" if is_far else "warning", told, remedy))
    elif beats:
        found.append(Finding("clocks of gardenlets", "ok", "as NATS' clock"))
    return found
