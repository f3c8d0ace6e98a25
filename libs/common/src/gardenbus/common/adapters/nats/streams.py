"""Streams of a landscape: their configuration, and keeping the server's equal to it.

| stream   | keeps            | what its settings are for                                              |
|----------|------------------|------------------------------------------------------------------------|
| REQUESTS | until acked      | durable apply and delete, in the order of the bus; of one sender, who  |
|          |                  | is in the subject, at most 50,000 of each, and 2 GiB of all: more are   |
|          |                  | rejected at once                                                       |
| OBJECTS  | last per subject | the state of every object; only the relay publishes, in batches;       |
|          |                  | tombstones end by a TTL of their own; no markers of the server's,      |
|          |                  | which would move the last sequence; as many consumers as BINDINGS, so  |
|          |                  | that member agents and people leave room for the services              |
| QUEUES   | until acked      | one message per object; timers below `later`; without any limit, for   |
|          |                  | a limit would drop work                                                |
| BINDINGS | last per subject | what gardenlets see; 20,000 consumers (the server's default is 1,000)  |
| LEASES   | last per subject | the server ends what is not renewed (max_age), without a marker:       |
|          |                  | where it leaves markers, it takes rollups of whoever may publish       |
| REPORTS  | until acked      | what gardenlets observed, 2 GiB at the most: more is rejected           |
| EVENTS   | 24 hours         | at most 100 an object, and 1 GiB: the oldest go                        |
| REJECTED | 7 days           | dead letters; at most 16,384, 2,048 of one sender, and 1 GiB           |
| HISTORY  | 30 days          | points of the landscape's history, most for less, by their own TTL;    |
|          |                  | 256 MiB: the oldest go. Nothing depends on it: it may be missing       |

OBJECTS, BINDINGS and EVENTS remember message ids for a second only: ids chain the relay's messages to each other
(publisher.py), and none is ever sent twice.

QUEUES and EVENTS allow atomic batches too, for `publish_many`: a sync of the disk for each batch instead of each
message makes ten times the rate. REQUESTS and REPORTS do not: batches that somebody outside leaves open take the room
for those of others. `publish_many` keeps a window of messages on their way there.

Limits of bytes are set aside by the server (`RESERVED_BYTES`): it makes no stream for which `max_file_store` has no
room, whatever the disk has. There it gets a quarter of that, or a sixteenth, or no limit.
OBJECTS, BINDINGS, QUEUES and LEASES have no limit: each holds one message of each subject, and what the store admits
bounds these; a limit would drop state or work.

REQUESTS, REPORTS and LEASES are published on from outside, and no permission is about headers: `_FROM_OUTSIDE` has the
settings by which a message there can do nothing to another. A server drops, with an acknowledgement, what has the
message id of one before it, whoever sent that: ids are remembered there for 0.1 s, the least that it takes, as the
same order may be meant again, and somebody else may count as well. (A LEASES that an older version made takes TTLs
for ever, which no server lets one switch off: a message's TTL is about itself.)

Only what is written here is compared and changed; what an operator added (replicas, placement, a mirror) stays.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import structlog

from gardenbus.common.adapters.nats.api import STREAM_NAME_IN_USE, STREAM_NOT_FOUND, JetStreamError, call
from gardenbus.common.adapters.nats.connection import Connection
from gardenbus.common.api.history import LEVELS
from gardenbus.common.api.identity.permissions import OPTIONAL_STREAMS
from gardenbus.common.api.keys import Subjects
from gardenbus.common.api.restored_requests import restored_subjects
from gardenbus.common.errors import SettingsInvalid, Unavailable

_SECOND = 1_000_000_000
_HOUR = 3600 * _SECOND
_SHORT_DEDUPLICATION = {"duplicate_window": _SECOND}
_FROM_OUTSIDE = {"allow_rollup_hdrs": False, "allow_atomic": False, "duplicate_window": _SECOND // 10}
_LEASE_LIFE = ("max_age",)
_UNAVAILABLE = 503
_SHORT_OF_STORAGE = frozenset({10023, 10028, 10047})
_SHORT_OF_SERVERS = 10005
_UNTIL_LATER = _SHORT_OF_STORAGE | {_SHORT_OF_SERVERS}

CLUSTER_REPLICAS = 3
"""Copies of each stream in a cluster, where as many as it has are wanted: more survive no more of three servers."""

MONITOR_PERIOD_SECONDS = 40.0
"""Life of a Lease without renewal (Gardener's shoot monitor period) by default."""

_GIB = 1024 * 1024 * 1024
MAX_BYTES: Mapping[str, int] = {
    "REQUESTS": 2 * _GIB,
    "REPORTS": 2 * _GIB,
    "EVENTS": _GIB,
    "REJECTED": _GIB,
    "HISTORY": _GIB // 4,
}
"""Eight times what one sender may send at once, and more (identity closes its connections then).

HISTORY holds 30 days of 3,000 seeds in that.
"""

RESERVED_BYTES = sum(MAX_BYTES.values())
"""Of `max_file_store`, for each copy; the rest is for streams without a limit."""

PARTS = (1, 4, 16)
"""A server that cannot set all of a limit aside may set the n-th part of it aside; else there is no limit."""

_UNLIMITED = -1

REJECTED_MESSAGES = 16_384
"""At 64 KB each 1 GiB."""

REJECTED_PER_SENDER = 2048
"""Share of one sender: its newest. It takes eight of them to push out what others had rejected."""

REQUESTS_PER_SENDER = 50_000
"""Requests of one subject that wait; the server rejects more, so that others' are not behind those of one for ever."""

SHARE_OF_EACH = {"max_msgs_per_subject": REQUESTS_PER_SENDER, "discard": "new", "discard_new_per_subject": True}

LARGEST_LEASE = 8 * 1024
"""Bytes of a Lease's message, of which outsiders read their own by direct gets: no such request loads more."""

MAX_CONSUMERS = 20_000
EVENTS_PER_OBJECT = 100

DESCRIPTIONS: Mapping[str, str] = {
    "REQUESTS": "durable apply and delete requests, until the apiserver has carried them out",
    "OBJECTS": "the current state of every object, one message each; a deleted one leaves a tombstone for an hour",
    "QUEUES": "work for schedulers and controllers, one message per object, and timers of later work",
    "BINDINGS": "what each seed's gardenlet has to know: its shoots, its Seed and what goes with them",
    "LEASES": "heartbeats of gardenlets, one message per seed; one that is not renewed expires",
    "REPORTS": "what gardenlets and member agents observed, until the apiserver has stored it",
    "EVENTS": "Events about objects, of the last 24 hours",
    "REJECTED": "requests and work that were rejected, with the reason in their headers, for 7 days",
    "HISTORY": "use, waiting shoots, sizes of sets and what happened, of the last 30 days",
}
"""Descriptions in `nats stream ls` and `nats stream info`."""

INFO_SECONDS = 2.0
"""A cluster does not respond for a stream whose leader is being elected: to another request soon after, it does."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

StreamConfiguration = dict[str, Any]


class StreamSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Stream settings of a deployment. None: use the default when creating, else leave what is there.

    Only one service should state a value, or two with different values would change it to and fro.
    """

    lease_seconds: float | None = None
    """Life of a Lease without renewal: lifecycle's monitor period."""

    replicas: int | None = None
    """Copies of each stream in a cluster; 0 for CLUSTER_REPLICAS (or more, where there are), 1 without a cluster."""

    only: tuple[str, ...] | None = None
    """Streams that this service looks after, by their name in the table: it may not touch the others. None: all."""


def _last_per_subject(subjects: list[str]) -> StreamConfiguration:
    return {"subjects": subjects, "retention": "limits", "max_msgs_per_subject": 1, "allow_direct": True}


def _work_queue(subjects: list[str]) -> StreamConfiguration:
    return {"subjects": subjects, "retention": "workqueue"}


def _kept_for_a_time(subjects: Subjects) -> Mapping[str, StreamConfiguration]:
    """The streams that people read: Events, rejected messages, and the history."""
    return {
        "EVENTS": {
            "subjects": [f"{subjects.prefix}.event.>"],
            "retention": "limits",
            "max_age": 24 * _HOUR,
            "max_msgs_per_subject": EVENTS_PER_OBJECT,
            "allow_atomic": True,
            **_SHORT_DEDUPLICATION,
        },
        "REJECTED": {
            "subjects": list(subjects.rejections),
            "retention": "limits",
            "max_age": 7 * 24 * _HOUR,
            "max_msgs": REJECTED_MESSAGES,
            "max_msgs_per_subject": REJECTED_PER_SENDER,
        },
        "HISTORY": {
            "subjects": [f"{subjects.prefix}.history.>"],
            "retention": "limits",
            "max_age": int(LEVELS[-1].kept.total_seconds()) * _SECOND,
            "allow_msg_ttl": True,
            "allow_atomic": True,
            **_SHORT_DEDUPLICATION,
        },
    }


def streams(subjects: Subjects, lease_seconds: float) -> Mapping[str, StreamConfiguration]:
    """Every stream's configuration, by JetStream name."""
    prefix = subjects.prefix
    lease = int(lease_seconds * _SECOND)
    configurations: dict[str, StreamConfiguration] = {
        "REQUESTS": _work_queue(
            [
                *(subjects.apply, subjects.delete, subjects.as_user("*", "apply"), subjects.as_user("*", "delete")),
                *(subjects.from_outside("*", "apply"), subjects.from_outside("*", "delete")),
                *restored_subjects(subjects),
            ]
        )
        | {**_FROM_OUTSIDE, **SHARE_OF_EACH},
        "OBJECTS": _last_per_subject([f"{prefix}.changed.>"])
        | {"allow_atomic": True, "allow_msg_ttl": True, "max_consumers": MAX_CONSUMERS, **_SHORT_DEDUPLICATION},
        "QUEUES": _work_queue([f"{prefix}.queue.>", f"{prefix}.later.>"])
        | {"max_msgs_per_subject": 1, "allow_msg_schedules": True, "allow_atomic": True, "allow_direct": True},
        "BINDINGS": _last_per_subject([f"{prefix}.binding.>", f"{prefix}.view.>"])
        | {"allow_atomic": True, "max_consumers": MAX_CONSUMERS, **_SHORT_DEDUPLICATION},
        "LEASES": _last_per_subject([f"{prefix}.lease.>"])
        | {
            "max_age": lease,
            "max_msg_size": LARGEST_LEASE,
            "subject_delete_marker_ttl": 0,
            **_FROM_OUTSIDE,
        },
        "REPORTS": _work_queue([f"{prefix}.report.>"]) | _FROM_OUTSIDE | {"discard": "new"},
        **_kept_for_a_time(subjects),
    }
    always: StreamConfiguration = {"storage": "file", "discard": "old"}
    limits = {name: {"max_bytes": size} for name, size in MAX_BYTES.items()}
    return {
        subjects.stream(name): {
            "name": subjects.stream(name),
            "description": DESCRIPTIONS[name],
            **always,
            **limits.get(name, {}),
            **own,
        }
        for name, own in configurations.items()
    }


async def ensure_streams(connection: Connection, subjects: Subjects, settings: StreamSettings) -> None:
    """Create what is missing and update what differs; does nothing when all is well.

    Raises SettingsInvalid with every change that JetStream rejects for good, Unavailable without a response.
    """
    problems: list[str] = []
    optional = {subjects.stream(name) for name in OPTIONAL_STREAMS}
    configurations = streams(subjects, settings.lease_seconds or MONITOR_PERIOD_SECONDS)
    names = configurations if settings.only is None else map(subjects.stream, settings.only)
    for name, wanted in ((name, configurations[name]) for name in names):
        try:
            await _ensure_affordable(connection, name, wanted, settings)
        except JetStreamError as api_error:
            if name in optional:
                log.warning("stream.missing", stream=name, reason=str(api_error))
                continue
            if api_error.code == _UNAVAILABLE or api_error.number in _UNTIL_LATER:
                raise Unavailable(str(api_error)) from api_error  # 10005 is of the class of bad requests
            log.error("stream.rejected", stream=name, reason=str(api_error))  # noqa: TRY400  (no traceback is needed)
            problems.append(f"stream {name}: {api_error}")
    if problems:
        raise SettingsInvalid(tuple(problems))


async def _ensure_affordable(
    connection: Connection, name: str, wanted: StreamConfiguration, settings: StreamSettings
) -> None:
    """Ensure a stream with all of its limit of bytes, the largest part that the server can set aside, or without."""
    if "max_bytes" not in wanted:
        await _ensure(connection, name, wanted, settings)
        return
    for size in (wanted["max_bytes"] // part for part in PARTS):
        try:
            await _ensure(connection, name, wanted | {"max_bytes": size}, settings)
        except JetStreamError as api_error:
            if api_error.number not in _SHORT_OF_STORAGE:
                raise
            log.warning("stream.limited", stream=name, rejected_bytes=size, reason=str(api_error))
        else:
            return
    await _ensure(connection, name, wanted | {"max_bytes": _UNLIMITED}, settings)


async def _ensure(connection: Connection, name: str, wanted: StreamConfiguration, settings: StreamSettings) -> None:
    actual, held = await _existing(connection, name)
    if actual is None:
        try:
            replicas = _replicas(settings, is_clustered=connection.is_clustered) or 1
            await call(connection, f"STREAM.CREATE.{name}", {**wanted, "num_replicas": replicas})
        except JetStreamError as api_error:
            if api_error.number != STREAM_NAME_IN_USE:
                raise
            actual, held = await _existing(connection, name)  # somebody was faster, with other settings
        else:
            log.info("stream.created", stream=name)
            return
    if actual is None:
        return
    stated = _stated(wanted, actual, settings, is_clustered=connection.is_clustered)
    if stated.get("discard") == "new":
        _keep_what_is_held(stated, held)
    changes = {key: value for key, value in stated.items() if actual.get(key, _absent(value)) != value}
    if changes:
        await call(connection, f"STREAM.UPDATE.{name}", {**actual, **changes})
        log.info("stream.updated", stream=name, changed=sorted(changes))


def _keep_what_is_held(stated: StreamConfiguration, held: "_Held") -> None:
    """Leave out limits that a stream is beyond: the server would drop what is, and gets them when there is less."""
    is_beyond_share = "max_msgs_per_subject" in stated and held.messages > stated["max_msgs_per_subject"]
    if is_beyond_share or held.size_bytes > stated.get("max_bytes", 0) > 0:
        for setting in (*SHARE_OF_EACH, "max_bytes"):
            stated.pop(setting, None)


def _replicas(settings: StreamSettings, *, is_clustered: bool, actual: int = 1) -> int | None:
    """Copies that a stream must have; None for those that it has."""
    if settings.replicas != 0:
        return settings.replicas
    return max(actual, CLUSTER_REPLICAS) if is_clustered else None


def _stated(
    wanted: StreamConfiguration, actual: StreamConfiguration, settings: StreamSettings, *, is_clustered: bool
) -> StreamConfiguration:
    """The settings that a stream which exists must have."""
    stated = dict(wanted)
    if actual.get("description"):  # an operator's, or that of another version of ours
        stated.pop("description")
    if settings.lease_seconds is None and "subject_delete_marker_ttl" in wanted:
        for setting in _LEASE_LIFE:
            stated.pop(setting)
    replicas = _replicas(settings, is_clustered=is_clustered, actual=int(actual.get("num_replicas", 1)))
    if replicas is not None:
        stated["num_replicas"] = replicas
    return stated


def _absent(value: Any) -> Any:
    """Value of a setting that the server leaves out of its response: false, 0."""
    return type(value)()


class _Held(NamedTuple):
    """Messages of a stream, and their size."""

    messages: int = 0
    size_bytes: int = 0


async def _existing(connection: Connection, name: str) -> tuple[StreamConfiguration | None, _Held]:
    """The configuration of a stream, None for one that there is not, and what it holds."""
    try:
        response = await call(connection, f"STREAM.INFO.{name}", timeout_seconds=INFO_SECONDS)
    except JetStreamError as api_error:
        if api_error.number == STREAM_NOT_FOUND:
            return None, _Held()
        raise
    state = response["state"]
    return response["config"], _Held(int(state["messages"]), int(state["bytes"]))
