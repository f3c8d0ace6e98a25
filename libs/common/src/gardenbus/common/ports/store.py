"""Protocol of the store: every write is one atomic function that appends its events to the outbox.

Errors: `Conflict` when the object is not what the write was based on, `NotFound`, `AlreadyExists`, `Forbidden` when a
precondition fails, `Unavailable` when the store is away, fenced (a relay has not opened it since it started) or its
outbox is full. `bind` and `mark_unschedulable` return a result per item instead of raising.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, NamedTuple, Protocol

import msgspec

from gardenbus.common.api.changes import ObjectChange
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.garden.rows import ShootOperationState
from gardenbus.common.api.garden.shoot_groups import GroupCounts
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import GardenbusError
from gardenbus.common.ports.bus import StreamPosition
from gardenbus.common.ports.recovery import Recoveries
from gardenbus.common.ports.stream_history import StreamHistories

VERSION_LEAP = 1_000_000
"""Jump of the versions (of objects, and of usage) when the store opens: more than a second of writes that a disk may
have lost. A reader of objects that sees one jump by more than half of it reads anew: the store may be an older copy."""

MOST_USAGE_CHANGES = VERSION_LEAP // 100
"""Changes of usage between two reads beyond which all of it is read anew. Few, as a store that lost everything goes on
from the time alone: from 10 ms after its former opening it is distinguishable."""

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def opening_version(now: datetime) -> int:
    """Lowest version that a store which is opened now goes on from: microseconds since 2026.

    One copy that is opened twice would go on from the same version each time; what was read between the two, and lost
    with the second, would pass for newer than what is written then.
    """
    return max(0, (now - _EPOCH) // timedelta(microseconds=1))


class RequestOrigin(msgspec.Struct, frozen=True, order=True):
    """Position of a request on the bus: REQUESTS' incarnation (`created`), sequence, document within the message.

    A request with a response has the position of REQUESTS' last message at its arrival (`document` = 2**31).
    """

    created: int
    sequence: int
    document: int = 0


class Superseded(msgspec.Struct, frozen=True):
    """A newer request on the same object was accepted already: nothing is written."""

    by: RequestOrigin


class Page(msgspec.Struct, frozen=True):
    """Part of a list. `version` and `unblock_index` are those of the *first* page (kept in the token)."""

    objects: Sequence[StoredObject]
    version: int
    unblock_index: int
    continue_token: str | None = None


class UnblockIndexes(msgspec.Struct, frozen=True):
    """Counters of cluster events that may unblock shoots: changed objects (seeds, profiles, …) and freed usage."""

    objects: int
    usage: int


SeenGroups = Mapping[str, tuple[int, int]]
"""Groups that a decision was based on: by name the version of each, and how many shoots of the same call, placed before
this one, were counted in it besides."""


class SeedBinding(msgspec.Struct, frozen=True):
    """A shoot's binding to a seed. `spec` (whole, decoded) replaces the shoot's where binding fills in defaults.

    `decision_record` (JSON) is stored for `Store.bind_record`. `trace`: the traceparent of the outbox entry. `groups`:
    all that the shoot is a member of, or has a rule about.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    seed: str
    scheduling_generation: int | None
    spec: Document | None = None
    decision_record: bytes = b""
    trace: str = ""
    groups: SeenGroups = {}


class BindRecord(msgspec.Struct, frozen=True):
    """Record of a bind: its time (RFC 3339), and the scheduler's decision record."""

    at: str
    decision_record: bytes


BindOutcome = Literal[
    "bound",
    "gone",  # the shoot is not there, or another uid
    "changed",  # another generation: read it again
    "scheduled",  # has a seed already
    "deleting",
    "seed-gone",  # missing, deleting or marked for removal
    "seed-changed",  # the scheduling generation differs: read it again
    "full",  # of shoots, or of a resource that the shoot requests
    "circular",  # the seed is hosted by this very shoot
    "group-changed",  # a group of the shoot is not as it was seen: read it again
    "runs-elsewhere",  # it is unknown on another seed, which runs it: to be adopted or forgotten there first
    "recovering",  # it was ordered before the store was restored: bound nowhere until all seeds have responded
    "seed-silent",  # the seed has not reported yet what it runs since the store was restored
]


class ShootStateCounts(NamedTuple):
    """Shoots by state, from the index that every write keeps.

    `busy` is the number of those that `busy_shoots.is_busy` means, `longest` some of them: those whose operation began
    first. `uncounted` shoots are in no index yet: they were stored by a version that had none.
    """

    states: Mapping[ShootOperationState, int]
    busy: int
    longest: Sequence[ObjectKey]
    uncounted: int = 0


class StoredAmount(NamedTuple):
    """Objects of a namespace, and the bytes of what requests write of them, as it is stored (without status)."""

    objects: int
    bytes: int


class Usage(msgspec.Struct, frozen=True):
    """Shoots per seed, for seeds whose usage changed after `since`; pass `version` as `since` next time.

    `requested`: for those where it changed, what their shoots request of resources, in units of account.
    """

    version: int
    seeds: Mapping[str, int]
    unblock_indexes: UnblockIndexes
    requested: Mapping[str, Mapping[str, int]] = {}

    def follows(self, version: int) -> bool:
        """False if the store was opened anew since usage of this version was read: then all of it must be."""
        return version <= self.version <= version + MOST_USAGE_CHANGES


class BindResults(msgspec.Struct, frozen=True):
    """Results in the order of the items, and the usage that changed (all zero when it was not requested)."""

    outcomes: Sequence[BindOutcome]
    usage: Usage


class UnschedulableShoot(msgspec.Struct, frozen=True):
    """A shoot that fits on no seed of the snapshot at `seen`.

    `equivalence_class` names the shoots with the same constraints, `descriptor` (JSON) holds those. `trace`: the
    traceparent of the queue entry when the shoot is activated. `groups`: as of a `SeedBinding`, with all its groups.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    scheduler_name: str
    equivalence_class: str
    descriptor: bytes
    seen: UnblockIndexes
    message: str
    trace: str = ""
    groups: SeenGroups = {}


class UnschedulableResult(msgspec.Struct, frozen=True):
    """`parked`: unschedulable, so often by now; `again`: a cluster event happened since `seen`; `done`: not pending."""

    outcome: Literal["parked", "again", "done"]
    attempts: int


class UnschedulableResults(msgspec.Struct, frozen=True):
    """Results in the order of the items, and the usage that changed (all zero when it was not requested)."""

    outcomes: Sequence[UnschedulableResult]
    usage: Usage


class UnschedulableClass(msgspec.Struct, frozen=True):
    """Unschedulable shoots with the same constraints. `unseen` of them were not tried since the latest event."""

    equivalence_class: str
    descriptor: bytes
    count: int
    unseen: int
    since: str = ""
    """The first failure of the one that was tried least lately (RFC 3339); "" unless it is requested."""


class UnschedulableStatus(msgspec.Struct, frozen=True):
    """Status of an unschedulable shoot: last message, its time (RFC 3339), number of attempts, and band."""

    key: ObjectKey
    scheduler_name: str
    message: str
    since: str
    attempts: int
    band: str = ""


class DemandLimits(msgspec.Struct, frozen=True):
    """Limits on sums of demands: `most` of each metric, with `amounts` of metrics by unit.

    `namespace`: only what refers to the key there is summed ("": all).
    """

    most: Mapping[str, int] = {}
    amounts: Mapping[str, Mapping[str, int]] = {}
    namespace: str = ""


class WritePrecondition(msgspec.Struct, frozen=True):
    """A condition that a write checks atomically.

    `usage`: no shoot is on the seed `name`, nor is one unknown there; `references`: nothing refers to `name` (an
    `ObjectKey.stored`, or a part of a profile as in `IndexKeys`); `claim`: nothing has the claim `name`, unless it is
    being deleted; `quota`: a new object exceeds no ResourceQuota of its namespace; `demand`: the demands of all that
    refers to `name` stay within `limits` with this write; `count`: with a new object there are no more than `most` of
    the kind `name`; `stored`: with an object that is new, or grows, its namespace `name` holds no more than `limits`
    (`storedObjects` and `storedBytes` of a budget): all of them fail with Forbidden. `version`: the object `name` (an
    `ObjectKey.stored`) has exactly this version, 0 for "does not exist"; it fails with Conflict, because the caller has
    to read it again. `groups`: all groups of the shoot that is written are as in `groups`; it fails with Conflict, too.
    """

    kind: Literal["usage", "references", "claim", "version", "quota", "demand", "count", "stored", "groups"]
    name: str
    message: str
    version: int = 0
    limits: DemandLimits = DemandLimits()
    most: int = 0
    groups: SeenGroups = {}


class UnknownObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object that runs on a seed, where the store neither has it nor remembers that it left.

    `manifest`: as its agent holds it, with its status; empty if it holds none, and in lists, where `is_adoptable` says
    whether there is one. `runs`: something of it is there now.
    """

    key: ObjectKey
    uid: str
    seed: str
    manifest: Document = {}
    is_adoptable: bool = False
    runs: bool = True


class Creation(msgspec.Struct, frozen=True):
    """A new object in a batch of creations. It names no seed.

    `trace`: the traceparent of the outbox entry. `preconditions`: checked for this object alone. `like`: the creation
    (`creation_of`) of a document that differs from this one in its metadata alone, but not in labels or namespace.
    """

    document: Document
    origin: RequestOrigin | None = None
    last_applied: bytes = b""
    owner_setters: bytes = b""
    trace: str = ""
    preconditions: Sequence[WritePrecondition] = ()
    like: ObjectChange | None = None


CreateResult = StoredObject | Superseded | GardenbusError
"""Result of one creation of a batch; an error does not affect the others."""


class EventRecord(msgspec.Struct, frozen=True):
    """A Kubernetes-style Event about an object."""

    about: ObjectKey
    uid: str
    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    reporter: str
    action: str = ""


class Objects(Protocol):
    """Reads and writes that requests are carried out with. Errors as in the module."""

    async def get(self, key: ObjectKey) -> StoredObject | None:
        """Read one object, or None."""
        ...

    async def get_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """Read several objects, in order, in one round trip."""
        ...

    async def list_page(
        self, kind: str, namespace: str | None = None, *, limit: int = 500, continue_token: str | None = None
    ) -> Page:
        """List the objects of a kind (in one namespace, or in all), by namespace and name."""
        ...

    async def demand(self, referred: ObjectKey, namespace: str = "") -> Mapping[str, int]:
        """Sum the demands of all that refers to a key (in a namespace, or in all), by unit."""
        ...

    async def group_counts(self, namespace: str, groups: Sequence[str]) -> Mapping[str, GroupCounts]:
        """Counts of groups of a namespace, by name."""
        ...

    async def shoots_on(self, seed: str) -> Sequence[ObjectKey]:
        """List the shoots that count towards a seed's usage (by spec.seedName or status.seedName)."""
        ...

    async def create(
        self,
        document: Document,
        *,
        origin: RequestOrigin | None = None,
        last_applied: bytes = b"",
        owner_setters: bytes = b"",
        scheduling_generation: int | None = None,
        preconditions: Sequence[WritePrecondition] = (),
    ) -> StoredObject | Superseded:
        """Store a new object: uid, version, generation 1, creationTimestamp.

        A Shoot with spec.seedName passes the checks of a bind on that seed, `scheduling_generation` included. Raises
        AlreadyExists, or Forbidden when a unique claim (a Project's namespace) is held by another object or the seed
        does not admit the shoot.
        """
        ...

    async def update(  # noqa: PLR0913  all that a write may depend on
        self,
        base: StoredObject,
        document: Document,
        *,
        origin: RequestOrigin | None = None,
        last_applied: bytes | None = None,
        report_stamps: bytes | None = None,
        owner_setters: bytes | None = None,
        bump_generation: bool = False,
        keep_generation: bool = False,
        scheduling_generation: int | None = None,
        preconditions: Sequence[WritePrecondition] = (),
    ) -> StoredObject | Superseded:
        """Replace `base` by `document` (spec, status, labels, annotations, finalizers, all of it).

        Nothing is written, and `base` is returned, when nothing differs. The generation grows when spec does (unless
        with `keep_generation`), and with `bump_generation`. An object that is deleting and has no finalizer left is
        removed. Raises Conflict when the store has another version than `base`. A Shoot that comes to name another seed
        passes the checks of a bind there, `scheduling_generation` included. The removal annotation of a Seed is
        Forbidden while shoots are on it.
        """
        ...

    async def delete(
        self,
        base: StoredObject,
        *,
        origin: RequestOrigin | None = None,
        preconditions: Sequence[WritePrecondition] = (),
    ) -> StoredObject | Superseded | None:
        """Delete: set deletionTimestamp (finalizers left: returns the object), or remove (None)."""
        ...

    async def confirm_reads(self) -> None:
        """Return when all that was read until now counts, the writes of others included. Raises Unavailable.

        Before something is acknowledged because there is nothing to do. What writes, or is rejected by the store, does
        it by itself; stores without replicas have nothing to wait for.
        """
        return


class Store(Objects, StreamHistories, Recoveries, Protocol):
    """The store of record. Errors as in the module."""

    async def get_many_partial(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """Partial read of several objects that are not written back: what stands beside the manifests is empty."""
        ...

    async def create_many(self, creations: Sequence[Creation]) -> Sequence[CreateResult]:
        """Store at most 50 new objects in one call, each on its own as `create` does; return the results in order."""
        ...

    async def dry_run(
        self,
        key: ObjectKey,
        base: StoredObject | None,
        document: Document | None,
        *,
        scheduling_generation: int | None = None,
        preconditions: Sequence[WritePrecondition] = (),
        is_adoption: bool = False,
    ) -> None:
        """Raise the error of a creation (no `base`), an update or a deletion (no `document`); nothing is written.

        `is_adoption`: the creation is that of an unknown object.
        """
        ...

    async def bind(self, bindings: Sequence[SeedBinding], usage_since: int | None = 0) -> BindResults:
        """Bind at most 100 shoots; each is checked on its own. `usage_since` None: no usage is returned."""
        ...

    async def bind_record(self, key: ObjectKey) -> BindRecord | None:
        """Read the record of a shoot's latest bind; None when it is not bound, or nothing was recorded."""
        ...

    async def mark_unschedulable(
        self, unschedulable: Sequence[UnschedulableShoot], usage_since: int | None = 0
    ) -> UnschedulableResults:
        """Mark at most 100 shoots unschedulable: message in status and (if its text is new) an Event.

        `usage_since` None: no usage is returned.
        """
        ...

    async def activate(self, scheduler_name: str, equivalence_class: str, limit: int) -> int:
        """Queue at most `limit` shoots of a class that were not tried since the latest event; return the number."""
        ...

    async def unschedulable_classes(
        self, scheduler_name: str, *, with_descriptors: bool = True, with_ages: bool = False
    ) -> Sequence[UnschedulableClass]:
        """List the scheduler's equivalence classes of unschedulable shoots; descriptors are no use to who counts."""
        ...

    async def unschedulable_shoots(
        self, scheduler_name: str | None = None, *, limit: int = 1_000
    ) -> Sequence[UnschedulableStatus]:
        """List at most `limit` unschedulable shoots of a scheduler, or of all, lowest unblock index first."""
        ...

    async def pending(self, scheduler_name: str) -> int:
        """Count the shoots that need a seed from this scheduler: unschedulable ones, and those in the queue."""
        ...

    async def usage(self, since: int = 0) -> Usage:
        """Read the usage of seeds whose usage changed after `since` (0: of all with usage)."""
        ...

    async def requested_on(self, seed: str) -> Mapping[str, int]:
        """Sum what the shoots of a seed request of its resources, in units of account."""
        ...

    async def named(self, kind: str, name: str) -> Sequence[ObjectKey]:
        """List the objects of a kind that have this name: one in a namespace at most."""
        ...

    async def names_with(self, kind: str, prefix: str, namespace: str | None = None, *, limit: int) -> Sequence[str]:
        """List names of objects of a kind that begin so, in a namespace or in all: each once, in order.

        Not all of them when more than `limit` objects have such names; then the first and the last name are among the
        `limit` (at least 2), so that what these have in common is what all have in common.
        """
        ...

    async def dependents(self, owner_uid: str) -> Sequence[ObjectKey]:
        """List the objects with an ownerReference to this uid."""
        ...

    async def referring(self, referred: ObjectKey) -> Sequence[ObjectKey]:
        """List the objects that refer to an object, by `IndexKeys.references`."""
        ...

    async def exists_uid(self, uid: str) -> bool:
        """True when an object with this uid is stored."""
        ...

    async def record_event(self, event: EventRecord) -> None:
        """Record an Event; the same within 10 minutes of the last raises its count, announced at powers of two."""
        ...

    async def accept_fencing_token(
        self, seed: str, created: int, number: int, *, last: StreamPosition | None = None
    ) -> bool:
        """Accept a gardenlet's fencing token unless a higher one was accepted for its seed.

        `last`: the end of LEASES. A higher one beyond it is of a stream that has been lost; it ends with this call.
        """
        ...

    async def has_fencing_token(self, seed: str) -> bool:
        """True when a fencing token was accepted for a seed: what comes without one is not of its gardenlet."""
        ...

    async def reannounce_object(
        self, key: ObjectKey, seed: str, uid: str = "", unknown: UnknownObject | None = None, *, is_own: bool = True
    ) -> bool:
        """Announce an object, or its removal, again; `seed` gets a tombstone if the object is not its own.

        Without `is_own` False, and nothing is announced, too for what is not on the seed, is not remembered to have
        left it, and has another uid: whether there is such an object is not said to anybody who names one.

        False, and nothing is announced, if the store neither has the object nor remembers the removal of one with this
        uid ("" for any; of a name, the last nine removals are remembered), or, where `unknown` runs, has it elsewhere
        and does not remember that it left: absence alone must never end what runs. Then `unknown` is kept: 1,000 of
        all seeds, and beyond that up to 50 of each.
        """
        ...

    async def unknown_objects(self) -> Sequence[UnknownObject]:
        """List what `reannounce_object` has kept, and what is not stored since; without manifests."""
        ...

    async def unknown_object(self, key: ObjectKey, seed: str) -> UnknownObject | None:
        """One of them, which is read alone; None if it is not unknown on that seed."""
        ...

    async def adopt(self, unknown: UnknownObject) -> StoredObject:
        """Store an unknown object as it was: manifest, status, uid, generation, creationTimestamp.

        Raises what `create` raises, also when its seed is full.
        """
        ...

    async def forget(self, key: ObjectKey, seed: str, uid: str = "") -> None:
        """Remember that an object is not on `seed`, and announce that there; repeatable.

        Raises AlreadyExists if it is stored there (or anywhere, without `uid`), NotFound without `uid` if no removal is
        remembered.
        """
        ...

    async def shoot_state_counts(self, limit: int) -> ShootStateCounts:
        """Count shoots by state, and name `limit` of those that are busy."""
        ...

    async def stored_amounts(self) -> Mapping[str, StoredAmount]:
        """Read how much each namespace holds ("": cluster-scoped objects)."""
        ...

    async def census(self) -> Mapping[str, int]:
        """Statistics for people: `shoots.pending|waiting|waiting_unseen`, `outbox`, `objects.<kind>`."""
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...
