"""Cache of BINDINGS for one seed: its shoots, its own Seed, and the ManagedSeeds and ShootStates of its shoots.

Absence proves nothing: an object is gone only after a tombstone, or when another object has its name.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import msgspec
import structlog

from gardenbus.common.api.decoding import json_decoder
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import LEFT, Header, ObjectKey, Subjects
from gardenbus.common.api.names import NAME
from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import StreamMessage
from gardenbus.gardenlet.domain.operations import ObservedShoot
from gardenbus.gardenlet.domain.shoot_record import ShootName

_log = structlog.stdlib.get_logger()
_decode = json_decoder(dict[str, Any])

BINDINGS = "BINDINGS"
MANAGED_SEED = "managedseed"
SHOOT_STATE = "shootstate"
_KEPT_KINDS = (MANAGED_SEED, SHOOT_STATE)


class Tombstone(NamedTuple):
    """Tombstone of an object that no longer concerns this seed, with its sequence in the stream.

    `left`: the object exists and moved to another seed; otherwise it was deleted. `uid`: the object's, if known.
    """

    sequence: int
    left: bool = False
    uid: str = ""

    def is_about(self, uid: str) -> bool:
        """False if another object of the same name was removed: the removal may be older than the one with this uid."""
        return not self.uid or self.uid == uid


class BindingCache:
    """See the module. `is_complete` once the whole stream has been replayed.

    `seed_is_gone`: the Seed was deleted while this process ran; one deleted before that may be registered again.

    Tombstones are purged from the stream once handled. A consumer that missed one must not continue with stale objects:
    `replay_ended` and `retain` drop whatever the stream no longer holds. A server that was killed may also restore a
    message that such a tombstone had replaced: see `is_unconfirmed`.
    """

    def __init__(self, subjects: Subjects, seed_name: str) -> None:
        self._bindings = subjects.binding(seed_name, "", "").removesuffix(".")
        self._views = subjects.views_of(seed_name).removesuffix(">")
        self._seed = ObjectKey("seed", "", seed_name)
        self.shoots: dict[ShootName, ObservedShoot | Tombstone] = {}
        self.objects: dict[ObjectKey, Document | Tombstone] = {}
        self.traces: dict[ShootName, str] = {}
        """Trace of the request behind the pending work of each shoot."""
        self.seed: Document | None = None
        self.seed_is_gone = False
        self.seed_is_unconfirmed = False
        """True if the last replay did not have the Seed: the store may have lost it, and it is registered again."""
        self.recovery_id = ""
        """Recovery of the store that the Seed was announced with last, for which an inventory is due."""
        self.is_complete = False
        self._unreplayed: set[ShootName] = set()
        self._unreplayed_objects: set[ObjectKey] = set()
        self._unconfirmed: set[ShootName | ObjectKey] = set()

    @property
    def seed_uid(self) -> str:
        """The Seed's uid; "" before it was observed."""
        return str(self.seed["metadata"].get("uid") or "") if self.seed else ""

    def update(self, message: StreamMessage) -> ShootName | ObjectKey | None:
        """Apply a message; returns the shoot or object key that it concerns, None for an unreadable one."""
        if message.marker is not None or Header.TOO_LARGE in message.headers:
            _log.warning("binding.unreadable", subject=message.subject, reason="no body")
            return None
        is_gone = message.headers.get(Header.VERB) == "deleted"
        try:
            if message.subject.startswith(self._bindings):
                namespace, _, name = message.subject.removeprefix(self._bindings).partition(".")
                if not (NAME.fullmatch(namespace) and NAME.fullmatch(name)):
                    raise ValueError("these are no names of a namespace and of a shoot")  # noqa: TRY301
                self._unreplayed.discard((namespace, name))
                if trace := tracing.received(message.headers):
                    self.traces[namespace, name] = trace
                has_left = message.headers.get(Header.ROLE) == LEFT
                self.shoots[namespace, name] = (
                    Tombstone(message.sequence, has_left, message.headers.get(Header.UID, ""))
                    if is_gone
                    else _read_shoot(message)
                )
                self._note_confirmation((namespace, name))
                return (namespace, name)
            key = ObjectKey.from_tail(message.subject.removeprefix(self._views))
            if key == self._seed:
                self.observe_seed(None if is_gone else _decode(message.body))
                self.recovery_id = message.headers.get(Header.RECOVERY, "")
            elif key.kind in _KEPT_KINDS:
                self._unreplayed_objects.discard(key)
                self.objects[key] = Tombstone(message.sequence) if is_gone else _decode(message.body)
                self._note_confirmation(key)
        except (msgspec.DecodeError, msgspec.ValidationError, KeyError, ValueError) as error:
            _log.warning("binding.unreadable", subject=message.subject, reason=str(error))
            return None
        return key

    def observe_seed(self, seed: Document | None) -> None:
        """Apply what was announced of the seed's own Seed; None: that it was deleted."""
        self.seed_is_gone = seed is None and (self.seed_is_gone or self.is_complete or self.seed is not None)
        self.seed, self.seed_is_unconfirmed = seed, False

    def is_unconfirmed(self, subject: ShootName | ObjectKey) -> bool:
        """True for an object last seen in a replay: unless a record of it exists, it may be stale."""
        return subject in self._unconfirmed

    def _note_confirmation(self, subject: ShootName | ObjectKey) -> None:
        (self._unconfirmed.discard if self.is_complete else self._unconfirmed.add)(subject)

    def replay_began(self) -> None:
        """Start a replay; cached objects stay for now."""
        self.is_complete = False
        self._unreplayed = set(self.shoots)
        self._unreplayed_objects = set(self.objects)
        self.seed_is_unconfirmed = self.seed is not None

    def clear(self) -> None:
        """Drop all objects but the Seed: they are replayed, and their absence says nothing until then."""
        self.is_complete = False
        for entries in (self.shoots, self.objects, self.traces):
            entries.clear()
        self._unconfirmed.clear()

    def replay_ended(self) -> None:
        """End a replay: drop every object that was not in it."""
        self.is_complete = True
        for shoot in self._unreplayed:
            self.shoots.pop(shoot, None)
            self.traces.pop(shoot, None)
        self._unreplayed.clear()
        for key in self._unreplayed_objects:
            self.objects.pop(key, None)
        self._unreplayed_objects.clear()
        self._unconfirmed &= {*self.shoots, *self.objects}

    def retain(
        self,
        subjects: Collection[str],
        *,
        cached: Mapping[ShootName, ObservedShoot | Tombstone],
        cached_objects: Mapping[ObjectKey, Document | Tombstone] = {},
    ) -> None:
        """Drop the objects of earlier copies of the cache whose subjects are not among `subjects` of the stream."""
        for shoot, observed in cached.items():
            namespace, name = shoot
            if f"{self._bindings}{namespace}.{name}" not in subjects and self.shoots.get(shoot) is observed:
                del self.shoots[shoot]
        for key, entry in cached_objects.items():
            if f"{self._views}{key.tail}" not in subjects and self.objects.get(key) is entry:
                del self.objects[key]

    def is_gone(self, shoot: ShootName) -> bool:
        """True if the last message of a shoot is a tombstone."""
        return isinstance(self.shoots.get(shoot), Tombstone)

    def forget(self, shoot: ShootName, tombstone: Tombstone) -> None:
        """Drop a handled tombstone, unless the shoot changed since."""
        if self.shoots.get(shoot) == tombstone:
            del self.shoots[shoot]
            self.traces.pop(shoot, None)

    def forget_object(self, key: ObjectKey, tombstone: Tombstone) -> None:
        """Drop an object's handled tombstone, unless the object changed since."""
        if self.objects.get(key) == tombstone:
            del self.objects[key]

    def trace_ended(self, shoot: ShootName, trace: str) -> None:
        """End the trace of a shoot whose requested work is done."""
        if self.traces.get(shoot) == trace:
            del self.traces[shoot]

    def shoot(self, shoot: ShootName) -> ObservedShoot | None:
        """The shoot, if it is bound to this seed."""
        observed = self.shoots.get(shoot)
        return None if isinstance(observed, Tombstone) else observed

    def present(self) -> list[ObservedShoot]:
        """All shoots that concern the seed."""
        return [observed for observed in self.shoots.values() if not isinstance(observed, Tombstone)]

    def managed_seed(self, namespace: str, name: str) -> Document | None:
        """The ManagedSeed of a shoot of this seed."""
        return self._object(ObjectKey(MANAGED_SEED, namespace, name))

    def shoot_state(self, namespace: str, name: str) -> Document | None:
        """The ShootState of a shoot of this seed."""
        return self._object(ObjectKey(SHOOT_STATE, namespace, name))

    def _object(self, key: ObjectKey) -> Document | None:
        entry = self.objects.get(key)
        return None if isinstance(entry, Tombstone) else entry


def _read_shoot(message: StreamMessage) -> ObservedShoot:
    return ObservedShoot.of(
        _decode(message.body),
        uid=message.headers.get(Header.UID, ""),
        version=int(message.headers.get(Header.VERSION, "0")),
        role=message.headers.get(Header.ROLE, "run"),
    )
