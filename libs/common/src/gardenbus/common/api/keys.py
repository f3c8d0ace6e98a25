"""Object keys, and every subject and header of the bus, each built (and parsed) in one function."""

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.api.users import subject_token

ANYBODY = "anybody"
"""Sender of a message whose subject names none."""

_PLAIN_TOKEN = re.compile(r"[A-Za-z0-9_:{}-]{1,128}")

CLUSTER_SCOPE = "_"
GARDEN_NAMESPACE = "garden"
DEFAULT_NAMESPACE = "default"
"""Namespace of Events about objects that have none."""

LEASE_NAMESPACE = "gardener-system-seed-lease"
SEED_NAMESPACE_PREFIX = "seed-"
"""Of the namespace of a seed in the garden; the seed's name follows."""

PROBE_LEASE = "_canary"
RESERVED_TAINT = "node.gardener.cloud/critical-components-not-ready"
"""A taint that nodes have until their daemons run."""
LEFT = "left"
"""Role header of a binding's tombstone when the shoot exists on another seed."""


class ObjectKey(NamedTuple):
    """Kind (lower-case singular), namespace ("" when cluster-scoped) and name of an object."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """`shoot garden-dev/apollo`, for people."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def tail(self) -> str:
        """`<kind>.<ns>.<name>`, for subjects."""
        return f"{self.kind}.{self.namespace or CLUSTER_SCOPE}.{self.name}"

    @property
    def stored(self) -> str:
        """`<kind>:<ns>:<name>`, for Redis; the name alone may hold colons."""
        return f"{self.kind}:{self.namespace or CLUSTER_SCOPE}:{self.name}"

    @classmethod
    def from_tail(cls, tail: str) -> "ObjectKey":
        """Parse `<kind>.<ns>.<name>`; raises ValueError when a part is missing."""
        kind, namespace, name = tail.split(".", 2)
        if not kind or not namespace or not name:
            raise ValueError(f"{tail!r} is not <kind>.<namespace>.<name>")
        return cls(kind, "" if namespace == CLUSTER_SCOPE else namespace, name)

    @classmethod
    def from_stored(cls, stored: str) -> "ObjectKey":
        """Parse `<kind>:<ns>:<name>`."""
        kind, namespace, name = stored.split(":", 2)
        return cls(kind, "" if namespace == CLUSTER_SCOPE else namespace, name)


CLUSTER_IDENTITY = ObjectKey("configmap", "kube-system", "cluster-identity")
GARDENER_INFO = ObjectKey("configmap", "gardener-system-public", "gardener-info")
KUBE_ROOT_CA = ObjectKey("configmap", "gardener-system-public", "kube-root-ca.crt")
"""ConfigMaps of a landscape about itself, which everybody may read."""


def _token(text: str) -> str:
    """A part of a subject: the text, or its digest where it could not stand there as it is."""
    return text if _PLAIN_TOKEN.fullmatch(text) else hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


class QueuedShoot(NamedTuple):
    """A shoot in a scheduler's queue, and its band there ("": the middle one)."""

    scheduler: str
    band: str
    key: ObjectKey


def queued_shoot(subject: str) -> QueuedShoot | None:
    """The shoot of `[<prefix>.queue.]scheduling.<scheduler>.[<band>.]<ns>.<name>`; None on other subjects.

    No part before the name holds a dot, and no namespace begins as bands do. Anybody may publish there: a subject that
    is too short names a shoot that does not exist.
    """
    _, is_queue, tail = f".{subject}".partition(".scheduling.")
    if not is_queue:
        return None
    scheduler, _, shoot = tail.partition(".")
    first, _, rest = shoot.partition(".")
    band, shoot = (first, rest) if first[:1] in _BAND_SIGNS and first else ("", shoot)
    namespace, _, name = shoot.partition(".")
    return QueuedShoot(scheduler, band, ObjectKey("shoot", namespace, name))


_BAND_SIGNS = "+-"


def seed_namespace(seed: str) -> str:
    """The namespace of a seed in the garden."""
    return f"{SEED_NAMESPACE_PREFIX}{seed}"


class Subjects:
    """Every subject of one landscape. `prefix` is `garden` unless GARDENBUS_PREFIX says otherwise."""

    def __init__(self, prefix: str = "garden") -> None:
        self.prefix = prefix

    @property
    def apply(self) -> str:
        """Durable create-or-update."""
        return f"{self.prefix}.apply"

    @property
    def delete(self) -> str:
        """Durable delete."""
        return f"{self.prefix}.delete"

    def api(self, tail: str) -> str:
        """Subject of a request with a response: `api("get.shoot.garden-dev.apollo")`."""
        return f"{self.prefix}.api.{tail}"

    def as_user(self, user: str, tail: str) -> str:
        """Subject of the same request, sent as a user: `as_user("ann", "apply")`."""
        return f"{self.prefix}.as.{subject_token(user)}.{tail}"

    def from_outside(self, user: str, tail: str) -> str:
        """Subject of the same request in the services' account, where somebody outside it sent it as `as_user`.

        The server makes it of the other when the request crosses the accounts (`identity.accounts`).
        """
        return f"{self.prefix}.out.{subject_token(user)}.{tail}"

    def consumer(self, tail: str) -> str:
        """Subject on which somebody outside has a consumer made: `consumer("BINDINGS.aws.garden.binding.aws.>")`.

        The server makes it of JetStream's own when the request crosses the accounts (`identity.accounts`).
        """
        return f"{self.prefix}.consumer.{tail}"

    def changed(self, key: ObjectKey) -> str:
        """Subject of an object's changes."""
        return f"{self.prefix}.changed.{key.tail}"

    def changed_kind(self, kind: str, namespace: str | None = None) -> str:
        """Filter for all changes of one kind, in one namespace or in all."""
        return f"{self.prefix}.changed.{kind}.{namespace}.>" if namespace else f"{self.prefix}.changed.{kind}.>"

    def scheduling(self, scheduler_name: str, key: ObjectKey, band: str = "") -> str:
        """Subject of a shoot in a scheduler's queue, in a band ("": the middle one)."""
        queue = f"{self.prefix}.queue.scheduling.{scheduler_name}{'.' if band else ''}{band}"
        return f"{queue}.{key.namespace or CLUSTER_SCOPE}.{key.name}"

    def scheduling_band(self, scheduler_name: str, band: str) -> str:
        """Filter for a band ("": the middle one) of a scheduler's queue."""
        return f"{self.prefix}.queue.scheduling.{scheduler_name}{'.' if band else ''}{band}.*.*"

    def plugin(self, name: str) -> str:
        """Subject of requests to a plug-in of schedulers."""
        return f"{self.prefix}.plugin.{name}"

    def scheduling_hint(self, scheduler_name: str) -> str:
        """Subject of hints (`scheduling_hints`) to the schedulers of a name; no stream stores them."""
        return f"{self.prefix}.hint.scheduling.{scheduler_name}"

    def queue(self, controller: str, namespace: str, name: str) -> str:
        """Subject of an object in a controller's queue."""
        return f"{self.prefix}.queue.{controller}.{namespace or CLUSTER_SCOPE}.{name}"

    def queue_of(self, controller: str) -> str:
        """Filter for a controller's queue (`scheduling.default-scheduler` for a scheduler)."""
        return f"{self.prefix}.queue.{controller}.>"

    def later(self, queue_subject: str) -> str:
        """Subject of the timer of a queue's subject: same tail below `later`."""
        return f"{self.prefix}.later.{queue_subject.removeprefix(self.prefix + '.queue.')}"

    def explain(self, scheduler_name: str, shoot: ObjectKey) -> str:
        """Subject of a request for a shoot's scheduling diagnosis, served by the schedulers of a name."""
        return f"{self.prefix}.scheduler.{scheduler_name}.explain.{shoot.namespace}.{shoot.name}"

    def explain_of(self, scheduler_name: str) -> str:
        """Filter for all diagnosis requests to the schedulers of a name."""
        return f"{self.prefix}.scheduler.{scheduler_name}.explain.>"

    def explain_seed(self, scheduler_name: str, seed: str) -> str:
        """Subject of a request for a seed's scheduling diagnosis, served by the schedulers of a name."""
        return f"{self.prefix}.scheduler.{scheduler_name}.explain-seed.{seed}"

    def explain_drain(self, scheduler_name: str, seed: str) -> str:
        """Subject of a request for the plan of a seed's drain, served by the schedulers of a name."""
        return f"{self.prefix}.scheduler.{scheduler_name}.explain-drain.{seed}"

    def admin_kubeconfig(self, seed: str, shoot: ObjectKey) -> str:
        """Subject of a request for a kubeconfig of a shoot, served by the gardenlet of its seed."""
        return f"{self.prefix}.seed.{seed}.adminkubeconfig.{shoot.namespace}.{shoot.name}"

    def admin_kubeconfigs_of(self, seed: str) -> str:
        """Filter for all requests for kubeconfigs of a seed's shoots."""
        return f"{self.prefix}.seed.{seed}.adminkubeconfig.>"

    def extension(self, seed: str, step: str) -> str:
        """Subject of a request for a step of a seed's shoots, sent by its gardenlet with the backend `nats`."""
        return f"{self.prefix}.extension.{seed}.{step}"

    def extensions_of(self, seed: str) -> str:
        """Filter for all requests for steps of a seed's shoots."""
        return self.extension(seed, "*")

    @property
    def history_point(self) -> str:
        """Subject of the points of the landscape's history."""
        return f"{self.prefix}.history.point"

    @property
    def history_change(self) -> str:
        """Subject of what happened between two points."""
        return f"{self.prefix}.history.change"

    @property
    def counts(self) -> str:
        """Subject on which processes send their counters for the history; no stream stores them."""
        return f"{self.prefix}.counts"

    @property
    def settled(self) -> str:
        """Subject of a request that is responded to once all that was stored before it has been announced."""
        return f"{self.prefix}.relay.settled"

    def binding(self, seed: str, namespace: str, name: str) -> str:
        """Subject of a shoot's binding for the gardenlet of `seed`."""
        return f"{self.prefix}.binding.{seed}.{namespace}.{name}"

    def bindings_of(self, seed: str) -> str:
        """Filter for all shoots that concern a seed."""
        return f"{self.prefix}.binding.{seed}.>"

    def view(self, seed: str, key: ObjectKey) -> str:
        """Subject of another object that the gardenlet of `seed` may read."""
        return f"{self.prefix}.view.{seed}.{key.tail}"

    def views_of(self, seed: str) -> str:
        """Filter for the other objects that a gardenlet may read."""
        return f"{self.prefix}.view.{seed}.>"

    def lease(self, seed: str) -> str:
        """Subject of a gardenlet's Lease."""
        return f"{self.prefix}.lease.{seed}"

    def report(self, seed: str, key: ObjectKey) -> str:
        """Subject of the reports of `seed`'s gardenlet about an object."""
        return f"{self.prefix}.report.{seed}.{key.tail}"

    def event(self, key: ObjectKey) -> str:
        """Subject of Events about an object."""
        return f"{self.prefix}.event.{key.tail}"

    def events_of(self, kind: str) -> str:
        """Filter for Events about all objects of a kind."""
        return f"{self.prefix}.event.{kind}.>"

    def rejected(self, subject: str) -> str:
        """Subject of a rejected message by the one that it came from: `<prefix>.rejected.<verb>.<sender>`.

        The sender is the user, seed or queue that the original subject names, `anybody` where it names none.
        """
        verb, _, rest = subject.removeprefix(f"{self.prefix}.").partition(".")
        return f"{self.prefix}.rejected.{_token(verb)}.{_token(rest.partition('.')[0] or ANYBODY)}"

    @property
    def rejected_before(self) -> str:
        """Subject of all rejected messages in former versions; what they rejected is still there."""
        return f"{self.prefix}.rejected"

    @property
    def rejections(self) -> Sequence[str]:
        """Filters for all rejected messages."""
        return (self.rejected_before, f"{self.rejected_before}.>")

    def stream(self, name: str) -> str:
        """The JetStream name of a stream: `REQUESTS` for the prefix `garden`, else `<PREFIX>_REQUESTS`."""
        return name if self.prefix == "garden" else f"{self.prefix.upper().replace('.', '_').replace('-', '_')}_{name}"


class Header:
    """Header names on messages of ours."""

    VERSION = "Gardenbus-Version"  # the object's resourceVersion
    UID = "Gardenbus-Uid"
    VERB = "Gardenbus-Verb"  # changed: added|modified|deleted; report: status|apply|delete|event
    ROLE = "Gardenbus-Role"  # binding: run|migrate-away|wait; its tombstone, when another seed has it: left
    UNBLOCK_INDEX = "Gardenbus-Gain"  # changed: all cluster events of objects up to this index have been announced
    SCHEDULING_GENERATION = "Gardenbus-Gate"  # changed (Seed): the number that a bind compares
    ATTEMPT = "Gardenbus-Attempt"  # queue and later: how often this work has failed
    QUERY = "Gardenbus-Question"  # report: `exists` (still mine?), `gone` (its tombstone was obeyed), `inventory`
    RECOVERY = "Gardenbus-Recovery"  # view (Seed), report `inventory`: id of the recovery that waits for the seed
    SEQUENCE = "Gardenbus-Sequence"  # report `gone`: where the tombstone stands in BINDINGS
    FENCING_TOKEN = "Gardenbus-Fence"  # noqa: S105 - report: the gardenlet's fencing number, `<stream created ns>.<sequence>`
    CONDITION = "Gardenbus-Condition"  # api: only while `<kind>.<ns>.<name>=<resourceVersion>` holds; else 409
    DRY_RUN = "Gardenbus-Dry-Run"  # api: `true` returns what would be written, `explain` also why; writes nothing
    VALIDATE = "Gardenbus-Validate"  # apply, patch: `strict`, `warn` or `ignore` fields that the kind does not have
    REASON = "Gardenbus-Reason"  # rejected
    SUBJECT = "Gardenbus-Subject"  # rejected: where it came from
    SHA256 = "Gardenbus-Sha256"  # rejected: of the whole message
    TOO_LARGE = "Gardenbus-Too-Large"  # changed: the body was left out, fetch it
    SETTLED = "Gardenbus-Settled"  # changed: every change up to this version has been announced by here
    GROUPS = "Gardenbus-Groups"  # api, of kubeapi for others: groups that come with a credential, JSON
    RECONCILE_ID = "Gardenbus-Reconcile-Id"
