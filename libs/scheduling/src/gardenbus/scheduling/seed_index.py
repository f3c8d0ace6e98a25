"""The seeds of a landscape as bits: which of them pass a rule is one whole number, with a bit for each seed.

What shoots of different classes ask for mostly differs in a rule or two. Each answer to a rule is worked out once for
all classes that ask the same; a class combines them by `&`, and when a seed changes its bit is repaired in each.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gardenbus.common.resources.seeds import SeedNetworks
from gardenbus.common.resources.shoot_networks import Ranges, network_problems

if TYPE_CHECKING:
    from gardenbus.scheduling.landscape import SeedCandidate

MOST_REMEMBERED = 20_000
"""Answers of one kind that are kept; then all are forgotten and worked out again as they are asked for."""

_Passes = Callable[["SeedCandidate"], bool]


class SeedIndex:
    """Every seed has a slot, for good; a set of seeds is the sum of `1 << slot`.

    `epoch` grows with every change, `changed` lists the slots that changed, in order. `owner` is the landscape whose
    seeds these are: when a seed is put or removed there is none until a new landscape takes the index over.
    """

    def __init__(self, seeds: Iterable["SeedCandidate"]) -> None:
        self.seeds: list[SeedCandidate | None] = list(seeds)
        self.slots = {seed.name: slot for slot, seed in enumerate(self.seeds) if seed is not None}
        self.present = (1 << len(self.seeds)) - 1
        self.epoch = 0
        self.changed: list[int] = []
        self.owner: object = None
        self.choices: dict[Hashable, Any] = {}
        self.places: dict[tuple[str, str], int] = {}
        self._networks: dict[SeedNetworks, int] = {}
        self._labels: dict[str, dict[str, int]] = {}
        self._sets: dict[Hashable, tuple[int, _Passes]] = {}
        self._compatible: dict[Ranges, tuple[int, int]] = {}
        self._index_all()

    @property
    def is_worn(self) -> bool:
        """Whether most slots are of seeds that are gone: it is time for a new index."""
        return len(self.changed) > MOST_REMEMBERED or len(self.seeds) > 2 * len(self.slots) + 64

    def bits_of(self, seeds: Iterable["SeedCandidate"]) -> int:
        """Some of the seeds as bits."""
        slots = self.slots
        return self.bits_in(slots[seed.name] for seed in seeds)

    def bits_in(self, slots: Iterable[int]) -> int:
        """Some of the slots as bits."""
        ones = bytearray(len(self.seeds) // 8 + 1)
        for slot in slots:
            ones[slot >> 3] |= 1 << (slot & 7)
        return int.from_bytes(ones, "little")

    def slots_in(self, bits: int) -> Sequence[int]:
        """The slots of a set of seeds."""
        return [slot for slot, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"]

    def those(self, question: Hashable, passes: _Passes) -> int:
        """The seeds that pass; `question` is all that the answer depends on besides the seed itself."""
        known = self._sets.get(question)
        if known is not None:
            return known[0]
        if len(self._sets) >= MOST_REMEMBERED:
            self._sets.clear()
        bits = self.bits_of(seed for seed in self.seeds if seed is not None and passes(seed))
        self._sets[question] = (bits, passes)
        return bits

    def labelled(self, key: str) -> Mapping[str, int]:
        """The seeds with a label, by its value."""
        known = self._labels.get(key)
        if known is None:
            if len(self._labels) >= MOST_REMEMBERED:
                self._labels.clear()
            known = self._labels[key] = self._by_label(key)
        return known

    def compatible(self, ranges: Ranges) -> int:
        """The seeds beside whose networks a shoot's may stand."""
        epoch, bits = self._compatible.get(ranges, (-1, 0))
        if epoch == self.epoch:
            return bits
        if len(self._compatible) >= MOST_REMEMBERED:
            self._compatible.clear()
        bits = 0
        for networks, those in self._networks.items():
            if those and not network_problems(ranges, networks):
                bits |= those
        self._compatible[ranges] = (self.epoch, bits)
        return bits

    def put(self, seed: "SeedCandidate") -> None:
        """Take a new seed in, or a changed one."""
        slot = self.slots.get(seed.name)
        if slot is None:
            slot = self.slots[seed.name] = len(self.seeds)
            self.seeds.append(None)
        self._leave(slot)
        self.seeds[slot] = seed
        bit = 1 << slot
        self.present |= bit
        for question, (bits, passes) in self._sets.items():
            self._sets[question] = (bits | bit if passes(seed) else bits & ~bit, passes)
        self._stand(seed, bit)
        self._changed(slot)

    def remove(self, name: str) -> None:
        """Take a seed out."""
        slot = self.slots.pop(name, None)
        if slot is None:
            return
        self._leave(slot)
        self.seeds[slot] = None
        bit = 1 << slot
        self.present &= ~bit
        for question, (bits, passes) in self._sets.items():
            self._sets[question] = (bits & ~bit, passes)
        self._changed(slot)

    def touch(self) -> None:
        """Something else that choices depend on has changed: a profile, a Project, distances."""
        self.epoch += 1
        self.owner = None

    def _changed(self, slot: int) -> None:
        self.changed.append(slot)
        self.touch()

    def _by_label(self, key: str) -> dict[str, int]:
        found: dict[str, list[int]] = {}
        for slot, seed in enumerate(self.seeds):
            value = seed.seed.metadata.labels.get(key) if seed is not None else None
            if value is not None:
                found.setdefault(value, []).append(slot)
        return {value: self.bits_in(slots) for value, slots in found.items()}

    def _stand(self, seed: "SeedCandidate", bit: int) -> None:
        for key, by_value in self._labels.items():
            value = seed.seed.metadata.labels.get(key)
            if value is not None:
                by_value[value] = by_value.get(value, 0) | bit
        place, networks = _place_of(seed), seed.seed.spec.networks
        self.places[place] = self.places.get(place, 0) | bit
        self._networks[networks] = self._networks.get(networks, 0) | bit

    def _leave(self, slot: int) -> None:
        seed, bit = self.seeds[slot], 1 << slot
        if seed is None:
            return
        for key, by_value in self._labels.items():
            value = seed.seed.metadata.labels.get(key)
            if value is not None:
                by_value[value] &= ~bit
        for sets, key in ((self.places, _place_of(seed)), (self._networks, seed.seed.spec.networks)):
            sets[key] &= ~bit  # pyright: ignore[reportArgumentType] - each with its own kind of key
            if not sets[key]:  # pyright: ignore[reportArgumentType]
                del sets[key]  # pyright: ignore[reportArgumentType]

    def _index_all(self) -> None:
        by_place: dict[tuple[str, str], list[SeedCandidate]] = {}
        by_networks: dict[SeedNetworks, list[SeedCandidate]] = {}
        for seed in self.seeds:
            assert seed is not None, "an index begins with seeds only"
            by_place.setdefault(_place_of(seed), []).append(seed)
            by_networks.setdefault(seed.seed.spec.networks, []).append(seed)
        self.places = {place: self.bits_of(seeds) for place, seeds in by_place.items()}
        self._networks = {networks: self.bits_of(seeds) for networks, seeds in by_networks.items()}


def _place_of(seed: "SeedCandidate") -> tuple[str, str]:
    provider = seed.seed.spec.provider
    return provider.type, provider.region
