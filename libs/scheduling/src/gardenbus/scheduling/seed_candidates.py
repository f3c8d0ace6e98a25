"""A Seed as filters and scores read it."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from datetime import datetime

import msgspec

from gardenbus.common.api.document import Document, StoredObject, section
from gardenbus.common.api.garden.scheduling_profiles import valid_until
from gardenbus.common.api.garden.seeds import Seed, allocatable_resources, shoot_capacity
from gardenbus.common.errors import InvalidResource
from gardenbus.common.ports.clock import parse_timestamp


class SeedCandidate(msgspec.Struct, frozen=True, eq=False):
    """A Seed with what the filters need, precomputed. `capacity` None: no limit. `allocatable`: other resources.

    `scheduling_generation` numbers its changes that matter to scheduling; None: nobody does.

    An unreadable manifest is a candidate too, with the reason in `unreadable`: the first filter rejects it. `read`
    gives the whole manifest: few need it, and thousands of seeds' would fill the memory.
    """

    name: str
    seed: Seed
    read: Callable[[], Document]
    capacity: int | None = None
    scheduling_generation: int | None = None
    zones: frozenset[str] = frozenset()
    unreadable: str = ""
    allocatable: Mapping[str, int] = {}

    @classmethod
    def of(cls, document: Document, scheduling_generation: int | None = None) -> "SeedCandidate":
        """Read a Seed; never raises."""
        name = section(document, "metadata").get("name")
        return cls._of(str(name or ""), document, lambda: document, scheduling_generation)

    @classmethod
    def stored(cls, name: str, stored: StoredObject) -> "SeedCandidate":
        """Read a stored Seed; never raises."""
        return cls._of(name, stored.encoded(), stored.document, stored.scheduling_generation)

    @classmethod
    def _of(
        cls, name: str, manifest: Document | bytes, read: Callable[[], Document], scheduling_generation: int | None
    ) -> "SeedCandidate":
        try:
            seed = Seed.from_document(manifest)
            status = {"status": {"allocatable": seed.status.allocatable}}
            capacity, allocatable = shoot_capacity(status), allocatable_resources(status)
        except InvalidResource as error:
            return cls(name, Seed(), read, scheduling_generation=scheduling_generation, unreadable=error.message)
        except ValueError as error:
            return cls(
                name,
                Seed(),
                read,
                scheduling_generation=scheduling_generation,
                unreadable=f"status.allocatable.shoots: {error}",
            )
        zones = frozenset(seed.spec.provider.zones)
        return cls(name, seed, read, capacity, scheduling_generation, zones, allocatable=allocatable)

    def valid_at(self, now: datetime, names: AbstractSet[str]) -> "SeedCandidate":
        """The same seed without those of some annotations that are not valid any more; `document` stays as it is."""
        annotations = self.seed.metadata.annotations
        expired = {name for name in names & annotations.keys() if _is_expired(annotations.get(valid_until(name)), now)}
        if not expired:
            return self
        kept = {name: value for name, value in annotations.items() if name not in expired}
        metadata = msgspec.structs.replace(self.seed.metadata, annotations=kept)
        return msgspec.structs.replace(self, seed=msgspec.structs.replace(self.seed, metadata=metadata))

    @property
    def document(self) -> Document:
        """The whole manifest."""
        return self.read()


def _is_expired(until: str | None, now: datetime) -> bool:
    """True after the instant; what cannot be read, nobody can call valid."""
    if until is None:
        return False
    instant = parse_timestamp(until)
    return instant is None or instant < now
