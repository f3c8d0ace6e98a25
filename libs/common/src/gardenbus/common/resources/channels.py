"""The bus as a table: every subject with its stream, its messages, and what their headers and bodies hold.

The reference documents are generated of it, and a live landscape is held against it. Subjects are those of
`keys.Subjects` with `{parameter}` where a token varies; headers those of `keys.Header`, and those of the server and of
open standards that travel with them.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from gardenbus.common.resources.keys import Header, ObjectKey, Subjects
from gardenbus.common.resources.member_clusters import reporter_of
from gardenbus.common.resources.wire_views import (
    Answer,
    BindRequest,
    EventReport,
    ListRequest,
    MergePatch,
    Reference,
    ScaleRequest,
    StatusReport,
)

NUMBER = r"^(0|[1-9][0-9]*)$"
TRACEPARENT = "traceparent"


class HeaderSpec(NamedTuple):
    """What a header says, and the values that it may have (a regular expression; "" for any)."""

    meaning: str
    pattern: str = ""


HEADERS: Mapping[str, HeaderSpec] = {
    Header.VERSION: HeaderSpec("the object's resourceVersion", NUMBER),
    Header.UID: HeaderSpec("the object's uid"),
    Header.VERB: HeaderSpec(
        "what happened, or what a report is to do", r"^(added|modified|deleted|status|apply|delete|event)$"
    ),
    Header.ROLE: HeaderSpec(
        "what the seed is to the shoot; on a tombstone: another seed has it", r"^(run|migrate-away|wait|left)$"
    ),
    Header.GAIN: HeaderSpec("all gains of objects up to this number have been announced", NUMBER),
    Header.GATE: HeaderSpec("of a Seed: the number that a bind compares", NUMBER),
    Header.ATTEMPT: HeaderSpec("how often this work has failed", NUMBER),
    Header.QUESTION: HeaderSpec("`exists`: is this still mine? `gone`: its tombstone was obeyed", r"^(exists|gone)$"),
    Header.SEQUENCE: HeaderSpec("where the tombstone that was obeyed stands in BINDINGS", NUMBER),
    Header.FENCE: HeaderSpec("the gardenlet's fencing number", r"^[0-9]+\.[0-9]+$"),
    Header.CONDITION: HeaderSpec(
        "write only while `<kind>.<namespace>.<name>=<resourceVersion>` holds", r"^[^=]+=[0-9]+$"
    ),
    Header.DRY_RUN: HeaderSpec("`true`: answer as if, and write nothing", r"^(true|false)$"),
    Header.REASON: HeaderSpec("why the message was not taken"),
    Header.SUBJECT: HeaderSpec("where the message came from"),
    Header.SHA256: HeaderSpec("of the whole message, of which the body is the beginning", r"^[0-9a-f]{64}$"),
    Header.TOO_LARGE: HeaderSpec("the body was left out: ask for the object"),
    Header.RECONCILE_ID: HeaderSpec("ties the looks at one piece of work together in the logs"),
    TRACEPARENT: HeaderSpec(
        "W3C trace context, where traces are on", r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"
    ),
    "ce-specversion": HeaderSpec("CloudEvents in binary mode", r"^1\.0$"),
    "ce-type": HeaderSpec("what happened to what kind of thing", r"^io\.gardenbus\.[a-z]+\.[a-z-]+$"),
    "ce-source": HeaderSpec(
        "seen from where: all changes, or one seed's bindings", r"^/[^/]+/(changed|binding/[^/]+)$"
    ),
    "ce-subject": HeaderSpec("the object: `<namespace>/<name>`, or its name"),
    "ce-id": HeaderSpec("`<uid>.<resourceVersion>`: the same again is the same event", r"^[^.]+\.[0-9]+$"),
    "ce-time": HeaderSpec("when the change was stored", r"^[0-9-]{10}T[0-9:]{8}\.[0-9]{3}Z$"),
    "Nats-TTL": HeaderSpec("how long a tombstone stands", r"^[0-9]+s$"),
    "Nats-Scheduler": HeaderSpec("the timer that belongs to the work", ""),
    "Nats-Schedule-Next": HeaderSpec("`purge`: the timer goes with this message; else when it comes next", ""),
    "Nats-Schedule": HeaderSpec("when the work comes back", r"^@at "),
    "Nats-Schedule-Target": HeaderSpec("the queue that it comes back to"),
}
"""What every header means."""


Payload = type | Literal["objects", "manifests", "bytes"] | None


class MessageSpec(NamedTuple):
    """One kind of message.

    `payload` is a struct of `wire_views`, `"objects"` (an object of the kind in the subject, or of any), `"manifests"`
    (JSON or YAML, one or many), `"bytes"` (anything), or None (an empty body). `required` and `optional` are headers.
    """

    name: str
    summary: str
    payload: Payload
    required: Sequence[str] = ()
    optional: Sequence[str] = (TRACEPARENT,)


class Channel(NamedTuple):
    """One family of subjects. `stream` is where its messages are kept ("": nowhere), `asks` that it is answered.

    `sender` and `receiver` are the services, or `anybody`.
    """

    name: str
    address: str
    summary: str
    messages: Sequence[MessageSpec]
    sender: str
    receiver: str
    stream: str = ""
    asks: bool = False


PARAMETERS: Mapping[str, str] = {
    "kind": "A kind in lower-case singular, as `managedseedset`.",
    "namespace": "The object's namespace; `_` for cluster-scoped kinds.",
    "name": "The object's name. It is the last part of the subject, and may hold dots.",
    "seed": "The name of a Seed.",
    "cluster": "The name of a MemberCluster.",
    "user": "Who speaks.",
    "schedulerName": "The `spec.schedulerName` of the shoots concerned.",
    "controller": "The controller whose queue it is.",
    "request": "What is asked for: the subject of the same request behind `garden.`.",
    "work": "The work's place: what stands behind `garden.queue.`.",
}
"""What varies in subjects."""

WRITING = (Header.CONDITION, Header.DRY_RUN, TRACEPARENT)


def channels(prefix: str = "garden") -> Sequence[Channel]:
    """Every channel of a landscape, in the order of a shoot's way."""
    subjects = Subjects(prefix)
    any_object = ObjectKey("{kind}", "{namespace}", "{name}")
    return (
        *_requests(subjects),
        *_answered(subjects),
        *_announced(subjects, any_object),
        *_queued(subjects),
        *_from_gardenlets(subjects, any_object),
        _from_member_agents(subjects, any_object),
        Channel(
            "rejected",
            subjects.rejected,
            "What could not be taken, with the reason.",
            [
                MessageSpec(
                    "Rejected", "The first 64 KB of it.", "bytes", (Header.REASON, Header.SUBJECT, Header.SHA256)
                )
            ],
            "apiserver",
            "anybody",
            "REJECTED",
        ),
    )


def _requests(subjects: Subjects) -> Sequence[Channel]:
    apply = MessageSpec("Apply", "Manifests to create or to update.", "manifests")
    delete = MessageSpec("Delete", "Manifests, or references, of what shall go.", "manifests")
    return (
        Channel("apply", subjects.apply, "Create or update; durable.", [apply], "anybody", "apiserver", "REQUESTS"),
        Channel("delete", subjects.delete, "Delete; durable.", [delete], "anybody", "apiserver", "REQUESTS"),
        Channel(
            "applyAs",
            subjects.spoken_by("{user}", "apply"),
            "The same, spoken by a user.",
            [apply],
            "anybody",
            "apiserver",
            "REQUESTS",
        ),
        Channel(
            "deleteAs",
            subjects.spoken_by("{user}", "delete"),
            "The same, spoken by a user.",
            [delete],
            "anybody",
            "apiserver",
            "REQUESTS",
        ),
    )


_OBJECT = "{kind}.{namespace}.{name}"

_API: Sequence[tuple[str, str, str, Payload, bool]] = (
    ("apply", "apply", "Create or update what the body holds.", "manifests", True),
    ("patch", "patch", "Patch the object that the body names.", MergePatch, True),
    ("patchObject", f"patch.{_OBJECT}", "Patch one object (a JSON merge patch).", "manifests", True),
    ("delete", "delete", "Delete what the body holds, or refers to.", "manifests", True),
    ("deleteObject", f"delete.{_OBJECT}", "Delete one object.", "bytes", True),
    ("get", f"get.{_OBJECT}", "One object.", "bytes", False),
    ("list", "list.{kind}", "Objects of a kind; an empty body asks for all.", ListRequest, False),
    ("listNamespace", "list.{kind}.{namespace}", "Objects of a kind in a namespace.", ListRequest, False),
    ("bind", "bind", "Place a shoot, or move it.", BindRequest, True),
    ("scale", "scale", "Ask for a set's replicas, or set them.", ScaleRequest, True),
    ("explain", f"explain.{_OBJECT}", "Why a shoot is placed, or is not.", "bytes", False),
    ("explainShoot", "explain.{namespace}.{name}", "The same of a shoot, in short.", "bytes", False),
    ("explainSeed", "explain-seed.{name}", "Why a seed can be used, or cannot.", "bytes", False),
    ("kinds", "kinds", "The kinds that are known.", "bytes", False),
    ("census", "census", "How many there are of what.", "bytes", False),
    ("waiting", "waiting", "Shoots that wait for a seed.", "bytes", False),
    ("waitingFor", "waiting.{schedulerName}", "Shoots that wait for a seed from one scheduler.", "bytes", False),
    ("retry", f"retry.{_OBJECT}", "Have a waiting shoot decided now.", "bytes", False),
)
"""Requests below `garden.api.`: name, tail of the subject, summary, body, whether they write."""


def _answered(subjects: Subjects) -> Sequence[Channel]:
    api = [
        Channel(f"api.{name}", subjects.api(tail), summary, _questions(name, body, writes), *_ASKED, asks=True)
        for name, tail, summary, body, writes in _API
    ]
    anything = MessageSpec("ApiAs", "The body of that request.", "bytes", optional=WRITING)
    asked = MessageSpec("Explain", "Nothing.", "bytes")
    return (
        *api,
        Channel(
            "api.as",
            subjects.spoken_by("{user}", "api.{request}"),
            "Any of these requests, spoken by a user.",
            [anything],
            "anybody",
            "apiserver",
            asks=True,
        ),
        Channel(
            "scheduler.explain",
            subjects.explain("{schedulerName}", ObjectKey("shoot", "{namespace}", "{name}")),
            "The schedulers of a name say why they would place a shoot, or would not.",
            [asked],
            "apiserver",
            "scheduler",
            asks=True,
        ),
    )


_ASKED = ("anybody", "apiserver")


def _questions(name: str, body: Payload, writes: bool) -> Sequence[MessageSpec]:  # noqa: FBT001  (a column)
    name = f"Api{name[0].upper()}{name[1:]}"
    asked = MessageSpec(name, "The question.", body, optional=WRITING if writes else (TRACEPARENT,))
    return (asked, MessageSpec(f"{name}All", "For all there are.", None)) if body is ListRequest else (asked,)


_CLOUD_EVENT = ("ce-specversion", "ce-type", "ce-source", "ce-subject", "ce-id", "ce-time")


def _announced(subjects: Subjects, any_object: ObjectKey) -> Sequence[Channel]:
    identity = (Header.VERSION, Header.UID)
    changed = (*identity, Header.VERB, Header.GAIN, *_CLOUD_EVENT)
    binding = (*identity, *_CLOUD_EVENT)
    return (
        Channel(
            "changed",
            subjects.changed(any_object),
            "The object after a change.",
            [
                MessageSpec("Changed", "The object.", "objects", changed, (Header.GATE, Header.TOO_LARGE, TRACEPARENT)),
                MessageSpec("Removed", "A tombstone.", None, changed, ("Nats-TTL", TRACEPARENT)),
            ],
            "relay",
            "anybody",
            "OBJECTS",
        ),
        Channel(
            "binding",
            subjects.binding("{seed}", "{namespace}", "{name}"),
            "What a seed's gardenlet must know about one shoot.",
            [
                MessageSpec("Binding", "The Shoot.", "objects", (*binding, Header.ROLE)),
                MessageSpec(
                    "Unbound",
                    "It no longer concerns the seed.",
                    None,
                    (*binding, Header.VERB),
                    (Header.ROLE, TRACEPARENT),
                ),
            ],
            "relay",
            "gardenlet",
            "BINDINGS",
        ),
        Channel(
            "view",
            subjects.view("{seed}", any_object),
            "What else a seed's gardenlet may see: its Seed, and what follows its shoots.",
            [
                MessageSpec("Shown", "The object.", "objects", (*identity, Header.VERB)),
                MessageSpec("Withdrawn", "It is no longer shown.", None, (*identity, Header.VERB)),
            ],
            "relay",
            "gardenlet",
            "BINDINGS",
        ),
        Channel(
            "event",
            subjects.event(any_object),
            "Events about an object.",
            [MessageSpec("Happened", "The Event.", "objects")],
            "relay",
            "anybody",
            "EVENTS",
        ),
    )


def _queued(subjects: Subjects) -> Sequence[Channel]:
    optional = (Header.ATTEMPT, Header.RECONCILE_ID, "Nats-Scheduler", "Nats-Schedule-Next", TRACEPARENT)
    shoot = ObjectKey("shoot", "{namespace}", "{name}")
    return (
        Channel(
            "queue.scheduling",
            subjects.scheduling("{schedulerName}", shoot),
            "This shoot needs a seed.",
            [MessageSpec("Pending", "Nothing: the subject says it.", None, (), optional)],
            "relay",
            "scheduler",
            "QUEUES",
        ),
        Channel(
            "queue",
            subjects.queue("{controller}", "{namespace}", "{name}"),
            "This object needs a look.",
            [MessageSpec("Work", "Nothing: the subject says it.", None, (), optional)],
            "anybody",
            "anybody",
            "QUEUES",
        ),
        Channel(
            "later",
            subjects.later(subjects.queue_of("{work}").removesuffix(".>")),
            "A timer: the server puts the work on its queue when it is due.",
            [
                MessageSpec(
                    "Timer",
                    "Nothing.",
                    None,
                    ("Nats-Schedule", "Nats-Schedule-Target"),
                    (Header.ATTEMPT, Header.RECONCILE_ID, TRACEPARENT),
                )
            ],
            "anybody",
            "anybody",
            "QUEUES",
        ),
    )


def _from_gardenlets(subjects: Subjects, any_object: ObjectKey) -> Sequence[Channel]:
    fenced = (Header.FENCE,)
    optional = (Header.UID, Header.VERB, TRACEPARENT)
    return (
        Channel(
            "lease",
            subjects.lease("{seed}"),
            "A gardenlet's heartbeat.",
            [
                MessageSpec("Heartbeat", "The Lease.", "objects"),
                MessageSpec("Ended", "The server's marker: it was not renewed.", None, (), ()),
            ],
            "gardenlet",
            "lifecycle",
            "LEASES",
        ),
        Channel(
            "report",
            subjects.report("{seed}", any_object),
            "What a gardenlet observed of an object.",
            [
                MessageSpec("StatusReport", "A part of its status, to be merged.", StatusReport, fenced, optional),
                MessageSpec("EventReport", "An Event about it.", EventReport, (*fenced, Header.VERB), optional),
                MessageSpec("ApplyReport", "An object of its own.", "objects", (*fenced, Header.VERB), optional),
                MessageSpec("DeleteReport", "Its Seed shall go.", "bytes", (*fenced, Header.VERB), optional),
                MessageSpec(
                    "Question",
                    "Is it still here?",
                    "bytes",
                    (*fenced, Header.QUESTION),
                    (Header.UID, Header.SEQUENCE, TRACEPARENT),
                ),
            ],
            "gardenlet",
            "apiserver",
            "REPORTS",
        ),
    )


def _from_member_agents(subjects: Subjects, any_object: ObjectKey) -> Channel:
    optional = (Header.UID, Header.VERB, TRACEPARENT)
    verb = (Header.VERB,)
    return Channel(
        "memberReport",
        subjects.report(reporter_of("{cluster}"), any_object),
        "What a member cluster's agent observed of its MemberCluster or of a Work addressed to it.",
        [
            MessageSpec("MemberStatusReport", "A part of its status, to be merged.", StatusReport, (), optional),
            MessageSpec("MemberEventReport", "An Event about it.", EventReport, verb, optional),
            MessageSpec("MemberApplyReport", "Its own MemberCluster.", "objects", verb, optional),
            MessageSpec("MemberDeleteReport", "Its MemberCluster shall go.", "bytes", (*verb, Header.UID), optional),
        ],
        "memberagent",
        "apiserver",
        "REPORTS",
    )


REPLIES: Sequence[type] = (Answer,)
"""What is answered to requests."""

NAMED: Sequence[type] = (Reference,)
"""What `manifests` may hold besides objects."""
