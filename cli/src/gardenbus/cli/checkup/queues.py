"""Streams and consumers as the library wants them, and work: taken by somebody, not again and again, not stuck."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from gardenbus.cli import streams
from gardenbus.cli.checkup.findings import Finding, graded, some_of
from gardenbus.cli.checkup.patient import Patient
from gardenbus.cli.streams import ConsumerState, StoredMessage, StreamState
from gardenbus.common.adapters import jetstream_queue, jetstream_streams
from gardenbus.common.errors import Unavailable

LEASE_SETTINGS = frozenset({"max_age", "duplicate_window", "subject_delete_marker_ttl"})
"""Of LEASES, as lifecycle's configuration has them."""
CONSUMER_SETTINGS: Mapping[str, Any] = {
    "ack_policy": "explicit",
    "ack_wait": int(jetstream_queue.ACK_WAIT_SECONDS * 1_000_000_000),
    "max_deliver": -1,
    "max_ack_pending": jetstream_queue.MAX_ACK_PENDING,
}
LIMITS = ("max_age", "max_msgs", "max_bytes")
SECOND_LOOK_SECONDS = 1.0
STUCK_WARNING_SECONDS, STUCK_FAILED_SECONDS = 60.0, 600.0
OUTBOX_WARNING_SECONDS, OUTBOX_FAILED_SECONDS = 10.0, 60.0
RECENT_SECONDS = 3600.0


async def configuration(patient: Patient) -> Sequence[Finding]:
    """Whether each stream and each queue's consumer is configured as the services make them."""
    there = {state.name: state for state in await streams.streams(patient.api)}
    wanted = jetstream_streams.streams(patient.api.subjects, jetstream_streams.MONITOR_PERIOD_SECONDS)
    found = judge_streams(wanted, there)
    consumers = await work_consumers(patient)
    return [*found, *judge_consumers(consumers)]


def judge_streams(wanted: Mapping[str, Mapping[str, Any]], there: Mapping[str, StreamState]) -> list[Finding]:
    """Compare streams with what the library makes; whatever else operators set is theirs."""
    remedy = "restart one service, as the apiserver: each brings streams about when it starts"
    found: list[Finding] = []
    for name, settings in wanted.items():
        actual = there.get(name)
        if actual is None:
            found.append(Finding(f"stream {name}", "failed", "is not there", remedy))
            continue
        differing = [
            f"{setting} is {actual.config.get(setting)!r}, not {value!r}"
            for setting, value in settings.items()
            if actual.config.get(setting, type(value)()) != value
            and not (setting in LEASE_SETTINGS and "subject_delete_marker_ttl" in settings)
        ]
        if differing:
            found.append(Finding(f"stream {name}", "failed", some_of(differing, 3), remedy))
        limits = [limit for limit in LIMITS if int(actual.config.get(limit) or 0) > 0]
        if settings.get("retention") == "workqueue" and limits:
            told = f"{some_of(f'{limit} is {actual.config[limit]}' for limit in limits)}: a limit drops work"
            unlimited = f"nats stream edit {name} --max-age=0 --max-msgs=-1 --max-bytes=-1"
            found.append(Finding(f"stream {name}", "warning", told, unlimited))
    return found or [Finding("streams", "ok", f"all {len(wanted)} are there, configured as they should be")]


def judge_consumers(consumers: Sequence[ConsumerState]) -> list[Finding]:
    """Compare the queues' consumers with what the library makes."""
    found: list[Finding] = []
    for consumer in consumers:
        differing = [
            f"{setting} is {consumer.config.get(setting)!r}, not {value!r}"
            for setting, value in CONSUMER_SETTINGS.items()
            if consumer.config.get(setting) != value
        ]
        if differing:
            remedy = f"restart whoever takes from it, or: nats consumer rm {consumer.stream} {consumer.name}"
            found.append(Finding(f"consumer {consumer.name}", "failed", some_of(differing, 3), remedy))
    return found or [Finding("consumers", "ok", f"{len(consumers)}, configured as they should be")]


async def work_consumers(patient: Patient) -> list[ConsumerState]:
    """The consumers of all queues of work."""
    return [
        consumer
        for short in streams.WORK_STREAMS
        for consumer in await streams.consumers(patient.api, patient.api.subjects.stream(short))
        if consumer.is_shared
    ]


async def work(patient: Patient) -> Sequence[Finding]:
    """Whether somebody listens on every queue, and work gets done; looked at twice."""
    first = await work_consumers(patient)
    await asyncio.sleep(SECOND_LOOK_SECONDS)
    second = await work_consumers(patient)
    oldest: dict[str, StoredMessage] = {}
    for consumer in second:
        if consumer.pending or consumer.in_flight:
            message = await streams.first_of(patient.api, consumer.stream, consumer.filter)
            if message is not None:
                oldest[f"{consumer.stream} {consumer.name}"] = message
    now = await streams.server_time(patient.api) or datetime.now(UTC)
    return [
        *judge_listeners(patient, first, second),
        *judge_progress(patient, second, oldest, now),
        *await _unclaimed(patient, second),
    ]


def judge_listeners(patient: Patient, first: Sequence[ConsumerState], second: Sequence[ConsumerState]) -> list[Finding]:
    """Queues that nobody listened on at two looks, with nothing in hand either."""
    was_heard = {(each.stream, each.name) for each in first if each.listening or each.in_flight}
    found: list[Finding] = []
    if not any(each.stream == patient.api.subjects.stream("REQUESTS") for each in second):
        found.append(Finding("queue requests", "failed", "no apiserver has ever run here", patient.command("status")))
    for each in second:
        if each.listening or each.in_flight or (each.stream, each.name) in was_heard:
            continue
        told = f"nobody listens, {each.pending} pieces of work wait" if each.pending else "nobody listens"
        remedy = patient.command("status") + "; for what will not come back: " + _removal(each)
        found.append(Finding(f"queue {queue_name(each)}", "failed" if each.pending else "warning", told, remedy))
    return found or [Finding("listeners", "ok", f"somebody listens on each of {len(second)} queues")]


def judge_progress(
    patient: Patient, consumers: Sequence[ConsumerState], oldest: Mapping[str, StoredMessage], now: datetime
) -> list[Finding]:
    """Work that comes back again and again, or stays for long."""
    found: list[Finding] = []
    for each in consumers:
        message = oldest.get(f"{each.stream} {each.name}")
        age = (now - message.at).total_seconds() if message else 0.0
        state = graded(age, warning=STUCK_WARNING_SECONDS, failed=STUCK_FAILED_SECONDS)
        logs = patient.command("logs --level warning --since 10m")
        name = f"queue {queue_name(each)}"
        if each.redelivered:
            told = f"{each.redelivered} pieces of work were handed out more than once"
            found.append(Finding(name, "failed" if state == "failed" else "warning", told, logs))
        if message is not None and state != "ok":
            told = f"the oldest work has been there for {age:.0f} s: {message.subject}"
            found.append(Finding(name, state, told, logs))
    return found or [Finding("progress", "ok", "no work is stuck or handed out again")]


async def _unclaimed(patient: Patient, consumers: Sequence[ConsumerState]) -> list[Finding]:
    """Work for controllers and schedulers that have never run here."""
    subjects, stream = patient.api.subjects, patient.api.subjects.stream("QUEUES")
    try:
        queued = await patient.api.bus.subjects(stream, f"{subjects.prefix}.queue.>")
    except Unavailable:
        return []
    filters = [each.filter.removesuffix(">") for each in consumers if each.stream == stream]
    lost = sorted(subject for subject in queued if not any(subject.startswith(begin) for begin in filters))
    if not lost:
        return []
    told = f"{len(lost)} pieces of work that no running or earlier service takes: {some_of(lost, 3)}"
    return [Finding("unclaimed work", "warning", told, "run the scheduler or controller that they name")]


async def outbox(patient: Patient) -> Sequence[Finding]:
    """Whether the relay keeps up with what is written."""
    if patient.redis is None:
        count = (await patient.api.census()).get("outbox", 0)
        state = graded(count, warning=1_000, failed=50_000)
        return [_outbox(patient, count, 0.0)._replace(state=state)]
    key = patient.redis.key("outbox")
    count = int(await patient.redis.command("XLEN", key))
    head = await patient.redis.command("XRANGE", key, "-", "+", "COUNT", 1)
    age = 0.0
    if head:
        seconds, micros = await patient.redis.command("TIME")
        written = int(head[0][0].decode().partition("-")[0])
        age = max(0.0, int(seconds) + int(micros) / 1e6 - written / 1000)
    return [_outbox(patient, count, age)]


def _outbox(patient: Patient, count: int, age_seconds: float) -> Finding:
    state = graded(age_seconds, warning=OUTBOX_WARNING_SECONDS, failed=OUTBOX_FAILED_SECONDS)
    told = f"{count} changes are to be announced" + (f", the oldest for {age_seconds:.1f} s" if count else "")
    remedy = "" if state == "ok" else f"{patient.command('logs relay --since 5m')}; is it running?"
    return Finding("outbox", state, told, remedy)


async def rejections(patient: Patient) -> Sequence[Finding]:
    """Whether something could not be taken lately."""
    stream = patient.api.subjects.stream("REJECTED")
    state = next((each for each in await streams.streams(patient.api) if each.name == stream), None)
    if state is None or not state.messages:
        return [Finding("rejected", "ok", "nothing in 7 days")]
    last = await streams.stored(patient.api, stream, state.last_sequence)
    is_recent = last is not None and (datetime.now(UTC) - last.at).total_seconds() < RECENT_SECONDS
    told = f"{state.messages} in 7 days{', the last within an hour' if is_recent else ''}"
    remedy = patient.command("rejected") if is_recent else ""
    return [Finding("rejected", "warning" if is_recent else "ok", told, remedy)]


def queue_name(consumer: ConsumerState) -> str:
    """A queue as people call it: by its consumer, or by its stream where that has one queue only."""
    is_alone = consumer.name == "apiserver"
    return consumer.stream.rpartition("_")[2].lower() if is_alone else consumer.name


def _removal(consumer: ConsumerState) -> str:
    return f"nats consumer rm {consumer.stream} {consumer.name}"
