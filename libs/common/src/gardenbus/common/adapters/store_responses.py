"""Errors, limits and list tokens that the stores on Redis and in memory share."""

import base64
import binascii
from collections.abc import Collection, Iterable, Sequence

import msgspec

from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import AlreadyExists, BadRequest, Conflict, Forbidden, NotFound, Unavailable
from gardenbus.common.ports.store import EventRecord

OUTBOX_MAX = 500_000
"""Unannounced outbox entries above which writes are rejected: each is about 200 bytes of Redis' memory."""

BATCH = 100
"""Items a call: Redis serves nobody else meanwhile (about 3 ms for 100 binds)."""

PAGE_MAX = 200
"""Objects a page of a list at most, whatever was requested."""

EVENT_SECONDS = 600
"""Time after an Event in which the same raises its count instead of being new."""

_CLAIMED = {
    "namespace": ("spec.namespace: ", "namespace"),
    "managedseed-shoot": ("spec.shoot.name: ", "shoot"),
    "primary": ("spec.resources: ", "the place of the primary for"),
    "seedautoscaler-target": ("spec.scaleTargetRef.name: ", "managedseedset"),
}
"""The field in which a claim is made, and what is claimed there."""

_REJECTIONS = {
    "seed-gone": "the seed does not exist, is being deleted, or is marked for removal",
    "seed-changed": "the seed changed meanwhile",
    "full": "the seed already has the maximum number of shoots scheduled on it",
    "short": "the seed has less left of a resource than the shoot requests (gardenbus explain names it)",
    "unfenced": "it is in a group of shoots, or has a rule about one: leave out spec.seedName, or use gardenbus bind",
    "circular": "the seed is hosted by this shoot, directly or through further ManagedSeeds",
    "runs-elsewhere": "a seed runs it, where the store has lost it: adopt it, or forget it, there (gardenbus doctor)",
    "recovering": "it was ordered before the store was restored, and may run somewhere: see gardenbus recovery",
    "seed-silent": "the seed has not reported yet what it runs since the store was restored: see gardenbus recovery",
}


class ContinueToken(msgspec.Struct, array_like=True):
    """Position in a list, with the version and unblock index of its beginning."""

    after: str
    version: int
    unblock_index: int


def encode_token(token: ContinueToken) -> str:
    """A token as opaque text."""
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode()


def decode_token(text: str) -> ContinueToken:
    """Read a token; raises BadRequest when it is none of ours."""
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(text), type=ContinueToken)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise BadRequest("the continue token is not one of this store's: list from the start") from error


def outermost(names: Collection[str], limit: int) -> Sequence[str]:
    """At most `limit` of the names (2 at least), in order: the first ones, and the last."""
    ordered = sorted(names)
    return ordered if len(ordered) <= limit else [*ordered[: max(1, limit - 1)], ordered[-1]]


def key_of(document: Document) -> ObjectKey:
    """The key of a manifest that passed validation."""
    metadata = document["metadata"]
    return ObjectKey(document["kind"].lower(), metadata.get("namespace") or "", metadata["name"])


def pending_operation(message: str, now: str) -> bytes:
    """Members of the status.lastOperation of an unschedulable shoot, without the braces.

    `startTime` (ours) comes last: the store keeps that of the first failure, while the other members change.
    """
    rejection = {"type": "Create", "state": "Pending", "progress": 0, "description": message, "lastUpdateTime": now}
    return encode({**rejection, "startTime": now})[1:-1]


def unschedulable_since(pending: bytes) -> str:
    """Instant at which a shoot became unschedulable, as `pending_operation` wrote it; "" without one."""
    operation = msgspec.json.decode(b"{" + pending + b"}")
    return str(operation.get("startTime") or operation.get("lastUpdateTime") or "")


def scheduled_event(shoot: ObjectKey, uid: str, seed: str, reporter: str) -> EventRecord:
    """Event of a shoot that was bound."""
    message = f'Scheduled to seed "{seed}"'
    return EventRecord(shoot, uid, "Normal", "SchedulingSuccessful", message, reporter, "Reconcile")


def store_is_closed() -> Unavailable:
    """Nobody has opened the store since it started."""
    return Unavailable("the store is fenced until a relay has compared it with the bus and opened it")


def newer_format(found: int, supported: int) -> Unavailable:
    """A newer version has written what this one does not understand: nothing is tried before it is replaced."""
    return Unavailable(
        f"the store's data are of format {found}, and this version of Gardenbus writes format {supported}: "
        "replace this process by one of the version that opened the store"
    )


def outbox_is_full() -> Unavailable:
    """JetStream does not keep up with the outbox."""
    return Unavailable("the outbox is full: the relay or JetStream does not keep up")


def exists_already(key: ObjectKey) -> AlreadyExists:
    """A creation found the object."""
    return AlreadyExists(f"{key} exists already")


def is_gone(key: ObjectKey) -> NotFound:
    """A write found no object."""
    return NotFound(f"{key} not found")


def has_moved_on(key: ObjectKey, version: int) -> Conflict:
    """A write was based on another version."""
    return Conflict(f"{key} has version {version} by now")


def claim_conflict(claim: str, holder: ObjectKey) -> Forbidden:
    """Somebody else has what only one object may have."""
    what, _, name = claim.partition("/")
    field, described = _CLAIMED.get(what, ("", what))
    return Forbidden(f"{field}{described} {name} belongs to {holder} already: name another one, or delete that first")


def seed_rejection(key: ObjectKey, rejection: str) -> Forbidden:
    """The seed that a shoot names cannot take it, or the shoot that a ManagedSeed names is hosted by it."""
    if rejection == "emptiness-unknown":
        return is_emptiness_unknown(key)
    if key.kind == "managedseed":
        return Forbidden(f"{key}: its shoot is on this very seed, or on one that it hosts: no seed can carry itself")
    return Forbidden(f"{key} cannot be placed: {_REJECTIONS[rejection]}")


def runs_unknown(key: ObjectKey, seed: str) -> Forbidden:
    """A seed runs an object of this name that the store has lost: another one in its place would end it."""
    return Forbidden(
        f"{key} runs on seed {seed}, and the store has lost it: adopt it, or forget it, before another comes"
    )


def is_emptiness_unknown(key: ObjectKey) -> Forbidden:
    """A write depends on a seed's being empty, which nobody knows while the store recovers."""
    return Forbidden(
        f"{key}: the store was restored, and what runs on its seeds is not known yet: see gardenbus recovery"
    )


NAMED_MEMBERS = 3
"""Members of a set that a rejected write names at most."""


def is_guarded(message: str, members: int, examples: Iterable[str]) -> Forbidden:
    """A write found a set that must be empty; `examples` are some of its members."""
    return Forbidden(f"{message} ({members}, for example {', '.join(sorted(examples))})")


def is_counted(message: str, found: int) -> Forbidden:
    """A creation found as many objects of its kind as there may be."""
    return Forbidden(f"{message} (there are {found})")


def is_held(message: str, holder: ObjectKey) -> Forbidden:
    """A write found a claim in the hands of an object that is not being deleted."""
    return Forbidden(f"{message}: delete {holder} first, with gardenbus delete {holder.kind} {holder.name} --confirm")


def is_outdated(message: str, version: int) -> Conflict:
    """A write found another version of the object that it was to depend on."""
    return Conflict(f"{message} (its version is {version} by now)" if version else f"{message} (not found)")


def has_been_regrouped(message: str) -> Conflict:
    """A write found a group of its shoot changed."""
    return Conflict(message)


def exceeds_quota(message: str, quota: str, resource: str, used: int, most: int) -> Forbidden:
    """A creation would exceed a ResourceQuota. In the words of Kubernetes' `plugin/pkg/admission/resourcequota`."""
    return Forbidden(
        f"{message}: exceeded quota: {quota}, requested: {resource}=1, used: {resource}={used},"
        f" limited: {resource}={most}"
    )


def is_beyond(message: str, metrics: Iterable[str]) -> Forbidden:
    """A write would exceed a limit on demands."""
    return Forbidden(f"{message} {', '.join(metrics)}")


def seed_has_shoots(key: ObjectKey, shoots: int, example: str) -> Forbidden:
    """A seed was to be marked for removal with shoots on it."""
    return Forbidden(f"{key} cannot be marked for removal: shoots are on it ({shoots}, for example {example})")
