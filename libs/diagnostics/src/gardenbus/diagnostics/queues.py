"""Streams and consumers as the library wants them, and work: taken by somebody, not again and again, not stuck."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from gardenbus.common.adapters.nats import streams as jetstream_streams
from gardenbus.common.adapters.nats import work_queue
from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.identity.permissions import covers
from gardenbus.common.api.keys import queued_shoot
from gardenbus.common.errors import Unavailable
from gardenbus.diagnostics import jetstream
from gardenbus.diagnostics.findings import DiagnosticFinding, graded, some_of
from gardenbus.diagnostics.replication import assess_copies
from gardenbus.diagnostics.stream_states import ConsumerState, StoredMessage, StreamState
from gardenbus.diagnostics.target import DiagnosticsTarget

LEASE_SETTINGS = frozenset({"max_age"})
"""Of LEASES, as lifecycle's configuration has them."""
CONSUMER_SETTINGS: Mapping[str, Any] = {
    "ack_policy": "explicit",
    "ack_wait": int(work_queue.ACK_WAIT_SECONDS * 1_000_000_000),
    "max_deliver": -1,
    "max_ack_pending": work_queue.MAX_ACK_PENDING,
}
LIMITS = ("max_age", "max_msgs", "max_bytes")
NEARLY_FULL, FULL = 0.8, 0.95
SECOND_SAMPLE_SECONDS = 1.0
STUCK_WARNING_SECONDS, STUCK_FAILED_SECONDS = 60.0, 600.0
OUTBOX_WARNING_SECONDS, OUTBOX_FAILED_SECONDS = 10.0, 60.0
RECENT_SECONDS = 3600.0


async def configuration(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Findings for the configuration of streams and of the queues' consumers."""
    there = {state.name: state for state in await jetstream.streams(target.api)}
    wanted = jetstream_streams.streams(target.api.subjects, jetstream_streams.MONITOR_PERIOD_SECONDS)
    found = assess_streams(wanted, there)
    consumers = await work_consumers(target)
    own = [there[name] for name in wanted if name in there]
    return [*found, *assess_consumers(consumers), *assess_copies(own)]


def assess_streams(
    wanted: Mapping[str, Mapping[str, Any]], there: Mapping[str, StreamState]
) -> list[DiagnosticFinding]:
    """Compare streams with what the library makes; whatever else operators set is theirs."""
    suggestion = "restart one service, as the apiserver: each brings streams about when it starts"
    found: list[DiagnosticFinding] = []
    for name, settings in wanted.items():
        actual = there.get(name)
        if actual is None:
            found.append(DiagnosticFinding(f"stream {name}", "failed", "does not exist", suggestion))
            continue
        differing = [
            f"{setting} is {actual.config.get(setting)!r}, not {value!r}"
            for setting, value in settings.items()
            if actual.config.get(setting, type(value)()) != value
            and not (setting in LEASE_SETTINGS and "subject_delete_marker_ttl" in settings)
            and setting != "max_bytes"  # a server with little room sets a part aside
        ]
        if differing:
            found.append(DiagnosticFinding(f"stream {name}", "failed", some_of(differing, 3), suggestion))
        limits = [limit for limit in LIMITS if limit not in settings and int(actual.config.get(limit) or 0) > 0]
        if settings.get("retention") == "workqueue" and limits:
            text = f"{some_of(f'{limit} is {actual.config[limit]}' for limit in limits)}: a limit drops work"
            unset = {"max_age": "--max-age=0", "max_msgs": "--max-msgs=-1", "max_bytes": "--max-bytes=-1"}
            unlimited = f"nats stream edit {name} {' '.join(unset[limit] for limit in limits)}"
            found.append(DiagnosticFinding(f"stream {name}", "warning", text, unlimited))
    filling = [finding for state in there.values() if state.name in wanted for finding in assess_size(state)]
    if found:
        return [*found, *filling]
    return [DiagnosticFinding("streams", "ok", f"all {len(wanted)} are there, configured as they should be"), *filling]


def assess_size(stream: StreamState) -> list[DiagnosticFinding]:
    """Assess what a stream holds of what it may; one that drops its oldest messages may be full."""
    most = int(stream.config.get("max_bytes") or 0)
    if most <= 0 or stream.config.get("discard") != "new" or stream.size_bytes < NEARLY_FULL * most:
        return []
    share = stream.size_bytes / most
    text = f"{stream.size_bytes / 2**20:.0f} of {most / 2**20:.0f} MiB ({share:.0%}): beyond it messages are rejected"
    suggestion = "gardenbus top queues shows whether it is consumed, gardenbus top users who sends"
    state = graded(share, warning=NEARLY_FULL, failed=FULL)
    return [DiagnosticFinding(f"stream {stream.name}", state, text, suggestion)]


def assess_consumers(consumers: Sequence[ConsumerState]) -> list[DiagnosticFinding]:
    """Compare the queues' consumers with what the library makes."""
    found: list[DiagnosticFinding] = []
    for consumer in consumers:
        differing = [
            f"{setting} is {consumer.config.get(setting)!r}, not {value!r}"
            for setting, value in CONSUMER_SETTINGS.items()
            if consumer.config.get(setting) != value
        ]
        if differing:
            suggestion = f"restart its consumer, or: nats consumer rm {consumer.stream} {consumer.name}"
            found.append(DiagnosticFinding(f"consumer {consumer.name}", "failed", some_of(differing, 3), suggestion))
    return found or [DiagnosticFinding("consumers", "ok", f"{len(consumers)}, configured as they should be")]


async def work_consumers(target: DiagnosticsTarget) -> list[ConsumerState]:
    """The consumers of all queues of work."""
    return [
        consumer
        for short in jetstream.WORK_STREAMS
        for consumer in await jetstream.consumers(target.api, target.api.subjects.stream(short))
        if consumer.is_shared
    ]


async def work(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Findings for every queue: whether it has a listener (by a second sample, if it had none), and makes progress."""
    first = second = await work_consumers(target)
    if not all(each.listening or each.in_flight for each in first):
        await asyncio.sleep(SECOND_SAMPLE_SECONDS)
        second = await work_consumers(target)
    oldest: dict[str, StoredMessage] = {}
    for consumer in second:
        if consumer.pending or consumer.in_flight:
            message = await jetstream.first_of(target.api, consumer.stream, consumer.filter)
            if message is not None:
                oldest[f"{consumer.stream} {consumer.name}"] = message
    now = await jetstream.server_time(target.api) or datetime.now(UTC)
    return [
        *assess_listeners(target, first, second),
        *assess_progress(target, second, oldest, now),
        *await _unclaimed(target, second),
    ]


def assess_listeners(
    target: DiagnosticsTarget, first: Sequence[ConsumerState], second: Sequence[ConsumerState]
) -> list[DiagnosticFinding]:
    """Queues without a waiting consumer at two checks, and without messages in flight."""
    was_listening = {(each.stream, each.name) for each in first if each.listening or each.in_flight}
    found: list[DiagnosticFinding] = []
    if not any(each.stream == target.api.subjects.stream("REQUESTS") for each in second):
        found.append(
            DiagnosticFinding("queue requests", "failed", "no apiserver has ever run here", target.command("status"))
        )
    for each in second:
        if each.listening or each.in_flight or (each.stream, each.name) in was_listening:
            continue
        text = f"no consumer, {_messages(each.pending)} pending" if each.pending else "no consumer"
        suggestion = target.command("status") + "; for what will not come back: " + _removal(each)
        found.append(
            DiagnosticFinding(f"queue {queue_name(each)}", "failed" if each.pending else "warning", text, suggestion)
        )
    return found or [DiagnosticFinding("listeners", "ok", f"each of {len(second)} queues has a consumer")]


def assess_progress(
    target: DiagnosticsTarget, consumers: Sequence[ConsumerState], oldest: Mapping[str, StoredMessage], now: datetime
) -> list[DiagnosticFinding]:
    """Work that comes back again and again, or stays for long."""
    found: list[DiagnosticFinding] = []
    for each in consumers:
        message = oldest.get(f"{each.stream} {each.name}")
        age = (now - message.at).total_seconds() if message else 0.0
        state = graded(age, warning=STUCK_WARNING_SECONDS, failed=STUCK_FAILED_SECONDS)
        logs = target.command("logs --level warning --since 10m")
        name = f"queue {queue_name(each)}"
        if each.redelivered:
            verb = "was" if each.redelivered == 1 else "were"
            text = f"{_messages(each.redelivered)} {verb} delivered more than once"
            found.append(DiagnosticFinding(name, "failed" if state == "failed" else "warning", text, logs))
        if message is not None and state != "ok":
            text = f"the oldest work has been there for {age:.0f} s: {message.subject}"
            found.append(DiagnosticFinding(name, state, text, logs))
    return found or [DiagnosticFinding("progress", "ok", "no work is stuck or redelivered")]


async def _unclaimed(target: DiagnosticsTarget, consumers: Sequence[ConsumerState]) -> list[DiagnosticFinding]:
    """Work for controllers and schedulers that have never run here."""
    subjects, stream = target.api.subjects, target.api.subjects.stream("QUEUES")
    try:
        queued = await target.api.bus.subjects(stream, f"{subjects.prefix}.queue.>")
    except Unavailable:
        return []
    filters = [each.filter for each in consumers if each.stream == stream]
    lost = sorted(subject for subject in queued if not covers(filters, subject))
    lost = [subject for subject in lost if not await _is_bound(target, subject)]
    if not lost:
        return []
    text = f"{_messages(len(lost))} that no service consumes: {some_of(lost, 3)}"
    return [DiagnosticFinding("unclaimed work", "warning", text, "run the scheduler or controller that they name")]


async def _is_bound(target: DiagnosticsTarget, subject: str) -> bool:
    """True for work of a scheduler on a shoot that is gone, or has been bound without it."""
    queued, subjects = queued_shoot(subject), target.api.subjects
    if queued is None or not queued.key.name:
        return False
    announced = subjects.changed(queued.key)
    try:
        last = await target.api.bus.last(subjects.stream("OBJECTS"), announced)
        if last is None:
            return False
        shoot: Document = json_decoder(dict[str, Any])(last.body) if last.body else {}
    except (Unavailable, msgspec.MsgspecError):
        return False
    return not shoot or bool(section(shoot, "spec").get("seedName"))


async def outbox(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Finding for the relay's lag behind the store."""
    if target.redis is None:
        count = (await target.api.census()).get("outbox", 0)
        state = graded(count, warning=1_000, failed=50_000)
        return [_outbox(target, count, 0.0)._replace(state=state)]
    key = target.redis.key("outbox")
    count = int(await target.redis.command("XLEN", key))
    head = await target.redis.command("XRANGE", key, "-", "+", "COUNT", 1)
    age = 0.0
    if head:
        seconds, micros = await target.redis.command("TIME")
        written = int(head[0][0].decode().partition("-")[0])
        age = max(0.0, int(seconds) + int(micros) / 1e6 - written / 1000)
    return [_outbox(target, count, age)]


def _outbox(target: DiagnosticsTarget, count: int, age_seconds: float) -> DiagnosticFinding:
    state = graded(age_seconds, warning=OUTBOX_WARNING_SECONDS, failed=OUTBOX_FAILED_SECONDS)
    text = f"{count} changes are to be announced" + (f", the oldest for {age_seconds:.1f} s" if count else "")
    suggestion = "" if state == "ok" else f"{target.command('logs relay --since 5m')}; is it running?"
    return DiagnosticFinding("outbox", state, text, suggestion)


async def rejections(target: DiagnosticsTarget) -> Sequence[DiagnosticFinding]:
    """Finding for recent rejected messages."""
    stream = target.api.subjects.stream("REJECTED")
    state = next((each for each in await jetstream.streams(target.api) if each.name == stream), None)
    if state is None or not state.messages:
        return [DiagnosticFinding("rejected", "ok", "nothing in 7 days")]
    last = await jetstream.stored(target.api, stream, state.last_sequence)
    is_recent = last is not None and (datetime.now(UTC) - last.at).total_seconds() < RECENT_SECONDS
    text = f"{state.messages} in 7 days{', the last within an hour' if is_recent else ''}"
    suggestion = target.command("rejected") if is_recent else ""
    return [DiagnosticFinding("rejected", "warning" if is_recent else "ok", text, suggestion)]


def queue_name(consumer: ConsumerState) -> str:
    """A queue as people call it: by its consumer, or by its stream where that has one queue only."""
    is_alone = consumer.name == "apiserver"
    return consumer.stream.rpartition("_")[2].lower() if is_alone else consumer.name


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


def _removal(consumer: ConsumerState) -> str:
    return f"nats consumer rm {consumer.stream} {consumer.name}"
