"""Services and their versions; gardenlets with their heartbeats and clocks."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from gardenbus.common.api.decoding import decode_json
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.document_parts import mappings
from gardenbus.common.api.garden.rows import condition
from gardenbus.common.api.garden.scheduling_profiles import (
    PLUGIN_API_VERSION,
    PROFILE_GIVEN_UP,
    PROFILE_PLUGINS,
    PROFILE_WARNING,
)
from gardenbus.common.api.garden.seeds import GARDENLET_READY
from gardenbus.common.api.garden.shoots import DEFAULT_SCHEDULER, SPEC_REVERTED
from gardenbus.common.api.identity.accounts import AUTH_CALLOUT, COMES_IN_BY
from gardenbus.common.api.identity.permissions import covers
from gardenbus.common.api.keys import PROBE_LEASE
from gardenbus.common.errors import GardenbusError, Unavailable
from gardenbus.common.ports.bus import ReplayDone, StreamMessage
from gardenbus.common.ports.clock import parse_timestamp
from gardenbus.common.ports.stream_history import LOSS_SHOWN_FOR, StreamLoss
from gardenbus.diagnostics import jetstream
from gardenbus.diagnostics.findings import DiagnosticFinding, some_of
from gardenbus.diagnostics.servers import SKEW_FAILED_SECONDS, SKEW_WARNING_SECONDS
from gardenbus.diagnostics.target import DiagnosticsTarget

if TYPE_CHECKING:  # slow to import, and nothing here makes one
    from gardenbus.diagnostics.admin import AdminClient

DEFAULT_LEASE_SECONDS = 40.0
EXAMINED_SEEDS = 20
"""Silent seeds whose certificates are looked at."""

LATE_SHARE = 0.5
"""Of the life of a Lease: a heartbeat that is older is late."""

EVENTS_KEPT_FOR = timedelta(hours=24)
REVERTED_READ = 500
"""Events about reverted shoots that are read at the most."""


class SeedHeartbeat(NamedTuple):
    """The last renewal of a seed's Lease: how old it is, and how far its gardenlet's clock is ahead of NATS'."""

    seed: str
    age_seconds: float
    ahead_seconds: float


async def api(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Finding for the apiserver: whether it responds, and its counts of objects."""
    try:
        census = await target.api.census(timeout_seconds=5.0)
    except GardenbusError as error:
        return [DiagnosticFinding("api", "failed", error.message, target.command("logs apiserver --tail 20"))]
    text = f"{census.get('objects.seed', 0)} seeds, {census.get('objects.shoot', 0)} shoots"
    return [DiagnosticFinding("api", "ok", f"responds: {text}, {census.get('shoots.waiting', 0)} waiting")]


class UnknownHere(msgspec.Struct):
    """An object that runs at an agent, as the apiserver lists it."""

    kind: str
    namespace: str
    name: str
    seed: str
    adoptable: bool = False

    @property
    def resource(self) -> str:
        """Kind and name as commands take them."""
        return f"{self.kind} {self.namespace}/{self.name}"


class _UnknownList(msgspec.Struct):
    items: list[UnknownHere]


class _UnknownResponse(msgspec.Struct):
    result: _UnknownList


async def unknown_objects(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Finding for what runs at agents where the store neither has it nor remembers that it left."""
    reply = await target.api.bus.request(target.api.subjects.api("unknown"), b"", timeout_seconds=5.0)
    try:
        found = decode_json(reply, _UnknownResponse).result.items
    except msgspec.DecodeError:
        return [DiagnosticFinding("unknown", "skipped", "no apiserver reports unknown objects")]
    return assess_unknown(target, found)


def assess_unknown(target: DiagnosticsTarget, found: Sequence[UnknownHere]) -> list[DiagnosticFinding]:
    """Finding for the unknown objects and their seeds: the first 20, and how many more there are."""
    if not found:
        return [DiagnosticFinding("unknown", "ok", "all that runs on seeds and in member clusters is known")]
    text = some_of((f"{each.resource} on {each.seed}" for each in found), most=20)
    first = found[0]
    verbs = ("adopt", "forget") if first.adoptable else ("forget",)
    what = f"it runs where the store neither has it nor remembers that it left: {text}"
    commands = " or ".join(target.command(f"{verb} {first.resource} --seed {first.seed}") for verb in verbs)
    return [DiagnosticFinding("unknown", "warning", what, commands)]


class RecoveryHere(msgspec.Struct):
    """A recovery of the store, as the apiserver reports it."""

    message: str
    silent: list[str]


class _RecoveryResult(msgspec.Struct):
    recovery: RecoveryHere | None


class _RecoveryResponse(msgspec.Struct):
    result: _RecoveryResult


class _ErrorBody(msgspec.Struct):
    code: int
    message: str


class _ErrorResponse(msgspec.Struct):
    error: _ErrorBody


async def recovery(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Finding for a store that no relay has opened, or that was restored or rebuilt and waits for its seeds."""
    reply = await target.api.bus.request(target.api.subjects.api("recovery"), b"", timeout_seconds=5.0)
    try:
        found = decode_json(reply, _RecoveryResponse).result.recovery
    except msgspec.DecodeError:
        return [_without_recovery(reply)]
    return assess_recovery(target, found)


def _without_recovery(reply: bytes) -> DiagnosticFinding:
    with contextlib.suppress(msgspec.DecodeError):
        error = decode_json(reply, _ErrorResponse).error
        if error.code == Unavailable.code:
            advice = "wait: a relay opens the store within seconds of its start, if one runs: gardenbus status"
            return DiagnosticFinding("recovery", "failed", error.message, advice)
    return DiagnosticFinding("recovery", "skipped", "no apiserver reports whether the store recovers")


def assess_recovery(target: DiagnosticsTarget, found: RecoveryHere | None) -> list[DiagnosticFinding]:
    """Finding for a recovery: the silent Seeds, and the command that goes on without them."""
    if found is None:
        return [DiagnosticFinding("recovery", "ok", "the store waits for no seed")]
    what = f"{found.message}; silent: {some_of(found.silent, most=20)}" if found.silent else found.message
    what = f"shoots ordered before are not placed, none moves, no seed is removed: {what}"
    advice = "wait: it ends by itself"
    if found.silent:
        command = target.command(f"recovery --without {found.silent[0]}")
        advice = f"start their gardenlets, or, where nothing runs any more, {command}"
    return [DiagnosticFinding("recovery", "warning", what, advice)]


class _SeedResponse(msgspec.Struct):
    result: Document


class _EventList(msgspec.Struct):
    items: list[Document]


class _EventResponse(msgspec.Struct):
    result: _EventList


class _LossList(msgspec.Struct):
    items: list[StreamLoss]


class _LossResponse(msgspec.Struct):
    result: _LossList


async def lost_messages(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Finding for what was acknowledged, and then lost with a stream or a store that went back."""
    reply = await target.api.bus.request(target.api.subjects.api("lost"), b"", timeout_seconds=5.0)
    try:
        losses = decode_json(reply, _LossResponse).result.items
    except msgspec.DecodeError:
        return [DiagnosticFinding("lost", "skipped", "no apiserver reports lost messages")]
    now = datetime.now(UTC)
    was_restored = any(loss.of_store and _age(loss, now) < EVENTS_KEPT_FOR for loss in losses)
    return [*assess_losses(losses, now), *(await _reverted_shoots(target) if was_restored else ())]


def assess_losses(losses: Sequence[StreamLoss], now: datetime) -> list[DiagnosticFinding]:
    """Findings for the losses of the last days, the latest first."""
    shown = [loss for loss in losses if _age(loss, now) < LOSS_SHOWN_FOR]
    findings = [
        DiagnosticFinding(
            "lost",
            "warning",
            f"{loss.text}; noticed {loss.noticed_at}",
            _after_loss(loss.stream),
        )
        for loss in reversed(shown)
    ]
    return findings or [DiagnosticFinding("lost", "ok", "no stream has lost messages in the last 7 days")]


def _age(loss: StreamLoss, now: datetime) -> timedelta:
    return now - datetime.fromisoformat(loss.noticed_at)


async def _reverted_shoots(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    query = msgspec.json.encode({"fieldSelector": f"reason={SPEC_REVERTED}", "limit": REVERTED_READ})
    reply = await target.api.bus.request(target.api.subjects.api("list.event"), query, timeout_seconds=10.0)
    try:
        events = decode_json(reply, _EventResponse).result.items
    except msgspec.DecodeError:  # of those who may not read Events
        return []
    return assess_reverted(events)


def assess_reverted(events: Sequence[Document]) -> list[DiagnosticFinding]:
    """Finding for the shoots of which seeds ran a later generation than a restored store has; none without any."""
    about = [section(event, "involvedObject") for event in events]
    names = sorted({f"{each.get('namespace')}/{each.get('name')}" for each in about})
    if not names:
        return []
    what = f"the restored store has an earlier generation than ran on the seed: shoot {some_of(names, most=20)}"
    return [DiagnosticFinding("lost", "warning", what, "apply them again: what was changed after the backup is undone")]


def _after_loss(stream: str) -> str:
    if not stream:
        return "send again what was ordered since; what gardenlets still run of it is `unknown`: adopt or forget it"
    if stream.endswith("REQUESTS"):
        return "look whether they have an effect (gardenbus diff -f FILE), and send them again"
    return "nothing: agents report again" if stream.endswith("REPORTS") else "nothing: they are not stored elsewhere"


async def versions(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Findings for the micro services of the landscape and their versions."""
    responses = await target.admin.request_many("$SRV.INFO")
    found = assess_versions([(service_name(each), str(each.get("version"))) for each in responses])
    silent = await silent_plugins(target.admin, responses)
    return [*found, *assess_profiles(responses), *silent, *assess_given_up(responses)]


async def silent_plugins(admin: "AdminClient", responses: Sequence[Document]) -> Sequence[DiagnosticFinding]:
    """Warnings of plug-ins of scheduling profiles that nothing responds for.

    One that is no micro service, or one outside the services' account, is in no response: it gets a request about no
    seeds.
    """
    endpoints = [each for info in responses for each in mappings(info.get("endpoints"))]
    served = [str(each.get("subject")) for each in endpoints]
    wanted = {
        subject: str(metadata.get("schedulerName"))
        for metadata in (section(each, "metadata") for each in endpoints)
        for subject in str(metadata.get(PROFILE_PLUGINS) or "").split()
        if not covers(served, subject)
    }
    responding = await asyncio.gather(
        *(admin.responds(subject, _about_no_seeds(profile)) for subject, profile in wanted.items())
    )
    advice = "start it, or take it out of the profile; until then its policy onError applies"
    return [
        DiagnosticFinding("scheduling plug-in", "warning", f"{profile}: nothing responds on {subject}", advice)
        for (subject, profile), responds in sorted(zip(wanted.items(), responding, strict=True))
        if not responds
    ]


def _about_no_seeds(profile: str) -> bytes:
    about = dict.fromkeys(("namespace", "purpose", "provider", "region"), "")
    nothing = dict.fromkeys(("points", "seeds", "shoots"), ())
    return msgspec.json.encode({"apiVersion": PLUGIN_API_VERSION, "profile": profile, "input": about, **nothing})


def assess_given_up(responses: Sequence[Document]) -> list[DiagnosticFinding]:
    """Warn of plug-ins of scheduling profiles that are given up."""
    given_up = {
        (str(metadata.get("schedulerName")), plugin)
        for metadata in (section(each, "metadata") for info in responses for each in mappings(info.get("endpoints")))
        for plugin in str(metadata.get(PROFILE_GIVEN_UP) or "").split()
    }
    mend = "mend it and restart the scheduler; until then its policy onError applies"
    hung = (f"{name}: {plugin} is given up, as its calls do not return" for name, plugin in sorted(given_up))
    return [DiagnosticFinding("scheduling plug-in", "warning", found, mend) for found in hung]


def assess_profiles(responses: Sequence[Document]) -> list[DiagnosticFinding]:
    """Warn of scheduling profiles whose schedulers do, each once."""
    found: dict[str, str] = {}
    for metadata in (section(each, "metadata") for info in responses for each in mappings(info.get("endpoints"))):
        if warning := metadata.get(PROFILE_WARNING):
            found[str(metadata.get("schedulerName"))] = str(warning)
    advice = "enable SeedResourcesFit in the profile"
    return [
        DiagnosticFinding("scheduling profile", "warning", f"{name}: {warning}", advice)
        for name, warning in sorted(found.items())
    ]


async def identity(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Finding for the identity service, where whoever comes from outside needs it."""
    return assess_identity(target, await target.admin.request_many("$SRV.INFO"))


def assess_identity(target: DiagnosticsTarget, responses: Sequence[Document]) -> list[DiagnosticFinding]:
    """Assess whether identity runs where an apiserver says that it is needed; nothing where none says so."""
    prefix = target.api.subjects.prefix
    ours = [each for each in responses if section(each, "metadata").get("prefix") == prefix]
    if not any(_needs_identity(each) for each in ours):
        return []
    replicas = sum(each.get("name") == "identity" for each in ours)
    if replicas:
        return [DiagnosticFinding("identity", "ok", "1 replica runs" if replicas == 1 else f"{replicas} replicas run")]
    text = "does not respond: running sessions go on until they end, and no new connections from outside are accepted"
    return [
        DiagnosticFinding("identity", "failed", text, f"start it; then {target.command('logs identity --tail 20')}")
    ]


def _needs_identity(info: Document) -> bool:
    endpoints = mappings(info.get("endpoints"))
    return any(section(each, "metadata").get(COMES_IN_BY) == AUTH_CALLOUT for each in endpoints)


def service_name(info: Document) -> str:
    """Name of a micro service by its INFO; of a scheduler that is not the default one `scheduler@<schedulerName>`."""
    name = str(info.get("name"))
    for endpoint in mappings(info.get("endpoints")):
        scheduler_name = section(endpoint, "metadata").get("schedulerName")
        if scheduler_name and scheduler_name != DEFAULT_SCHEDULER:
            return f"{name}@{scheduler_name}"
    return name


def assess_versions(services: Sequence[tuple[str, str]]) -> list[DiagnosticFinding]:
    """Assess whether all services have one version."""
    if not services:
        return [DiagnosticFinding("versions", "failed", "no service responds on $SRV.INFO", "gardenbus status")]
    by_version: dict[str, list[str]] = {}
    for name, version in sorted(services):
        by_version.setdefault(version, []).append(name)
    text = "; ".join(f"{version}: {some_of(_counted(names), 9)}" for version, names in sorted(by_version.items()))
    if len(by_version) > 1:
        return [DiagnosticFinding("versions", "warning", text, "finish the upgrade: all services of one version")]
    return [DiagnosticFinding("versions", "ok", text)]


def _counted(names: Sequence[str]) -> list[str]:
    return [name if count == 1 else f"{count} {name}" for name, count in Counter(names).items()]


async def gardenlets(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Findings for heartbeats and the gardenlets' clocks."""
    seeds = await target.api.seed_names()
    now = await jetstream.server_time(target.api) or datetime.now(UTC)
    stream = target.api.subjects.stream("LEASES")
    state = next((each for each in await jetstream.streams(target.api) if each.name == stream), None)
    life = float(state.config.get("max_age") or 0) / 1e9 if state else 0.0
    beats = await heartbeats(target, now)
    silent = [seed for seed in seeds if seed not in beats][:EXAMINED_SEEDS]
    documents = {seed: await _seed_document(target, seed) for seed in silent}
    ended = [seed for seed, document in documents.items() if _has_ended_certificate(document, now)]
    reasons = {seed: str(condition(each, GARDENLET_READY).get("message") or "") for seed, each in documents.items()}
    return [
        *assess_certificates(target, ended),
        *assess_heartbeats(target, seeds, beats, life or DEFAULT_LEASE_SECONDS, reasons),
    ]


async def _seed_document(target: DiagnosticsTarget, seed: str) -> Document:
    """A Seed; an empty document where it cannot be read."""
    reply = await target.api.bus.request(target.api.subjects.api(f"get.seed._.{seed}"), b"", timeout_seconds=5.0)
    try:
        return decode_json(reply, _SeedResponse).result
    except msgspec.DecodeError:
        return {}


def _has_ended_certificate(document: Document, now: datetime) -> bool:
    status = section(document, "status")
    ends = parse_timestamp(status.get("clientCertificateExpirationTimestamp"))
    return ends is not None and ends <= now


def assess_certificates(target: DiagnosticsTarget, seeds: Sequence[str]) -> list[DiagnosticFinding]:
    """Finding for silent gardenlets whose certificate has ended: it cannot renew itself. None without any."""
    if not seeds:
        return []
    command = target.command(f"token create --seed {seeds[0]}")
    advice = f"lay what {command} prints into its directory, as the file bootstrap-token"
    what = f"the certificates of these gardenlets have ended: {some_of(seeds)}"
    return [DiagnosticFinding("certificates of gardenlets", "failed", what, advice)]


async def heartbeats(target: DiagnosticsTarget, now: datetime) -> dict[str, SeedHeartbeat]:
    """The last heartbeat of each seed, `now` being the bus' time."""
    subjects = target.api.subjects
    found: dict[str, SeedHeartbeat] = {}
    async with target.api.bus.follow(
        subjects.stream("LEASES"), [subjects.lease("*")], last_per_subject=True
    ) as follower:
        async for event in follower:
            if isinstance(event, ReplayDone):
                break
            if isinstance(event, StreamMessage) and event.marker is None:
                seed = event.subject.removeprefix(subjects.lease(""))
                if seed != PROBE_LEASE:
                    found[seed] = _heartbeat(seed, event, now)
    return found


def _heartbeat(seed: str, event: StreamMessage, now: datetime) -> SeedHeartbeat:
    try:
        lease = decode_json(event.body, dict[str, Any])
    except msgspec.MsgspecError:
        lease = {}
    renewed = jetstream.parse_server_time(section(lease, "spec").get("renewTime")) or event.at
    return SeedHeartbeat(seed, max(0.0, (now - event.at).total_seconds()), (renewed - event.at).total_seconds())


def assess_heartbeats(
    target: DiagnosticsTarget,
    seeds: Sequence[str],
    beats: Mapping[str, SeedHeartbeat],
    life_seconds: float,
    reasons: Mapping[str, str] = {},
) -> list[DiagnosticFinding]:
    """Seeds without a Lease, Leases that are late, and clocks that differ.

    `reasons` are the messages of the conditions GardenletReady of silent seeds: since when, and why, they are silent.
    """
    found: list[DiagnosticFinding] = []
    present = set(seeds)
    beats = {seed: beat for seed, beat in beats.items() if seed in present}  # others have been removed
    silent = sorted(seed for seed in seeds if seed not in beats)
    late = sorted(seed for seed, beat in beats.items() if beat.age_seconds > life_seconds * LATE_SHARE)
    if silent:
        command = target.command(f"events seed {silent[0]}")
        suggestion = f"{command}; if its gardenlet runs, its log has what keeps it from NATS"
        named = [f"{seed} ({reasons[seed].rstrip('.')})" if reasons.get(seed) else seed for seed in silent]
        found.append(DiagnosticFinding("heartbeats", "failed", f"no heartbeat from {some_of(named)}", suggestion))
    if late:
        text = f"late: {some_of(f'{seed} ({beats[seed].age_seconds:.0f} s)' for seed in late)}"
        found.append(DiagnosticFinding("heartbeats", "warning", text, target.command("logs gardenlet --since 5m")))
    if not found:
        oldest = max((beat.age_seconds for beat in beats.values()), default=0.0)
        found.append(DiagnosticFinding("heartbeats", "ok", f"{len(beats)} seeds, the oldest {oldest:.0f} s ago"))
    astray = sorted(beats.values(), key=lambda beat: (-abs(beat.ahead_seconds), beat.seed))
    astray = [beat for beat in astray if abs(beat.ahead_seconds) >= SKEW_WARNING_SECONDS]
    if astray:
        is_far = abs(astray[0].ahead_seconds) >= SKEW_FAILED_SECONDS
        text = some_of(f"{beat.seed} {beat.ahead_seconds:+.1f} s" for beat in astray)
        suggestion = "let NTP set the gardenlets' clocks"
        found.append(DiagnosticFinding("clocks of gardenlets", "failed" if is_far else "warning", text, suggestion))
    elif beats:
        found.append(DiagnosticFinding("clocks of gardenlets", "ok", "as NATS' clock"))
    return found
