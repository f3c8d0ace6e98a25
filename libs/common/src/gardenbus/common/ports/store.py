"""The store as the services see it: every write is one atomic function, with its news in the outbox.

Errors: `Conflict` when the object is not what the write was based on, `NotFound`, `AlreadyExists`, `Forbidden` when a
guard refuses, `Unavailable` when the store is away, fenced (a relay has not opened it since it started) or its outbox
is full. `bind` and `park` answer each item on its own instead of raising.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

import msgspec

from gardenbus.common.errors import GardenbusError
from gardenbus.common.resources.document import Document, StoredObject
from gardenbus.common.resources.keys import ObjectKey


class RequestOrigin(msgspec.Struct, frozen=True, order=True):
    """Where a request stands in the order of the bus: REQUESTS' incarnation, sequence, document within the message.

    An answered request takes the position of REQUESTS' last message at its arrival (`document` = 2**31).
    """

    created: int
    sequence: int
    document: int = 0


class Superseded(msgspec.Struct, frozen=True):
    """A newer request on the same object was taken already: there is nothing left to do."""

    by: RequestOrigin


class Page(msgspec.Struct, frozen=True):
    """Part of a list. `version` and `gain` are the store's when the *first* page was read (carried in the token)."""

    objects: Sequence[StoredObject]
    version: int
    gain: int
    continue_token: str | None = None


class Gains(msgspec.Struct, frozen=True):
    """How often something may have come to fit that did not: by objects (seeds, profiles, …) and by freed usage."""

    objects: int
    usage: int


class Binding(msgspec.Struct, frozen=True):
    """One placement to be made. `spec` (whole, decoded) replaces the shoot's where binding defaults fields in it.

    `grounds` is what is to be remembered of the decision, as JSON; `Store.recorded` tells it again. `trace`: the
    traceparent that goes along with the news of it.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    seed: str
    gate: int | None
    spec: Document | None = None
    grounds: bytes = b""
    trace: str = ""


class Recorded(msgspec.Struct, frozen=True):
    """What was remembered with the bind of a shoot: when (RFC 3339), and the grounds that the scheduler gave."""

    at: str
    grounds: bytes


BindOutcome = Literal[
    "bound",
    "gone",  # the shoot is not there, or another uid
    "changed",  # another generation: look again
    "scheduled",  # has a seed already
    "deleting",
    "seed-gone",  # missing, deleting or marked for removal
    "seed-changed",  # the gate differs: look again
    "full",
    "circular",  # the seed is hosted by this very shoot
]


class Usage(msgspec.Struct, frozen=True):
    """Shoots per seed for the seeds whose usage changed after `since`; `version` is what to pass next time."""

    version: int
    seeds: Mapping[str, int]
    gains: Gains


class BindReply(msgspec.Struct, frozen=True):
    """An outcome per item, in order, and what changed in usage (all zero when it was not asked for)."""

    outcomes: Sequence[BindOutcome]
    usage: Usage


class Parking(msgspec.Struct, frozen=True):
    """One shoot that fits nowhere on the snapshot that stood at `seen`.

    `waiting_class` names the shoots that ask for the same things, `descriptor` says (as JSON) what those are. `trace`:
    the traceparent that goes with the work when it is woken.
    """

    namespace: str
    name: str
    uid: str
    generation: int
    scheduler_name: str
    waiting_class: str
    descriptor: bytes
    seen: Gains
    message: str
    trace: str = ""


class Parked(msgspec.Struct, frozen=True):
    """`parked` with the number of refusals so far; `again`: something was gained since `seen`; `done`: not pending."""

    outcome: Literal["parked", "again", "done"]
    attempts: int


class ParkReply(msgspec.Struct, frozen=True):
    """An outcome per item, in order, and what changed in usage (all zero when it was not asked for)."""

    outcomes: Sequence[Parked]
    usage: Usage


class WaitingClass(msgspec.Struct, frozen=True):
    """Shoots that wait for the same things. `unseen` of them were refused before the latest gain."""

    waiting_class: str
    descriptor: bytes
    waiting: int
    unseen: int


class WaitingShoot(msgspec.Struct, frozen=True):
    """One shoot that fits nowhere: its last refusal, since when (RFC 3339) it reads so, and refusals so far."""

    key: ObjectKey
    scheduler_name: str
    message: str
    since: str
    attempts: int


class Guard(msgspec.Struct, frozen=True):
    """What must hold besides for a write, checked together with it.

    `usage`: no shoot is on the seed `name`; `references`: nothing refers to `name` (an `ObjectKey.stored`): both refuse
    with Forbidden. `version`: the object `name` (an `ObjectKey.stored`) has exactly this version, 0 for "is not there";
    it refuses with Conflict, because who wrote on what it read there has to look again.
    """

    kind: Literal["usage", "references", "version"]
    name: str
    message: str
    version: int = 0


class Creation(msgspec.Struct, frozen=True):
    """A new object to be stored along with others. It names no seed.

    `trace`: the traceparent that goes along with the news of it. `guards`: what must hold for this one to be stored.
    """

    document: Document
    origin: RequestOrigin | None = None
    last_applied: bytes = b""
    trace: str = ""
    guards: Sequence[Guard] = ()


Created = StoredObject | Superseded | GardenbusError
"""How one creation among many ended: a refusal is answered, and none of the others is touched by it."""


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
    """The part of the store that requests are carried out on. See the module for the errors."""

    async def get(self, key: ObjectKey) -> StoredObject | None:
        """One object, or None."""
        ...

    async def get_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """Several, in order, in one round trip."""
        ...

    async def list_page(
        self, kind: str, namespace: str | None = None, *, limit: int = 500, continue_token: str | None = None
    ) -> Page:
        """Objects of a kind (in one namespace, or in all), by namespace and name."""
        ...

    async def shoots_on(self, seed: str) -> Sequence[ObjectKey]:
        """The shoots that a seed's usage counts (by spec.seedName or status.seedName)."""
        ...

    async def create(
        self,
        document: Document,
        *,
        origin: RequestOrigin | None = None,
        last_applied: bytes = b"",
        gate: int | None = None,
        guards: Sequence[Guard] = (),
    ) -> StoredObject | Superseded:
        """Store a new object: uid, version, generation 1, creationTimestamp.

        A Shoot with spec.seedName passes the checks of a bind on that seed, `gate` included. Raises AlreadyExists, or
        Forbidden when a unique claim (a Project's namespace) is taken or the seed refuses.
        """
        ...

    async def update(  # noqa: PLR0913  all that a write may depend on
        self,
        base: StoredObject,
        document: Document,
        *,
        origin: RequestOrigin | None = None,
        last_applied: bytes | None = None,
        report_fences: bytes | None = None,
        bump_generation: bool = False,
        gate: int | None = None,
        guards: Sequence[Guard] = (),
    ) -> StoredObject | Superseded:
        """Replace what `base` was by `document` (spec, status, labels, annotations, finalizers, all of it).

        Nothing is written, and `base` comes back, when nothing differs. The generation grows when spec does (or with
        `bump_generation`). An object that is deleting and has no finalizer left is removed. Raises Conflict when the
        store has another version than `base`. A Shoot that comes to name another seed passes the checks of a bind
        there, `gate` included. A Seed is marked for removal only while no shoot is on it: else Forbidden.
        """
        ...

    async def delete(
        self, base: StoredObject, *, origin: RequestOrigin | None = None, guards: Sequence[Guard] = ()
    ) -> StoredObject | Superseded | None:
        """Mark for deletion (finalizers left: the object comes back) or remove (None)."""
        ...


class Store(Objects, Protocol):
    """The truth. See the module for the errors."""

    async def glance_many(self, keys: Sequence[ObjectKey]) -> Sequence[StoredObject | None]:
        """As `get_many`, for who does not write them: `last_applied` and `report_fences` are empty."""
        ...

    async def create_many(self, creations: Sequence[Creation]) -> Sequence[Created]:
        """Store at most 50 new objects, each on its own as `create` does, in one call; answer them in order."""
        ...

    async def rehearse(
        self,
        key: ObjectKey,
        base: StoredObject | None,
        document: Document | None,
        *,
        gate: int | None = None,
        guards: Sequence[Guard] = (),
    ) -> None:
        """Raise what a creation (no `base`), an update or a deletion (no `document`) would; nothing is written."""
        ...

    async def bind(self, bindings: Sequence[Binding], usage_since: int | None = 0) -> BindReply:
        """Place at most 100 shoots; each is checked on its own. `usage_since` None: usage is not wanted."""
        ...

    async def recorded(self, key: ObjectKey) -> Recorded | None:
        """What was remembered with the latest bind of a shoot; None when it was not bound, or nothing was given."""
        ...

    async def park(self, parkings: Sequence[Parking], usage_since: int | None = 0) -> ParkReply:
        """Let at most 100 shoots wait, with their refusal in status and (when its text is new) an Event.

        `usage_since` None: usage is not wanted.
        """
        ...

    async def wake(self, scheduler_name: str, waiting_class: str, limit: int) -> int:
        """Queue again at most `limit` shoots of a class that were refused before the latest gain; answer how many."""
        ...

    async def waiting(self, scheduler_name: str) -> Sequence[WaitingClass]:
        """The classes that wait for this scheduler."""
        ...

    async def waiting_shoots(self, scheduler_name: str | None = None, *, limit: int = 1_000) -> Sequence[WaitingShoot]:
        """At most `limit` shoots that wait for a scheduler, or for any, those refused on the oldest gain first."""
        ...

    async def pending(self, scheduler_name: str) -> int:
        """How many shoots need a seed from this scheduler: those that wait, and those that are being decided."""
        ...

    async def usage(self, since: int = 0) -> Usage:
        """Usage of the seeds whose usage changed after `since` (0: of all that have any)."""
        ...

    async def dependents(self, owner_uid: str) -> Sequence[ObjectKey]:
        """Objects with an ownerReference to this uid."""
        ...

    async def exists_uid(self, uid: str) -> bool:
        """Whether an object with this uid is stored."""
        ...

    async def record_event(self, event: EventRecord) -> None:
        """Announce an Event; the same again within 10 minutes raises its count."""
        ...

    async def accept_fence(self, seed: str, created: int, number: int) -> bool:
        """Whether a gardenlet's fencing number is not older than the highest seen of its seed; remembers it."""
        ...

    async def announce_again(self, key: ObjectKey, seed: str) -> None:
        """Announce an object (or its absence) again, and to `seed` that it is not its own where that is so."""
        ...

    async def census(self) -> Mapping[str, int]:
        """Counts for people: `shoots.pending|waiting|waiting_unseen`, `outbox`, `objects.<kind>`."""
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...
