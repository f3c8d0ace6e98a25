"""Table of the bus: every subject with its stream, its messages, their headers and bodies.

The reference documents are generated from it, and tests check a live landscape against it. Subjects are those of
`keys.Subjects` with `{parameter}` where a token varies; headers those of `keys.Header`, and those of the server and of
open standards that travel with them.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from gardenbus.common.api.fleet.member_clusters import reporter_of
from gardenbus.common.api.history import HistoryChange, HistoryPoint, ProcessCounts
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.api.queues import QUEUES
from gardenbus.common.api.request_bodies import ListRequest, WaitingShootsRequest
from gardenbus.common.api.scheduling_hints import SchedulingHint
from gardenbus.common.api.verbs import VERBS, Form, Verb
from gardenbus.docs.messages import EventReport, Reference, ResponseBody, SeedInventory, StatusReport

NUMBER = r"^(0|[1-9][0-9]*)$"
TRACEPARENT = "traceparent"


class HeaderSpec(NamedTuple):
    """Description of a header, and a regular expression of its values ("" for any)."""

    description: str
    pattern: str = ""


HEADERS: Mapping[str, HeaderSpec] = {
    Header.VERSION: HeaderSpec("the object's resourceVersion", NUMBER),
    Header.UID: HeaderSpec("the object's uid"),
    Header.VERB: HeaderSpec(
        "kind of change, or action of a report", r"^(added|modified|deleted|status|apply|delete|event)$"
    ),
    Header.ROLE: HeaderSpec(
        "role of the seed for the shoot; on a tombstone: it is on another seed", r"^(run|migrate-away|wait|left)$"
    ),
    Header.UNBLOCK_INDEX: HeaderSpec("all cluster events of objects up to this index have been announced", NUMBER),
    Header.SCHEDULING_GENERATION: HeaderSpec("of a Seed: the scheduling generation that a bind compares", NUMBER),
    Header.SETTLED: HeaderSpec("every change up to this version has been announced by this message", NUMBER),
    Header.ATTEMPT: HeaderSpec("number of failed attempts", NUMBER),
    Header.QUERY: HeaderSpec(
        "`exists`: is this still mine? `gone`: its tombstone was obeyed; `inventory`: all that the seed runs",
        r"^(exists|gone|inventory)$",
    ),
    Header.RECOVERY: HeaderSpec("id of a recovery of the store, which waits for the seed's inventory"),
    Header.SEQUENCE: HeaderSpec("sequence of that tombstone in BINDINGS", NUMBER),
    Header.FENCING_TOKEN: HeaderSpec("the gardenlet's fencing token", r"^[0-9]+\.[0-9]+$"),
    Header.CONDITION: HeaderSpec(
        "write only while `<kind>.<namespace>.<name>=<resourceVersion>` holds", r"^[^=]+=[0-9]+$"
    ),
    Header.GROUPS: HeaderSpec(
        "groups that come with a user's credential, as JSON: of services that speak for others", r"^\["
    ),
    Header.DRY_RUN: HeaderSpec(
        "`true`: respond without writing anything; `explain` (of an apply): with what each admission plug-in did",
        r"^(true|false|explain)$",
    ),
    Header.VALIDATE: HeaderSpec(
        "fields that the kind does not have: `strict` rejects them (what `garden.api.*` does by itself), `warn` takes "
        "them with a warning (what `garden.apply` does: an Event and a line in the log), `ignore` takes them",
        r"^(strict|warn|ignore|true|false)$",
    ),
    Header.REASON: HeaderSpec("reason of the rejection"),
    Header.SUBJECT: HeaderSpec("subject of the rejected message"),
    Header.SHA256: HeaderSpec("of the whole message, of which the body is the beginning", r"^[0-9a-f]{64}$"),
    Header.TOO_LARGE: HeaderSpec("the body was left out: get the object"),
    Header.RECONCILE_ID: HeaderSpec("identifies the reconciles of one object in the logs"),
    TRACEPARENT: HeaderSpec(
        "W3C trace context, where traces are on", r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"
    ),
    "ce-specversion": HeaderSpec("CloudEvents in binary mode", r"^1\.0$"),
    "ce-type": HeaderSpec("kind of object and of change", r"^io\.gardenbus\.[a-z]+\.[a-z-]+$"),
    "ce-source": HeaderSpec("source: all changes, or one seed's bindings", r"^/[^/]+/(changed|binding/[^/]+)$"),
    "ce-subject": HeaderSpec("the object: `<namespace>/<name>`, or its name"),
    "ce-id": HeaderSpec("`<uid>.<resourceVersion>`: the same again is the same event", r"^[^.]+\.[0-9]+$"),
    "ce-time": HeaderSpec("when the change was stored", r"^[0-9-]{10}T[0-9:]{8}\.[0-9]{3}Z$"),
    "Nats-TTL": HeaderSpec("lifetime of a tombstone, or of a point of the history", r"^[0-9]+s$"),
    "Nats-Scheduler": HeaderSpec("the timer of the queue message", ""),
    "Nats-Schedule-Next": HeaderSpec("`purge`: the timer goes with this message; else when it comes next", ""),
    "Nats-Schedule": HeaderSpec("time of the delivery", r"^@at "),
    "Nats-Schedule-Target": HeaderSpec("the queue of the delivery"),
}
"""Descriptions of all headers."""


Payload = type | Literal["objects", "manifests", "bytes"] | None


class MessageSpec(NamedTuple):
    """A type of message.

    `payload` is a struct of `messages`, `"objects"` (an object of the kind in the subject, or of any), `"manifests"`
    (JSON or YAML, one or many), `"bytes"` (anything), or None (an empty body). `required` and `optional` are headers.
    """

    name: str
    summary: str
    payload: Payload
    required: Sequence[str] = ()
    optional: Sequence[str] = (TRACEPARENT,)


class Channel(NamedTuple):
    """A family of subjects. `stream` stores its messages ("": none); `is_request_reply`: each message gets a response.

    `sender` and `receiver` are services, or `anybody`.
    """

    name: str
    address: str
    summary: str
    messages: Sequence[MessageSpec]
    sender: str
    receiver: str
    stream: str = ""
    is_request_reply: bool = False
    handlers: Sequence[str] = ()
    """Modules of the receiver's `requests` or `messages`; verbs of the API are found by their rows."""


PARAMETERS: Mapping[str, str] = {
    "kind": "A kind in lower-case singular, as `managedseedset`.",
    "namespace": "The object's namespace; `_` for cluster-scoped kinds.",
    "name": "The object's name. It is the last part of the subject, and may hold dots.",
    "seed": "The name of a Seed.",
    "step": "A step of a shoot's flow, or `health`.",
    "cluster": "The name of a MemberCluster.",
    "user": "The user that a request is sent as.",
    "schedulerName": "The `spec.schedulerName` of the shoots concerned.",
    "plugin": "The name of a plug-in, as in `Remote/<name>`.",
    "stream": "The name of a stream in JetStream, as `LEASES`.",
    "controller": "The controller whose queue it is.",
    "consumer": "The name of a consumer, which has the name of its owner.",
    "filter": "The only filter of a consumer, of several parts.",
    "request": "The subject of the same request behind `garden.`.",
    "verb": "The part behind `garden.` of the subject that it came from: `apply`, `as`, `report`, `queue`, …",
    "sender": "The user, seed or queue that this subject names; `anybody` where it names none.",
    "work": "The queue's subject behind `garden.queue.`.",
}
"""Parameters in subjects."""


def values_of(parameter: str) -> Sequence[str]:
    """All values of a parameter; none where users name them."""
    return [name for name, queue in QUEUES.items() if not queue.is_per_scheduler] if parameter == "controller" else ()


WRITING = (Header.CONDITION, Header.DRY_RUN, Header.VALIDATE, TRACEPARENT)


def channels(prefix: str = "garden") -> Sequence[Channel]:
    """Every channel of a landscape, in the order of a shoot's path through the system."""
    subjects = Subjects(prefix)
    any_object = ObjectKey("{kind}", "{namespace}", "{name}")
    return (
        *_durable_request_channels(subjects),
        *_request_reply_channels(subjects),
        *_announcement_channels(subjects, any_object),
        *_hint_channels(subjects),
        _consumer_channel(subjects),
        *_queue_channels(subjects),
        *_gardenlet_channels(subjects, any_object),
        _member_agent_channel(subjects, any_object),
        Channel(
            "rejected",
            f"{subjects.rejected_before}.{{verb}}.{{sender}}",
            "Rejected messages, with the reason: the newest 2,048 of each sender.",
            [
                MessageSpec(
                    "Rejected",
                    "The first 64 KB of it.",
                    "bytes",
                    (Header.REASON, Header.SUBJECT, Header.SHA256),
                    (Header.RECONCILE_ID,),
                )
            ],
            "apiserver",
            "anybody",
            "REJECTED",
        ),
        *_history_channels(subjects),
    )


def _durable_request_channels(subjects: Subjects) -> Sequence[Channel]:
    apply = MessageSpec("Apply", "Manifests to create or to update.", "manifests")
    delete = MessageSpec("Delete", "Manifests, or references, of what shall go.", "manifests")
    as_user = "The same, sent as a user."
    from_outside = "The same, as it arrives from somebody outside the services' account, who sends it as a user."
    rows = (
        ("apply", subjects.apply, "Create or update; durable.", apply),
        ("delete", subjects.delete, "Delete; durable.", delete),
        ("applyAs", subjects.as_user("{user}", "apply"), as_user, apply),
        ("applyFromOutside", subjects.from_outside("{user}", "apply"), from_outside, apply),
        ("deleteAs", subjects.as_user("{user}", "delete"), as_user, delete),
        ("deleteFromOutside", subjects.from_outside("{user}", "delete"), from_outside, delete),
    )
    return [
        Channel(name, address, summary, [body], *_TO_APISERVER, "REQUESTS", handlers=("durable_requests",))
        for name, address, summary, body in rows
    ]


def _request_reply_channels(subjects: Subjects) -> Sequence[Channel]:
    api = [
        Channel(
            f"api.{form.name}",
            subjects.api(f"{verb.name}.{form.tail}" if form.tail else verb.name),
            form.summary,
            _request_messages(verb, form),
            *_TO_APISERVER,
            is_request_reply=True,
        )
        for verb in VERBS.values()
        for form in verb.forms
    ]
    anything = MessageSpec("ApiAs", "The body of that request.", "bytes", optional=(*WRITING, Header.GROUPS))
    request_message = MessageSpec("Explain", "Nothing.", "bytes")
    return (
        *api,
        Channel(
            "api.as",
            subjects.as_user("{user}", "api.{request}"),
            "Any of these requests, sent as a user.",
            [anything],
            "anybody",
            "apiserver",
            is_request_reply=True,
        ),
        Channel(
            "api.fromOutside",
            subjects.from_outside("{user}", "api.{request}"),
            "The same, as it arrives from somebody outside the services' account, who sends it as a user.",
            [anything],
            "anybody",
            "apiserver",
            is_request_reply=True,
        ),
        *_served_by_schedulers(subjects, request_message),
        _served_by_plugins(subjects, request_message),
        _served_by_relays(subjects, request_message),
        *_served_by_gardenlets(subjects),
    )


def _served_by_schedulers(subjects: Subjects, request_message: MessageSpec) -> Sequence[Channel]:
    scheduler, shoot = "{schedulerName}", ObjectKey("shoot", "{namespace}", "{name}")
    rows = (
        ("explain", subjects.explain(scheduler, shoot), "Scheduling diagnosis of a shoot", "explain_shoots"),
        ("explainSeed", subjects.explain_seed(scheduler, "{seed}"), "Scheduling diagnosis of a seed", "explain_seeds"),
        ("explainDrain", subjects.explain_drain(scheduler, "{seed}"), "Plan of a seed's drain", "explain_drains"),
    )
    return [
        Channel(
            f"scheduler.{name}",
            address,
            f"{summary}, served by the schedulers of a name.",
            [request_message],
            "apiserver",
            "scheduler",
            is_request_reply=True,
            handlers=(handler,),
        )
        for name, address, summary, handler in rows
    ]


def _served_by_plugins(subjects: Subjects, request_message: MessageSpec) -> Channel:
    return Channel(
        "plugin",
        subjects.plugin("{plugin}"),
        "Scores and rejections of seeds for a class of shoots, by a plug-in of a scheduling profile.",
        [request_message],
        "scheduler",
        "anybody",
        is_request_reply=True,
    )


def _served_by_relays(subjects: Subjects, request_message: MessageSpec) -> Channel:
    return Channel(
        "relay.settled",
        subjects.settled,
        "The place in OBJECTS up to which all is announced that was stored before the request.",
        [request_message],
        "kubeapi",
        "relay",
        is_request_reply=True,
    )


def _served_by_gardenlets(subjects: Subjects) -> Sequence[Channel]:
    return (
        Channel(
            "seed.adminKubeconfig",
            subjects.admin_kubeconfig("{seed}", ObjectKey("shoot", "{namespace}", "{name}")),
            "A kubeconfig of a shoot, signed on its seed; served by the gardenlets of backends that have API servers.",
            [MessageSpec("SignKubeconfig", "The certificate's life, and the user that it is made out to.", "bytes")],
            "apiserver",
            "gardenlet",
            is_request_reply=True,
            handlers=("admin_kubeconfigs",),
        ),
        Channel(
            "extension.step",
            subjects.extension("{seed}", "{step}"),
            "A step of a shoot, or a look at its health, for seeds whose backend is `nats`: docs/backends.md.",
            [
                MessageSpec(
                    "TakeStep", "The step, its operation, the shoot with its spec, and what is kept of it.", "bytes"
                )
            ],
            "gardenlet",
            "anybody",
            is_request_reply=True,
        ),
    )


_TO_APISERVER = ("anybody", "apiserver")


def _request_messages(verb: Verb, form: Form) -> Sequence[MessageSpec]:
    name = f"Api{form.name[0].upper()}{form.name[1:]}"
    body = "bytes" if form.body == "nothing" else form.body
    request_message = MessageSpec(name, "The question.", body, optional=WRITING if verb.writes else (TRACEPARENT,))
    return (
        (request_message, MessageSpec(f"{name}All", "For all there are.", None))
        if body in (ListRequest, WaitingShootsRequest)
        else (request_message,)
    )


_CLOUD_EVENT = ("ce-specversion", "ce-type", "ce-source", "ce-subject", "ce-id", "ce-time")


def _announcement_channels(subjects: Subjects, any_object: ObjectKey) -> Sequence[Channel]:
    identity = (Header.VERSION, Header.UID)
    changed = (*identity, Header.VERB, Header.UNBLOCK_INDEX, *_CLOUD_EVENT)
    return (
        Channel(
            "changed",
            subjects.changed(any_object),
            "The object after a change.",
            [
                MessageSpec(
                    "Changed",
                    "The object.",
                    "objects",
                    changed,
                    (Header.SCHEDULING_GENERATION, Header.SETTLED, Header.TOO_LARGE, TRACEPARENT),
                ),
                MessageSpec("Removed", "A tombstone.", None, changed, (Header.SETTLED, "Nats-TTL", TRACEPARENT)),
            ],
            "relay",
            "anybody",
            "OBJECTS",
        ),
        *_seed_channels(subjects, any_object),
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


def _seed_channels(subjects: Subjects, any_object: ObjectKey) -> Sequence[Channel]:
    identity = (Header.VERSION, Header.UID)
    binding = (*identity, *_CLOUD_EVENT)
    return (
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
                MessageSpec("Shown", "The object.", "objects", (*identity, Header.VERB), (Header.RECOVERY,)),
                MessageSpec("Withdrawn", "It is no longer shown.", None, (*identity, Header.VERB)),
            ],
            "relay",
            "gardenlet",
            "BINDINGS",
        ),
    )


def _hint_channels(subjects: Subjects) -> Sequence[Channel]:
    return (
        Channel(
            "hint.scheduling",
            subjects.scheduling_hint("{schedulerName}"),
            "Shoots that were just created, so that a scheduler binds them before the queue has them. It may be lost.",
            [MessageSpec("CreatedShoots", "Their names, and the trace of each.", SchedulingHint)],
            "apiserver",
            "scheduler",
        ),
    )


def _history_channels(subjects: Subjects) -> Sequence[Channel]:
    return (
        Channel(
            "history.point",
            subjects.history_point,
            "The landscape at an instant, once a minute at the most; the older, the fewer are kept.",
            [MessageSpec("HistoryPoint", "Use, waiting shoots, sets and counters.", HistoryPoint, ("Nats-TTL",), ())],
            "lifecycle",
            "anybody",
            "HISTORY",
        ),
        Channel(
            "history.change",
            subjects.history_change,
            "What happened to a seed, a set or a profile between two points.",
            [MessageSpec("HistoryChange", "The object, and what happened.", HistoryChange, (), ())],
            "lifecycle",
            "anybody",
            "HISTORY",
        ),
        Channel(
            "counts",
            subjects.counts,
            "Counters of a process for the history, when they have changed. It may be lost.",
            [MessageSpec("ProcessCounts", "Sums since the process started.", ProcessCounts, (), ())],
            "apiserver, scheduler",
            "lifecycle",
        ),
    )


def _consumer_channel(subjects: Subjects) -> Channel:
    return Channel(
        "consumer",
        subjects.consumer("{stream}.{consumer}.{filter}"),
        "Make a pull consumer, as arrives what outsiders send on `IN.API.CONSUMER.CREATE.…`; JetStream's response.",
        [MessageSpec("CreateConsumer", "JetStream's request, without anything but a pull consumer's fields.", "bytes")],
        "gardenlet",
        "apiserver",
        is_request_reply=True,
        handlers=("own_consumers",),
    )


def _queue_channels(subjects: Subjects) -> Sequence[Channel]:
    optional = (Header.ATTEMPT, Header.RECONCILE_ID, "Nats-Scheduler", "Nats-Schedule-Next", TRACEPARENT)
    shoot = ObjectKey("shoot", "{namespace}", "{name}")
    return (
        Channel(
            "queue.scheduling",
            subjects.scheduling("{schedulerName}", shoot),
            "This shoot needs a seed. With a priority it has a band, `+1` or `-1`, before `{namespace}`.",
            [MessageSpec("Pending", "Nothing: the subject says it.", None, (), optional)],
            "relay",
            "scheduler",
            "QUEUES",
        ),
        Channel(
            "queue",
            subjects.queue("{controller}", "{namespace}", "{name}"),
            "This object needs a reconcile.",
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


def _gardenlet_channels(subjects: Subjects, any_object: ObjectKey) -> Sequence[Channel]:
    with_token = (Header.FENCING_TOKEN,)
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
                MessageSpec("StatusReport", "A part of its status, to be merged.", StatusReport, with_token, optional),
                MessageSpec("EventReport", "An Event about it.", EventReport, (*with_token, Header.VERB), optional),
                MessageSpec("ApplyReport", "An object of its own.", "objects", (*with_token, Header.VERB), optional),
                MessageSpec("DeleteReport", "Its Seed shall go.", "bytes", (*with_token, Header.VERB), optional),
                MessageSpec(
                    "Question",
                    "Is it still here?",
                    "bytes",
                    (*with_token, Header.QUERY),
                    (Header.UID, Header.SEQUENCE, TRACEPARENT),
                ),
                MessageSpec(
                    "Inventory",
                    "All that the seed runs, after its Seed was announced with a recovery.",
                    SeedInventory,
                    (*with_token, Header.QUERY, Header.RECOVERY),
                    (TRACEPARENT,),
                ),
            ],
            "gardenlet",
            "apiserver",
            "REPORTS",
            handlers=("reports", "inventories"),
        ),
    )


def _member_agent_channel(subjects: Subjects, any_object: ObjectKey) -> Channel:
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
        handlers=("member_reports",),
    )


RESPONSES: Sequence[type] = (ResponseBody,)
"""Bodies of responses."""

REFERENCES: Sequence[type] = (Reference,)
"""Bodies of `manifests` besides objects."""
