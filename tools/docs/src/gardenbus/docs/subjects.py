"""The page of all subjects and events, in words: what `asyncapi.yaml` is for machines."""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.api.queues import QUEUES
from gardenbus.docs.channels import HEADERS, PARAMETERS, Channel, MessageSpec, channels
from gardenbus.docs.markdown import row, table


class StreamSection(NamedTuple):
    """Title and introduction of a stream's subjects."""

    stream: str
    title: str
    words: str


SECTIONS: Sequence[StreamSection] = (
    StreamSection(
        "REQUESTS",
        "Durable requests",
        "What it has acknowledged is carried out. There is no response; what is rejected comes to "
        "`garden.rejected.<verb>.<sender>`.",
    ),
    StreamSection(
        "",
        "Requests with a response",
        "Sent with `nats req`; the response comes on the reply subject, in [one shape](schemas/Answer.json): "
        '`{"ok":true,"result":…,"warnings":[…]}` or '
        '`{"ok":false,"error":{"code":…,"reason":…,"message":…,"details":[…]}}`.',
    ),
    StreamSection(
        "OBJECTS",
        "Changes",
        "The last word on each object. A consumer that delivers the last message per subject begins with all that is "
        "there. The headers `ce-*` make each a CloudEvent (1.0, binary mode).",
    ),
    StreamSection("BINDINGS", "What gardenlets see", "What a seed's gardenlet needs to know, and nothing of others."),
    StreamSection("EVENTS", "Events", "Those of the last 24 hours."),
    StreamSection(
        "QUEUES", "Work", "Whoever takes a message reads the object and does what is due; one message an object."
    ),
    StreamSection("LEASES", "Heartbeats", "They go when they are not renewed."),
    StreamSection(
        "REPORTS",
        "What gardenlets and member clusters say",
        "The apiserver merges it into the objects' status, in this order.",
    ),
    StreamSection("REJECTED", "Rejected messages", "For a week. `gardenbus rejected` lists it and sends it again."),
    StreamSection(
        "HISTORY",
        "History",
        "For 30 days. The dashboard plots it, and `gardenbus top --history` prints it; nothing depends on it.",
    ),
)

_HEAD = """# Events and subjects

Everything that goes over the bus. For machines the same stands in [asyncapi.yaml](asyncapi.yaml) (AsyncAPI 3), with a
[JSON Schema](schemas/Shoot.json) for each kind of body beside it. With another prefix than `garden` all subjects begin
with that. Members and headers that a receiver does not know are to be ignored. Headers in parentheses may be missing.
"""


_QUEUES_INTRODUCTION = """\
A queue has the name of its controller, and so have its consumer and the label of its metrics. `scheduling` and `waking`
are one of each scheduler. Its consumers are `waking-<schedulerName>`, `scheduling-<schedulerName>`, and for its bands
`scheduling+1-<schedulerName>` and `scheduling-1-<schedulerName>`. The store
enqueues in the write that makes the work; an informer is that of the service.
"""


def subjects_page() -> str:
    """The page's Markdown."""
    parts = [_HEAD]
    for stream, title, words in SECTIONS:
        parts.append(f"## {title}\n")
        kept = f"Kept in the stream `{stream}`. " if stream else ""
        parts.append(f"{kept}{words}\n")
        parts.append(_subjects([channel for channel in channels() if channel.stream == stream]))
        if stream == "QUEUES":
            parts += ["### Queues\n", _QUEUES_INTRODUCTION, _queues()]
    parts += ["## What varies in subjects\n", _parameters(), "## Headers\n", _headers()]
    return "\n".join(parts)


def _subjects(among: Sequence[Channel]) -> str:
    rows = [
        row(
            f"`{channel.address}`",
            channel.summary if position == 0 else "the same",
            f"{channel.sender} → {channel.receiver}",
            _body(message),
            _header_names(message),
        )
        for channel in among
        for position, message in enumerate(channel.messages)
    ]
    return table(("subject", "what", "who", "body", "headers"), rows)


def _queues() -> str:
    rows = [
        row(
            f"`{queue.name}{'.{schedulerName}' if queue.is_per_scheduler else ''}`",
            queue.task,
            queue.consumer,
            " or ".join(filter(None, (queue.kind, queue.namespaced_kind))) or "none",
            queue.source,
        )
        for queue in QUEUES.values()
    ]
    return table(("queue", "its controller", "service", "objects", "enqueued by"), rows)


def _body(message: MessageSpec) -> str:
    summary = "" if message.summary == "The question." else f"{message.summary} "
    match message.payload:
        case None:
            return f"{summary}(empty)"
        case "bytes":
            return summary.rstrip() or "not read"
        case "manifests":
            return f"{summary}(JSON or YAML, one or many)"
        case "objects":
            return f"{summary}(a manifest, as JSON)"
        case struct:
            return f"{summary}([{struct.__name__}](schemas/{struct.__name__}.json))"


def _header_names(message: MessageSpec) -> str:
    """Those that are always there, and in parentheses those that may be. CloudEvents' are one word."""
    required = [name for name in message.required if not name.startswith("ce-")]
    events = ["`ce-*`"] if len(required) < len(message.required) else []
    named = ", ".join([*(f"`{name}`" for name in required), *events])
    maybe = ", ".join(f"`{name}`" for name in message.optional if name not in message.required)
    return " ".join(filter(None, (named, f"({maybe})" if maybe else ""))) or "none"


def _parameters() -> str:
    return table(("word", "stands for"), [row(f"`{name}`", description) for name, description in PARAMETERS.items()])


def _headers() -> str:
    rows = [
        row(f"`{name}`", spec.description, f"`{spec.pattern}`" if spec.pattern else "any")
        for name, spec in HEADERS.items()
    ]
    return table(("header", "meaning", "values"), rows)
