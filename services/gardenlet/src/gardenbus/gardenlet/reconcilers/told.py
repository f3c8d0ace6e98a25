"""What one gardenlet has been told on BINDINGS: its shoots, its own Seed, and what hangs on its shoots.

That is the ManagedSeeds that make seeds of its shoots, and the ShootStates that shoots are restored from.
Absence says nothing here: an object is gone only when a tombstone said so, or when another one carries its name.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple

import msgspec
import structlog

from gardenbus.common.ports import tracing
from gardenbus.common.ports.bus import Delivered
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import LEFT, Header, ObjectKey, Subjects
from gardenbus.gardenlet.backend.port import ShootName
from gardenbus.gardenlet.decide.operations import ShootTold

_log = structlog.stdlib.get_logger()
_decode = msgspec.json.Decoder(dict).decode

MANAGED_SEED = "managedseed"
SHOOT_STATE = "shootstate"
_KEPT_KINDS = (MANAGED_SEED, SHOOT_STATE)


class Gone(NamedTuple):
    """The explicit word that an object does not concern this seed any more, and where it stands in the stream.

    `left`: the object is there, and another seed's; else it is no more.
    """

    sequence: int
    left: bool = False


class Told:
    """See the module. `is_complete` once all that the stream held has been seen.

    `seed_is_gone`: the Seed was removed while this process lived; one that was removed before may be raised again.

    Tombstones are taken off the stream once they have been obeyed. Who was not listening then must not go on with
    what it was told before: `replay_ended` and `keep_only` forget whatever the stream does not hold any more. And a
    server that was killed may bring back what such a tombstone had replaced: see `is_hearsay`.
    """

    def __init__(self, subjects: Subjects, seed_name: str) -> None:
        self._bindings = subjects.binding(seed_name, "", "").removesuffix(".")
        self._views = subjects.views_of(seed_name).removesuffix(">")
        self._seed = ObjectKey("seed", "", seed_name)
        self.shoots: dict[ShootName, ShootTold | Gone] = {}
        self.objects: dict[ObjectKey, Document | Gone] = {}
        self.traces: dict[ShootName, str] = {}
        """Which trace asked for what is to be done for a shoot, until it has been done."""
        self.seed: Document | None = None
        self.seed_is_gone = False
        self.is_complete = False
        self._unheard: set[ShootName] = set()
        self._unheard_objects: set[ObjectKey] = set()
        self._hearsay: set[ShootName | ObjectKey] = set()

    @property
    def seed_uid(self) -> str:
        """The uid of the Seed; "" before it was seen."""
        return str(self.seed["metadata"].get("uid") or "") if self.seed else ""

    def take(self, message: Delivered) -> ShootName | ObjectKey | None:
        """Take a message in; answers the shoot or the object that it was about, None when it says nothing."""
        if message.marker is not None or Header.TOO_LARGE in message.headers:
            _log.warning("binding.unreadable", subject=message.subject, reason="no body")
            return None
        is_gone = message.headers.get(Header.VERB) == "deleted"
        try:
            if message.subject.startswith(self._bindings):
                namespace, _, name = message.subject.removeprefix(self._bindings).partition(".")
                self._unheard.discard((namespace, name))
                if trace := tracing.received(message.headers):
                    self.traces[namespace, name] = trace
                has_left = message.headers.get(Header.ROLE) == LEFT
                self.shoots[namespace, name] = Gone(message.sequence, has_left) if is_gone else _read_shoot(message)
                self._note_source((namespace, name))
                return (namespace, name)
            key = ObjectKey.from_tail(message.subject.removeprefix(self._views))
            if key == self._seed:
                self.seed_is_gone = is_gone and (self.seed_is_gone or self.is_complete or self.seed is not None)
                self.seed = None if is_gone else _decode(message.body)
            elif key.kind in _KEPT_KINDS:
                self._unheard_objects.discard(key)
                self.objects[key] = Gone(message.sequence) if is_gone else _decode(message.body)
                self._note_source(key)
        except (msgspec.DecodeError, msgspec.ValidationError, KeyError, ValueError) as error:
            _log.warning("binding.unreadable", subject=message.subject, reason=str(error))
            return None
        return key

    def is_hearsay(self, subject: ShootName | ObjectKey) -> bool:
        """Whether the last that was told of it came with a replay: unless something is kept of it, it may be over."""
        return subject in self._hearsay

    def _note_source(self, subject: ShootName | ObjectKey) -> None:
        (self._hearsay.discard if self.is_complete else self._hearsay.add)(subject)

    def replay_began(self) -> None:
        """The stream is read anew. What was told stays for now."""
        self.is_complete = False
        self._unheard = set(self.shoots)
        self._unheard_objects = set(self.objects)

    def replay_ended(self) -> None:
        """All that the stream holds has been told; of what it does not hold nothing is known any more."""
        self.is_complete = True
        for shoot in self._unheard:
            self.shoots.pop(shoot, None)
            self.traces.pop(shoot, None)
        self._unheard.clear()
        for key in self._unheard_objects:
            self.objects.pop(key, None)
        self._unheard_objects.clear()
        self._hearsay &= {*self.shoots, *self.objects}

    def keep_only(
        self,
        subjects: Collection[str],
        *,
        known: Mapping[ShootName, ShootTold | Gone],
        known_objects: Mapping[ObjectKey, Document | Gone] = {},
    ) -> None:
        """Forget what the stream does not hold any more: it held `subjects` when all that is known was told."""
        for shoot, told in known.items():
            namespace, name = shoot
            if f"{self._bindings}{namespace}.{name}" not in subjects and self.shoots.get(shoot) is told:
                del self.shoots[shoot]
        for key, said in known_objects.items():
            if f"{self._views}{key.tail}" not in subjects and self.objects.get(key) is said:
                del self.objects[key]

    def is_gone(self, shoot: ShootName) -> bool:
        """Whether a tombstone is the last that was told of a shoot."""
        return isinstance(self.shoots.get(shoot), Gone)

    def forget(self, shoot: ShootName, tombstone: Gone) -> None:
        """Drop a tombstone that has been obeyed, unless something newer was told."""
        if self.shoots.get(shoot) == tombstone:
            del self.shoots[shoot]
            self.traces.pop(shoot, None)

    def forget_object(self, key: ObjectKey, tombstone: Gone) -> None:
        """Drop an object's tombstone that has been obeyed, unless something newer was told."""
        if self.objects.get(key) == tombstone:
            del self.objects[key]

    def trace_ended(self, shoot: ShootName, trace: str) -> None:
        """What a trace asked for has been done: what is done from now on is not its work, unless it asks again."""
        if self.traces.get(shoot) == trace:
            del self.traces[shoot]

    def shoot(self, shoot: ShootName) -> ShootTold | None:
        """What was told of a shoot that is there."""
        told = self.shoots.get(shoot)
        return None if isinstance(told, Gone) else told

    def present(self) -> list[ShootTold]:
        """All shoots that concern the seed."""
        return [told for told in self.shoots.values() if not isinstance(told, Gone)]

    def managed_seed(self, namespace: str, name: str) -> Document | None:
        """A ManagedSeed that is there, and whose shoot concerns this seed."""
        return self._object(ObjectKey(MANAGED_SEED, namespace, name))

    def shoot_state(self, namespace: str, name: str) -> Document | None:
        """The ShootState that is there for a shoot that concerns this seed."""
        return self._object(ObjectKey(SHOOT_STATE, namespace, name))

    def _object(self, key: ObjectKey) -> Document | None:
        said = self.objects.get(key)
        return None if isinstance(said, Gone) else said


def _read_shoot(message: Delivered) -> ShootTold:
    return ShootTold.of(
        _decode(message.body),
        uid=message.headers.get(Header.UID, ""),
        version=int(message.headers.get(Header.VERSION, "0")),
        role=message.headers.get(Header.ROLE, "run"),
    )
