"""Table of the API's verbs: one row each, with its subjects, its body, what it is about, and who may send it.

Dispatch and authorization in the apiserver, the permission table of NATS and the reference are made of it. A row names
no handler: the apiserver has a method of the verb's name.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from gardenbus.common.api.request_bodies import (
    AccessReview,
    AdminKubeconfigRequest,
    BindRequest,
    EventRequest,
    HostRequest,
    ListRequest,
    MergePatch,
    NamesRequest,
    ProceedRequest,
    RequestBody,
    ScaleRequest,
    SigningRequestName,
    TokenRequest,
    WaitingShootsRequest,
)
from gardenbus.common.api.watches import WatchQuery

BodyForm = type[RequestBody] | type[WatchQuery] | Literal["manifests", "nothing"]

Sender = Literal["everybody", "viewer", "dashboard", "gardenlet", "member-agent", "scheduler", "bootstrap"]
"""Senders by role. `everybody`: whoever is known, but for bootstrappers, extensions and plug-ins.

`viewer`: of the landscape.
"""

Scope = Literal["documents", "object", "explained", "kind", "scheduler", "subject", "landscape"]
"""Subject of a request, and so what is authorized before it is carried out.

| scope | the tail of its subject | authorized |
|---|---|---|
| `documents` | | each object that the body names, by the handler |
| `object` | `<kind>.<namespace>.<name>` | the verb on that object |
| `explained` | the same, or `<namespace>.<name>` | the verb on that shoot, or `explain-seed` |
| `kind` | `<kind>[.<namespace>]` | `list` of that kind |
| `scheduler` | `[<schedulerName>]` | the verb, for that scheduler's shoots |
| `subject` | anything | the verb with the tail |
| `landscape` | anything | the verb |
"""


class Form(NamedTuple):
    """One subject of a verb: its name in the reference, and the tail behind the verb with `{parameter}`s."""

    name: str
    tail: str
    summary: str
    body: BodyForm = "nothing"


class Verb(NamedTuple):
    """Row of the table."""

    name: str
    scope: Scope
    forms: Sequence[Form]
    senders: frozenset[Sender] = frozenset()
    """Senders whom no rule of a Project or of an object concerns; others need a role."""
    writes: bool = False
    """It takes a precondition, a dry run, and how unknown fields are treated."""
    has_dry_run: bool = True
    privileged: bool = False
    """The audit log has a line of each."""


_OBJECT = "{kind}.{namespace}.{name}"


def _senders(*names: Sender) -> frozenset[Sender]:
    return frozenset(names)


_ROWS = (
    Verb(
        "apply",
        "documents",
        [Form("apply", "", "Create or update what the body holds.", "manifests")],
        writes=True,
    ),
    Verb(
        "patch",
        "documents",
        [
            Form("patch", "", "Patch the object that the body names.", MergePatch),
            Form("patchObject", _OBJECT, "Patch one object (a JSON merge patch).", "manifests"),
        ],
        writes=True,
    ),
    Verb(
        "delete",
        "documents",
        [
            Form("delete", "", "Delete what the body holds, or refers to.", "manifests"),
            Form("deleteObject", _OBJECT, "Delete one object."),
        ],
        writes=True,
    ),
    Verb(
        "status",
        "documents",
        [
            Form(
                "patchStatus",
                _OBJECT,
                "Patch the status of one object (a merge patch).",
                "manifests",
            )
        ],
        writes=True,
    ),
    Verb(
        "event",
        "documents",
        [Form("recordEvent", _OBJECT, "Record an Event about one object.", EventRequest)],
        has_dry_run=False,
    ),
    Verb(
        "get",
        "object",
        [Form("get", _OBJECT, "One object.")],
        _senders("gardenlet", "member-agent", "scheduler", "dashboard"),
    ),
    Verb(
        "list",
        "kind",
        [
            Form(
                "list",
                "{kind}",
                "Objects of a kind: the first 500, or `limit`; `continue` of the response requests the rest.",
                ListRequest,
            ),
            Form("listNamespace", "{kind}.{namespace}", "Objects of a kind in a namespace.", ListRequest),
        ],
        _senders("gardenlet", "member-agent", "scheduler", "dashboard"),
    ),
    Verb(
        "names",
        "kind",
        [
            Form("names", "{kind}", "Names of a kind's objects that begin with a prefix.", NamesRequest),
            Form("namesNamespace", "{kind}.{namespace}", "The same in a namespace.", NamesRequest),
        ],
    ),
    Verb(
        "invalid",
        "kind",
        [
            Form("invalid", "{kind}", "Rules that stored objects of a kind break by now: at most 500.", ListRequest),
            Form("invalidNamespace", "{kind}.{namespace}", "The same in a namespace.", ListRequest),
        ],
    ),
    Verb(
        "bind",
        "documents",
        [Form("bind", "", "Place a shoot, or move it.", BindRequest)],
        _senders("scheduler"),
        writes=True,
        has_dry_run=False,
        privileged=True,
    ),
    Verb("scale", "documents", [Form("scale", "", "Read a set's replicas, or set them.", ScaleRequest)], writes=True),
    Verb(
        "explain",
        "explained",
        [
            Form("explain", _OBJECT, "Why a shoot is placed, or is not."),
            Form("explainShoot", "{namespace}.{name}", "The same of a shoot, in short."),
        ],
        _senders("dashboard"),
    ),
    Verb(
        "explain-seed",
        "landscape",
        [Form("explainSeed", "{name}", "Why a seed can be used, or cannot.")],
        _senders("viewer", "dashboard"),
    ),
    Verb(
        "explain-drain",
        "landscape",
        [Form("explainDrain", "{name}", "Where the shoots of a seed would move, if it were drained.")],
        _senders("viewer", "dashboard"),
    ),
    Verb("kinds", "landscape", [Form("kinds", "", "The kinds that are known.")], _senders("everybody", "dashboard")),
    Verb(
        "census",
        "landscape",
        [
            Form("census", "", "How many there are of what."),
            Form("censusOfShoots", "shoot", "Shoots by state, and those busy the longest."),
        ],
        _senders("viewer", "dashboard"),
    ),
    Verb(
        "usage",
        "landscape",
        [Form("usage", "", "How many shoots count on each seed.")],
        _senders("viewer", "dashboard"),
    ),
    Verb(
        "waiting",
        "scheduler",
        [
            Form("waiting", "", "Shoots that wait for a seed.", WaitingShootsRequest),
            Form(
                "waitingFor",
                "{schedulerName}",
                "Shoots that wait for a seed from one scheduler.",
                WaitingShootsRequest,
            ),
        ],
        _senders("viewer", "scheduler", "dashboard"),
    ),
    Verb(
        "unknown",
        "landscape",
        [Form("unknown", "", "What runs on seeds, and is neither stored nor remembered.")],
        _senders("viewer", "dashboard"),
    ),
    Verb(
        "lost",
        "landscape",
        [Form("lost", "", "What streams, or a store, that went back have lost.")],
        _senders("viewer", "dashboard"),
    ),
    Verb(
        "recovery",
        "landscape",
        [Form("recovery", "", "What a store that was restored or rebuilt waits for.")],
        _senders("viewer", "dashboard"),
    ),
    Verb(
        "proceed",
        "landscape",
        [Form("proceed", "", "Have it wait for some Seeds no longer, as an operator.", ProceedRequest)],
        privileged=True,
    ),
    Verb(
        "position",
        "subject",
        [Form("position", "{stream}", "Where a stream ends, for agents that may not look at it.")],
        _senders("gardenlet", "member-agent", "everybody"),
    ),
    Verb(
        "announced",
        "subject",
        [Form("announced", "", "A gardenlet's own Seed, as it was announced to it last.")],
        _senders("gardenlet"),
    ),
    Verb(
        "adopt",
        "object",
        [Form("adopt", _OBJECT, "Store a shoot again as its gardenlet holds it.", HostRequest)],
        writes=True,
        privileged=True,
    ),
    Verb(
        "forget",
        "object",
        [Form("forget", _OBJECT, "Have a shoot torn down that is not stored.", HostRequest)],
        writes=True,
        privileged=True,
    ),
    Verb(
        "csr.create",
        "subject",
        [Form("createSigningRequest", "", "Request a certificate in one's own name.", "manifests")],
        _senders("gardenlet", "member-agent", "everybody", "bootstrap"),
        has_dry_run=False,
        privileged=True,
    ),
    Verb(
        "csr.get",
        "subject",
        [Form("getSigningRequest", "", "A request of one's own, with its certificate.", SigningRequestName)],
        _senders("gardenlet", "member-agent", "everybody", "bootstrap"),
        has_dry_run=False,
    ),
    Verb(
        "csr.approve",
        "subject",
        [Form("approveSigningRequest", "", "Approve a request, as an operator.", SigningRequestName)],
        has_dry_run=False,
        privileged=True,
    ),
    Verb(
        "csr.deny",
        "subject",
        [Form("denySigningRequest", "", "Deny a request, as an operator.", SigningRequestName)],
        has_dry_run=False,
        privileged=True,
    ),
    Verb(
        "token.create",
        "subject",
        [Form("createToken", "", "A bootstrap token for a new gardenlet or member agent.", TokenRequest)],
        _senders("gardenlet"),
        has_dry_run=False,
        privileged=True,
    ),
    Verb(
        "readable",
        "landscape",
        [Form("readable", "", "Kinds, namespaces and Projects that the sender may read.")],
        _senders("everybody"),
    ),
    Verb(
        "watch",
        "documents",
        [Form("watch", "", "What changes, within some seconds, for those who follow no streams.", WatchQuery)],
    ),
    Verb(
        "whoami",
        "landscape",
        [Form("whoami", "", "Who the sender is, as the server has proved it.")],
        _senders("gardenlet", "member-agent", "everybody", "scheduler"),
    ),
    Verb(
        "can-i",
        "landscape",
        [Form("canI", "", "Whether a request would be allowed, or all that would.", AccessReview)],
        _senders("gardenlet", "member-agent", "everybody", "scheduler"),
    ),
    Verb(
        "adminkubeconfig",
        "subject",
        [
            Form(
                "adminKubeconfig",
                "{namespace}.{name}",
                "A kubeconfig of a shoot, as an operator.",
                AdminKubeconfigRequest,
            )
        ],
    ),
    Verb(
        "retry",
        "object",
        [Form("retry", _OBJECT, "Have a waiting shoot decided now.")],
        _senders("scheduler"),
        has_dry_run=False,
    ),
)

VERBS: Mapping[str, Verb] = {verb.name: verb for verb in _ROWS}


def verb_of(tail: str) -> tuple[Verb | None, str]:
    """The verb of a subject behind `garden.api.`, None for one that there is not, and what follows it."""
    first, _, rest = tail.partition(".")
    second, _, further = rest.partition(".")
    if (verb := VERBS.get(f"{first}.{second}")) is not None:
        return verb, further
    return VERBS.get(first), rest


def sent_by(sender: Sender) -> frozenset[str]:
    """Names of the verbs that a sender may send."""
    return frozenset(verb.name for verb in _ROWS if sender in verb.senders)


def subjects_of(sender: Sender) -> tuple[str, ...]:
    """Subjects behind `garden.api.` of what a sender may send, with `>` for parameters."""
    found = dict.fromkeys(
        _pattern(verb.name, form.tail) for verb in _ROWS if sender in verb.senders for form in verb.forms
    )
    return tuple(found)


def _pattern(verb: str, tail: str) -> str:
    if not tail:
        return verb
    return f"{verb}.>" if tail.startswith("{") else f"{verb}.{tail}"
