"""The seeds of a landscape as bits: the seeds that pass a filter are one whole number, with a bit for each seed.

The constraints of different classes mostly differ in a filter or two. The result of a filter is worked out once for all
classes that give it the same input; a class combines them by `&`, and a seed that changes has its bit set anew in each.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from gardenbus.common.api.bitsets import Bitset, bitset_of, members_of
from gardenbus.common.api.garden.seeds import SeedNetworks
from gardenbus.common.api.garden.shoot_networks import Ranges, network_problems
from gardenbus.scheduling.result_cache import MAX_REMEMBERED
from gardenbus.scheduling.seed_candidates import SeedCandidate

Region = tuple[str, str]
"""Provider type and region."""

Grades = Mapping[int, Bitset]
"""Seeds by a whole number that each of them has."""

K = TypeVar("K", bound=Hashable)
_Grade = Callable[[SeedCandidate], int]
_Passes = Callable[[SeedCandidate], bool]


@dataclass(frozen=True, slots=True)
class SeedPart:
    """The part of a seed that some results read. Parts of one `name` are the same."""

    name: Hashable
    of: Callable[[SeedCandidate], Hashable]


class SeedIndex:
    """A slot for every seed, for good; a set of seeds has bit i for slot i.

    The first slots are in reverse order of names, so that the first seed of a set by name is its highest bit; seeds
    that are added later have slots above. `epoch` grows with every change; `changed` lists the slots that changed, in
    order. `owner` is the landscape that has these seeds: when a seed is put or removed there is none until a new
    landscape takes the index over.
    """

    def __init__(self, seeds: Iterable[SeedCandidate]) -> None:
        self.seeds: list[SeedCandidate | None] = []
        self.slots: dict[str, int] = {}
        self.present: Bitset = 0
        self.epoch = 0
        self.changed: list[int] = []
        self.owner: object = None
        self.regions: dict[Region, Bitset] = {}
        self._networks: dict[SeedNetworks, Bitset] = {}
        self._labels: dict[str, dict[str, Bitset]] = {}
        self._results: dict[Hashable, tuple[Bitset, _Passes]] = {}
        self._grades: dict[Hashable, tuple[dict[int, Bitset], _Grade]] = {}
        self._compatible: dict[Ranges, tuple[int, Bitset]] = {}
        self._alike: dict[Hashable, list[tuple[SeedCandidate, Bitset]]] = {}
        self._index_all(sorted(seeds, key=lambda seed: seed.name, reverse=True))
        self._ordered: Bitset = self.present

    @property
    def is_worn(self) -> bool:
        """True when most slots belong to seeds that are gone: it is time for a new index."""
        return len(self.changed) > MAX_REMEMBERED or len(self.seeds) > 2 * len(self.slots) + 64

    def first_by_name(self, bits: Bitset) -> int:
        """The slot of the first seed by name; the set must not be empty."""
        ordered = bits & self._ordered
        slots = members_of(bits ^ ordered)
        if ordered:
            slots.append(ordered.bit_length() - 1)
        return min(slots, key=self._name_of) if len(slots) > 1 else slots[0]

    def bits_of(self, seeds: Iterable[SeedCandidate]) -> Bitset:
        """Some of the seeds as bits."""
        slots = self.slots
        return bitset_of((slots[seed.name] for seed in seeds), len(self.seeds))

    def seeds_in(self, bits: Bitset) -> list[SeedCandidate]:
        """The seeds of a set, by name."""
        found = (self.seeds[slot] for slot in members_of(bits))
        return sorted((seed for seed in found if seed is not None), key=lambda seed: seed.name)

    def matching(self, key: Hashable, passes: _Passes, reads: SeedPart | None = None) -> Bitset:
        """The seeds that pass; `key` holds all that the result depends on besides the seed itself.

        `reads` is the only part of a seed that it depends on: of thousands of seeds that are alike there, one is tried.
        """
        cached = self._results.get(key)
        if cached is not None:
            return cached[0]
        if len(self._results) >= MAX_REMEMBERED:
            self._results.clear()
        if reads is None:
            bits = self.bits_of(seed for seed in self.seeds if seed is not None and passes(seed))
        else:
            bits = 0
            for seed, seeds in self._alike_in(reads):
                if passes(seed):
                    bits |= seeds
        self._results[key] = (bits, passes)
        return bits

    def graded(self, key: Hashable, grade: _Grade, reads: SeedPart) -> Grades:
        """All seeds by a number of each; `key` holds all that it depends on besides the part that it `reads`."""
        cached = self._grades.get(key)
        if cached is not None:
            return cached[0]
        if len(self._grades) >= MAX_REMEMBERED:
            self._grades.clear()
        grades: dict[int, Bitset] = {}
        for seed, seeds in self._alike_in(reads):
            number = grade(seed)
            grades[number] = grades.get(number, 0) | seeds
        self._grades[key] = (grades, grade)
        return grades

    def labelled(self, key: str) -> Mapping[str, Bitset]:
        """The seeds with a label, by its value."""
        cached = self._labels.get(key)
        if cached is None:
            if len(self._labels) >= MAX_REMEMBERED:
                self._labels.clear()
            cached = self._labels[key] = self._by_label(key)
        return cached

    def compatible(self, ranges: Ranges) -> Bitset:
        """The seeds whose networks do not clash with a shoot's."""
        epoch, bits = self._compatible.get(ranges, (-1, 0))
        if epoch == self.epoch:
            return bits
        if len(self._compatible) >= MAX_REMEMBERED:
            self._compatible.clear()
        bits = 0
        for networks, seeds in self._networks.items():
            if seeds and not network_problems(ranges, networks):
                bits |= seeds
        self._compatible[ranges] = (self.epoch, bits)
        return bits

    def put(self, seed: SeedCandidate) -> None:
        """Add a new seed, or replace a changed one."""
        slot = self.slots.get(seed.name)
        if slot is None:
            slot = self.slots[seed.name] = len(self.seeds)
            self.seeds.append(None)
        self._leave_groups(slot)
        self.seeds[slot] = seed
        bit = 1 << slot
        self.present |= bit
        for key, (bits, passes) in self._results.items():
            self._results[key] = (bits | bit if passes(seed) else bits & ~bit, passes)
        for grades, grade in self._grades.values():
            number = grade(seed)
            grades[number] = grades.get(number, 0) | bit
        self._join_groups(seed, bit)
        self._slot_changed(slot)

    def remove(self, name: str) -> None:
        """Remove a seed."""
        slot = self.slots.pop(name, None)
        if slot is None:
            return
        self._leave_groups(slot)
        self.seeds[slot] = None
        bit = 1 << slot
        self.present &= ~bit
        for key, (bits, passes) in self._results.items():
            self._results[key] = (bits & ~bit, passes)
        self._slot_changed(slot)

    def touch(self) -> None:
        """Invalidate feasible seeds: a profile, a Project or distances have changed."""
        self.epoch += 1
        self.owner = None

    def _alike_in(self, part: SeedPart) -> list[tuple[SeedCandidate, Bitset]]:
        """One seed of each set of seeds that are alike in a part, and the set; kept until a seed changes."""
        found = self._alike.get(part.name)
        if found is None:
            if len(self._alike) >= MAX_REMEMBERED:
                self._alike.clear()
            slots: dict[Hashable, list[int]] = {}
            samples: dict[Hashable, SeedCandidate] = {}
            for slot, seed in enumerate(self.seeds):
                if seed is not None:
                    value = part.of(seed)
                    slots.setdefault(value, []).append(slot)
                    samples[value] = seed
            found = [(samples[value], bitset_of(each, len(self.seeds))) for value, each in slots.items()]
            self._alike[part.name] = found
        return found

    def _slot_changed(self, slot: int) -> None:
        self._alike.clear()
        self.changed.append(slot)
        self.touch()

    def _name_of(self, slot: int) -> str:
        seed = self.seeds[slot]
        assert seed is not None, "a set holds seeds that are there"
        return seed.name

    def _by_label(self, key: str) -> dict[str, Bitset]:
        found: dict[str, list[int]] = {}
        for slot, seed in enumerate(self.seeds):
            value = seed.seed.metadata.labels.get(key) if seed is not None else None
            if value is not None:
                found.setdefault(value, []).append(slot)
        return {value: bitset_of(slots, len(self.seeds)) for value, slots in found.items()}

    def _join_groups(self, seed: SeedCandidate, bit: Bitset) -> None:
        for key, by_value in self._labels.items():
            value = seed.seed.metadata.labels.get(key)
            if value is not None:
                by_value[value] = by_value.get(value, 0) | bit
        region, networks = _region_of(seed), seed.seed.spec.networks
        self.regions[region] = self.regions.get(region, 0) | bit
        self._networks[networks] = self._networks.get(networks, 0) | bit

    def _leave_groups(self, slot: int) -> None:
        seed, bit = self.seeds[slot], 1 << slot
        if seed is None:
            return
        for key, by_value in self._labels.items():
            value = seed.seed.metadata.labels.get(key)
            if value is not None:
                by_value[value] &= ~bit
        for grades, grade in self._grades.values():
            _clear(grades, grade(seed), bit)
        _clear(self.regions, _region_of(seed), bit)
        _clear(self._networks, seed.seed.spec.networks, bit)

    def _index_all(self, seeds: list[SeedCandidate]) -> None:
        self.seeds += seeds
        self.slots = {seed.name: slot for slot, seed in enumerate(seeds)}
        self.present = (1 << len(seeds)) - 1
        by_region: dict[Region, list[int]] = {}
        by_networks: dict[SeedNetworks, list[int]] = {}
        for slot, seed in enumerate(seeds):
            by_region.setdefault(_region_of(seed), []).append(slot)
            by_networks.setdefault(seed.seed.spec.networks, []).append(slot)
        self.regions = {region: bitset_of(slots, len(seeds)) for region, slots in by_region.items()}
        self._networks = {networks: bitset_of(slots, len(seeds)) for networks, slots in by_networks.items()}


def _clear(groups: dict[K, Bitset], key: K, bit: Bitset) -> None:
    groups[key] &= ~bit
    if not groups[key]:
        del groups[key]


def _region_of(seed: SeedCandidate) -> Region:
    provider = seed.seed.spec.provider
    return provider.type, provider.region
