"""What one gardenlet has been told on BINDINGS: its shoots, and its own Seed.

Absence says nothing here: a shoot is gone only when a tombstone said so, or when another one carries its name.
"""

from enum import Enum

import msgspec
import structlog

from gardenbus.common.ports.bus import Delivered
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects
from gardenbus.gardenlet.backend.port import ShootName
from gardenbus.gardenlet.decide.operations import ShootTold

_log = structlog.stdlib.get_logger()
_decode = msgspec.json.Decoder(dict).decode


class Gone(Enum):
    """The explicit word that a shoot does not concern this seed any more."""

    GONE = "gone"


GONE = Gone.GONE


class Told:
    """See the module. `is_complete` once all that the stream held has been seen."""

    def __init__(self, subjects: Subjects, seed_name: str) -> None:
        self._bindings = subjects.binding(seed_name, "", "").removesuffix(".")
        self._views = subjects.views_of(seed_name).removesuffix(">")
        self._seed = ObjectKey("seed", "", seed_name)
        self.shoots: dict[ShootName, ShootTold | Gone] = {}
        self.seed: Document | None = None
        self.seed_is_gone = False
        self.is_complete = False

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
                self.shoots[namespace, name] = GONE if is_gone else _read_shoot(message)
                return (namespace, name)
            key = ObjectKey.from_tail(message.subject.removeprefix(self._views))
            if key == self._seed:
                self.seed = None if is_gone else _decode(message.body)
                self.seed_is_gone = is_gone
        except (msgspec.DecodeError, msgspec.ValidationError, KeyError, ValueError) as error:
            _log.warning("binding.unreadable", subject=message.subject, reason=str(error))
            return None
        return key

    def forget(self, shoot: ShootName) -> None:
        """Drop a tombstone that has been obeyed."""
        if self.shoots.get(shoot) is GONE:
            del self.shoots[shoot]

    def shoot(self, shoot: ShootName) -> ShootTold | None:
        """What was told of a shoot that is there."""
        told = self.shoots.get(shoot)
        return None if isinstance(told, Gone) else told

    def present(self) -> list[ShootTold]:
        """All shoots that concern the seed."""
        return [told for told in self.shoots.values() if not isinstance(told, Gone)]


def _read_shoot(message: Delivered) -> ShootTold:
    return ShootTold.of(
        _decode(message.body),
        uid=message.headers.get(Header.UID, ""),
        version=int(message.headers.get(Header.VERSION, "0")),
        role=message.headers.get(Header.ROLE, "run"),
    )
