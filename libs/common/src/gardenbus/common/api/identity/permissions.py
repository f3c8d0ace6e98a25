"""The permission table: what each principal may publish and subscribe to. Everybody else may nothing.

The server's configuration, the auth callout, the documentation and the tests that walk the table are made of it. Rules
that the server sets (NATS 2.14 and newer):

- A wildcard is a whole token: a consumer of an outsider's is named like its owner, or after its owner and a purpose.
- Publish permissions say nothing about reply subjects: within one account a reply could have the server publish
  anywhere. So outsiders have an account of their own, where a reply reaches nobody but outsiders (`accounts`).
- `allow_responses` opens every subject that anybody names as a reply; responses go to `_INBOX.>` only.
- Only a consumer with one filter can be confined (its filter is a part of the subject of its creation).
- A consumer delivers to any subject that its creator names. So outsiders' are pull consumers that the apiserver makes.
- A direct get of some bytes has the server load a message of up to a mebibyte, hundreds at a time. So outsiders have
  that of Leases alone, which are small.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from gardenbus.common.api.fleet.member_clusters import CLUSTER_NAMESPACE_PREFIX
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.api.keys import GARDEN_NAMESPACE, ObjectKey, Subjects
from gardenbus.common.api.kinds import SHOWN
from gardenbus.common.api.queues import QUEUES, queues_of
from gardenbus.common.api.verbs import Sender, subjects_of
from gardenbus.common.errors import BadRequest

JETSTREAM_API = "$JS.API"
"""Prefix of JetStream's API for those whose account has JetStream."""

IMPORTED_JETSTREAM_API = "IN.API"
"""Prefix of the part of it that outsiders may call: their account has no JetStream, and `$JS.API` would answer 503."""

OUTSIDE_REPLIES = "_R_.>"
"""Reply subjects of requests that came from the other account: the server makes them, and takes each once."""

OUTSIDER_PAYLOAD = 1024 * 1024
"""Largest message of somebody outside the services, bytes."""

OUTSIDER_SUBSCRIPTIONS = 50
"""Most subscriptions of one connection of theirs."""

STREAMS = ("REQUESTS", "OBJECTS", "QUEUES", "BINDINGS", "LEASES", "REPORTS", "EVENTS", "REJECTED", "HISTORY")

OPTIONAL_STREAMS = ("HISTORY",)
"""Streams without which everything works but what they are for: nobody waits for them."""


class Permissions(NamedTuple):
    """Subjects, with wildcards, that a principal may publish and subscribe to."""

    publish: tuple[str, ...]
    subscribe: tuple[str, ...]

    def __add__(self, other: "Permissions") -> "Permissions":  # pyright: ignore[reportIncompatibleMethodOverride]
        """Both together."""
        return Permissions(self.publish + other.publish, self.subscribe + other.subscribe)


def permissions_of(principal: Principal, subjects: Subjects) -> Permissions:
    """The row of a principal. Raises BadRequest for a service that there is not."""
    match principal.role:
        case "service":
            row = _SERVICES.get(principal.name)
            if row is None:
                raise BadRequest(f"{principal.name!r} is no service: there are {', '.join(sorted(_SERVICES))}")
            own = row(_Insider(subjects))
        case "operator":
            own = _operator(subjects)
        case role:
            own = _OUTSIDERS[role](principal, subjects)
    shared = _every_insider(principal) if principal.account == "GARDEN" else _every_outsider(principal)
    return shared + own


def managed_streams(service: str) -> tuple[str, ...]:
    """The streams that a service creates and changes; the others it waits for."""
    return _MANAGED_STREAMS.get(service, ())


def service_names() -> tuple[str, ...]:
    """The services that have an identity in the server's configuration."""
    return tuple(_SERVICES)


def _every_insider(principal: Principal) -> Permissions:
    name = principal.name
    return Permissions(
        ("_INBOX.>", "_R_.>", "$JS.FC.>"),  # `_R_.…` is where the response to somebody outside goes
        (
            f"{principal.inbox}.>",
            *(f"$SRV.{verb}{tail}" for verb in ("PING", "INFO", "STATS") for tail in ("", f".{name}", f".{name}.*")),
        ),
    )


def _every_outsider(principal: Principal) -> Permissions:
    return Permissions((), (f"{principal.inbox}.>",))


class _Insider(NamedTuple):
    """Grants of services, by what they are for."""

    subjects: Subjects

    def stream(self, name: str) -> str:
        return self.subjects.stream(name)

    def calls(self, *endpoints: str) -> Permissions:
        """Calls of JetStream's API; streams by their name in the table."""
        return Permissions(tuple(f"{JETSTREAM_API}.{endpoint}" for endpoint in endpoints), ())

    def info(self, *names: str) -> Permissions:
        """Look at streams: all of them unless named."""
        return self.calls(*(f"STREAM.INFO.{self.stream(name)}" for name in names or STREAMS))

    def manage(self, service: str) -> Permissions:
        """Create and change the streams that a service manages."""
        names = [self.stream(name) for name in managed_streams(service)]
        return self.calls(*(f"STREAM.{verb}.{name}" for verb in ("CREATE", "UPDATE") for name in names))

    def follow(self, stream: str) -> Permissions:
        """Consumers on a stream, of one filter or of several."""
        name = self.stream(stream)
        own = (f"CONSUMER.CREATE.{name}.*", f"CONSUMER.CREATE.{name}.*.>", f"CONSUMER.DELETE.{name}.*")
        return self.calls(*own, f"DIRECT.GET.{name}.>") + self.read(stream)

    def follow_each(self, stream: str, *filters: str) -> Permissions:
        """Consumers on a stream that have one of these filters."""
        name = self.stream(stream)
        endpoints = (f"CONSUMER.CREATE.{name}.*", f"DIRECT.GET.{name}")
        return self.calls(*(f"{endpoint}.{each}" for endpoint in endpoints for each in filters))

    def consume(self, stream: str, *consumers: str) -> Permissions:
        """Work through durable consumers."""
        name = self.stream(stream)
        return self.calls(
            *(
                f"{endpoint}{tail}"
                for consumer in consumers
                for endpoint, tail in (
                    (f"CONSUMER.CREATE.{name}.{consumer}", ""),
                    (f"CONSUMER.CREATE.{name}.{consumer}", ".>"),
                    (f"CONSUMER.INFO.{name}.{consumer}", ""),
                    (f"CONSUMER.MSG.NEXT.{name}.{consumer}", ""),
                )
            )
        ) + Permissions(tuple(f"$JS.ACK.{name}.{consumer}.>" for consumer in consumers), ())

    def queues(self, service: str) -> Permissions:
        """The queues of a service's controllers: their consumers, their work, and its timers."""
        rows = queues_of(service)
        consumers = ("*",) if any(row.is_per_scheduler for row in rows) else tuple(row.name for row in rows)
        return self.consume("QUEUES", *consumers) + self.enqueue(*(row.name for row in rows))

    def enqueue(self, *controllers: str) -> Permissions:
        """Put work on queues, now or later, and look which timers there are."""
        prefix = self.subjects.prefix
        subjects = tuple(f"{prefix}.{family}.{each}.>" for each in controllers for family in ("queue", "later"))
        return Permissions(subjects, ()) + self.read("QUEUES")

    def read(self, *names: str) -> Permissions:
        """Read single messages of streams."""
        return self.calls(*(f"STREAM.MSG.GET.{self.stream(name)}" for name in names))

    def purge(self, *names: str) -> Permissions:
        """Remove messages of streams."""
        return self.calls(*(f"STREAM.PURGE.{self.stream(name)}" for name in names))

    def publish(self, *tails: str) -> Permissions:
        """Publish on subjects of the landscape."""
        return Permissions(tuple(f"{self.subjects.prefix}.{tail}" for tail in tails), ())

    def subscribe(self, *tails: str) -> Permissions:
        """Subscribe to subjects of the landscape."""
        return Permissions((), tuple(f"{self.subjects.prefix}.{tail}" for tail in tails))


def _relay(insider: _Insider) -> Permissions:
    every = [insider.stream(name) for name in STREAMS]
    return (
        insider.info()
        + insider.manage("relay")
        + insider.calls("INFO")
        + insider.calls(*(f"CONSUMER.LIST.{name}" for name in every))
        + insider.read(*STREAMS)
        + insider.purge("OBJECTS", "BINDINGS", "QUEUES")
        + insider.calls(*(f"DIRECT.GET.{insider.stream(name)}" for name in ("OBJECTS", "BINDINGS", "QUEUES")))
        + insider.calls(*(f"CONSUMER.INFO.{insider.stream(name)}.*" for name in ("REQUESTS", "REPORTS", "QUEUES")))
        + insider.follow("OBJECTS")
        + insider.follow("BINDINGS")
        + insider.follow("EVENTS")
        + insider.publish(*(f"{family}.>" for family in ("changed", "binding", "view", "event", "queue", "later")))
        + insider.subscribe("relay.settled")
    )


def _apiserver(insider: _Insider) -> Permissions:
    return (
        insider.info()
        + insider.follow("OBJECTS")
        + insider.follow("EVENTS")
        + insider.follow("LEASES")
        + insider.consume("REQUESTS", "apiserver")
        + insider.consume("REPORTS", "apiserver")
        + insider.queues("apiserver")
        + insider.enqueue("*")
        + insider.read("BINDINGS", "LEASES", "REQUESTS", "REPORTS")
        + insider.purge("BINDINGS")
        + insider.calls(f"CONSUMER.CREATE.{insider.stream('BINDINGS')}.*.>")  # those of outsiders, as of OBJECTS
        + insider.publish("rejected.>", "scheduler.*.>", "seed.*.>", "hint.scheduling.*", "counts")
        + Permissions((OUTSIDE_REPLIES,), ())
        + insider.subscribe("api.>", "as.*.api.>", "out.*.api.>", "consumer.>")
    )


def _scheduler(insider: _Insider) -> Permissions:
    return (
        insider.info()
        + insider.follow("OBJECTS")
        + insider.queues("scheduler")
        + insider.publish("rejected.>", "counts", "plugin.*")
        + insider.subscribe("scheduler.>", "hint.scheduling.*")
    )


def _lifecycle(insider: _Insider) -> Permissions:
    return (
        insider.info()
        + insider.manage("lifecycle")
        + insider.follow("LEASES")
        + insider.read("LEASES")
        + insider.follow("OBJECTS")
        + insider.queues("lifecycle")
        + insider.read("HISTORY")
        + insider.publish("lease._canary", "rejected.>", "history.>")
        + insider.subscribe("counts")
    )


def _controller(name: str) -> Callable[[_Insider], Permissions]:
    def row(insider: _Insider) -> Permissions:
        return (
            insider.info()
            + insider.follow("OBJECTS")
            + insider.queues(name)
            + insider.publish(f"as.{name}.api.>", "rejected.>")
        )

    return row


def _controllermanager(insider: _Insider) -> Permissions:
    return (
        insider.info()
        + insider.follow("OBJECTS")
        + insider.queues("controllermanager")
        + insider.purge("EVENTS")
        + insider.publish("as.controllermanager.api.>", "rejected.>")
    )


def _placement(insider: _Insider) -> Permissions:
    return insider.info() + insider.follow("OBJECTS") + insider.queues("placement") + insider.publish("rejected.>")


def _dashboard(insider: _Insider) -> Permissions:
    """It follows each kind for itself: only a consumer with one filter can be kept from Secrets."""
    return (
        insider.info()
        + insider.follow_each("OBJECTS", *map(insider.subjects.changed_kind, SHOWN))
        + insider.follow("EVENTS")
        + insider.follow("LEASES")
        + insider.follow("REJECTED")
        + insider.follow("HISTORY")
        + insider.read("REQUESTS", "REPORTS", "QUEUES", "REJECTED")
        + insider.calls(*(f"CONSUMER.LIST.{insider.stream(name)}" for name in STREAMS), "INFO", "STREAM.LIST")
        + insider.publish(*(f"api.{subject}" for subject in subjects_of("dashboard")), "as.*.api.>")
        + insider.publish(f"event.login.{GARDEN_NAMESPACE}.*")
        + Permissions(("$SRV.PING", "$SRV.INFO", "$SRV.STATS"), ())
    )


def _kubeapi(insider: _Insider) -> Permissions:
    """It serves whoever logs in there, as themselves, also what only some may read: it decides by the apiserver.

    A gardenlet renews and watches its Lease there.
    """
    return (
        insider.info()
        + insider.follow("OBJECTS")
        + insider.follow("EVENTS")
        + insider.follow("LEASES")
        + insider.read("LEASES")
        + insider.publish("as.*.api.>", "relay.settled", "lease.*")
    )


def _identity(insider: _Insider) -> Permissions:
    queues = insider.stream("QUEUES")
    consumers = (f"CONSUMER.CREATE.{queues}.*", f"CONSUMER.CREATE.{queues}.*.>")  # those of schedulers of one's own
    return (
        insider.info()
        + insider.follow("OBJECTS")
        + insider.calls(*consumers)
        + insider.publish("as.identity.api.>", "rejected.>")
    )


_MANAGED_STREAMS: Mapping[str, tuple[str, ...]] = {"relay": STREAMS, "lifecycle": ("LEASES", "HISTORY")}
"""The relay makes them all. Lifecycle sets how long a Lease lives, and makes HISTORY anew where that is gone."""

_SERVICES: Mapping[str, Callable[[_Insider], Permissions]] = {
    "relay": _relay,
    "apiserver": _apiserver,
    "scheduler": _scheduler,
    "lifecycle": _lifecycle,
    "controllermanager": _controllermanager,
    "managedseedset": _controller("managedseedset"),
    "autoscaler": _controller("autoscaler"),
    "placement": _placement,
    "dashboard": _dashboard,
    "kubeapi": _kubeapi,
    "identity": _identity,
}


_OPERATORS_PUBLISH = ("apply", "delete", "api.>", "as.>", "out.>", "restored.>", "rejected", "rejected.>", "plugin.*")


def _operator(subjects: Subjects) -> Permissions:
    """Everything but what only the relay may say: an operator looks after the streams too."""
    return Permissions(
        (
            *(f"{subjects.prefix}.{tail}" for tail in _OPERATORS_PUBLISH),
            "$JS.API.>",
            "$JS.ACK.>",
            "$JS.FC.>",
            "$SRV.>",
        ),
        (f"{subjects.prefix}.>", "_INBOX.>", "$SRV.>"),
    )


def _imported(*endpoints: str) -> tuple[str, ...]:
    return tuple(f"{IMPORTED_JETSTREAM_API}.{endpoint}" for endpoint in endpoints)


def own_consumers(principal: Principal, subjects: Subjects) -> Mapping[str, str]:
    """The pull consumers by which somebody outside the services follows a stream: filter → consumer.

    No two principals share a consumer: the underscore is in no name of a seed or a cluster.
    """
    name = principal.name
    match principal.role:
        case "gardenlet":
            return {subjects.bindings_of(name): name, subjects.views_of(name): f"{name}_view"}
        case "member-agent":
            works = subjects.changed_kind("work", f"{CLUSTER_NAMESPACE_PREFIX}{name}")
            own = subjects.changed(ObjectKey("membercluster", "", name))
            return {works: f"member-{name}", own: f"member-{name}_cluster"}
        case _:
            return {}


def consumer_creation(stream: str, consumer: str, filter_subject: str) -> str:
    """Subject on which JetStream makes a consumer with one filter."""
    return f"{JETSTREAM_API}.CONSUMER.CREATE.{stream}.{consumer}.{filter_subject}"


def _follow_as(principal: Principal, subjects: Subjects, stream: str) -> tuple[str, ...]:
    """Its consumers on a stream: created, looked at, read and removed, each by its exact name with its only filter.

    A consumer that somebody left behind stands where another should begin; none is removed but one's own.
    """
    return tuple(
        grant
        for filter_subject, consumer in own_consumers(principal, subjects).items()
        for grant in (
            *_imported(
                f"CONSUMER.CREATE.{stream}.{consumer}.{filter_subject}",
                f"CONSUMER.INFO.{stream}.{consumer}",
                f"CONSUMER.MSG.NEXT.{stream}.{consumer}",
                f"CONSUMER.DELETE.{stream}.{consumer}",
            ),
            f"$JS.ACK.{stream}.{consumer}.>",
        )
    )


def _gardenlet(principal: Principal, subjects: Subjects) -> Permissions:
    seed = principal.name
    return Permissions(
        (
            subjects.lease(seed),
            f"{subjects.prefix}.report.{seed}.>",
            *_follow_as(principal, subjects, subjects.stream("BINDINGS")),
            *_imported(f"DIRECT.GET.{subjects.stream('LEASES')}.{subjects.lease(seed)}"),
            *_own_requests(principal, subjects, "gardenlet"),
            subjects.extensions_of(seed),
            OUTSIDE_REPLIES,  # its responses to those in GARDEN; nobody outside may read there
        ),
        (f"{subjects.prefix}.seed.{seed}.>",),
    )


def _member_agent(principal: Principal, subjects: Subjects) -> Permissions:
    return Permissions(
        (
            f"{subjects.prefix}.report.{principal.user}.>",
            *_follow_as(principal, subjects, subjects.stream("OBJECTS")),
            *_own_requests(principal, subjects, "member-agent"),
        ),
        (),
    )


def _own_requests(principal: Principal, subjects: Subjects, sender: Sender) -> tuple[str, ...]:
    """Requests in its own name. The apiserver returns what its seed, its cluster or its work leads to."""
    return tuple(subjects.as_user(principal.user, f"api.{subject}") for subject in subjects_of(sender))


def _person(principal: Principal, subjects: Subjects) -> Permissions:
    tails: Sequence[str] = ("apply", "delete", "api.>")
    return Permissions(tuple(subjects.as_user(principal.user, tail) for tail in tails), ())


def _foreign_scheduler(principal: Principal, subjects: Subjects) -> Permissions:
    """Its queue, whose consumer the identity service makes. No timers: one could name another queue as its target."""
    queues, consumer = subjects.stream("QUEUES"), QUEUES["scheduling"].consumer_of(principal.name)
    return Permissions(
        (
            *_imported(f"CONSUMER.INFO.{queues}.{consumer}", f"CONSUMER.MSG.NEXT.{queues}.{consumer}"),
            f"$JS.ACK.{queues}.{consumer}.>",
            *_own_requests(principal, subjects, "scheduler"),
        ),
        (f"{subjects.prefix}.scheduler.{principal.name}.>",),
    )


def _extension(principal: Principal, subjects: Subjects) -> Permissions:
    """The row of who takes the steps of a seed's shoots: it responds to the seed's gardenlet, and to nobody else."""
    gardenlet = Principal("gardenlet", principal.name)
    return Permissions((f"{gardenlet.inbox}.>",), (subjects.extensions_of(principal.name),))


def _plugin(principal: Principal, subjects: Subjects) -> Permissions:
    """The row of a plug-in of scheduling profiles: it responds on its subject, and sends nothing else."""
    return Permissions((OUTSIDE_REPLIES,), (subjects.plugin(principal.name),))


def _bootstrapper(principal: Principal, subjects: Subjects) -> Permissions:
    return Permissions(_own_requests(principal, subjects, "bootstrap"), ())


_OUTSIDERS: Mapping[
    Literal["gardenlet", "member-agent", "user", "scheduler", "extension", "plugin", "bootstrap"],
    Callable[[Principal, Subjects], Permissions],
] = {
    "gardenlet": _gardenlet,
    "member-agent": _member_agent,
    "user": _person,
    "scheduler": _foreign_scheduler,
    "extension": _extension,
    "plugin": _plugin,
    "bootstrap": _bootstrapper,
}


def covers(allowed: Sequence[str], subject: str) -> bool:
    """Match a subject (or a pattern) with patterns, as NATS does: true if one of them matches all of it."""
    return any(_matches(pattern.split("."), subject.split(".")) for pattern in allowed)


def _matches(pattern: Sequence[str], tokens: Sequence[str]) -> bool:
    for position, part in enumerate(pattern):
        if part == ">":
            return len(tokens) > position
        if position >= len(tokens) or part not in ("*", tokens[position]) or tokens[position] == ">":
            return False
    return len(pattern) == len(tokens)
