"""Index of the labels of all clusters: clusters by selector, and values by key."""

from collections.abc import Mapping, Sequence

from gardenbus.common.api.bitsets import Bitset, bitset_of
from gardenbus.common.api.selectors import LabelSelector, LabelSelectorRequirement

_MAX_CACHED_SELECTORS = 50_000


class LabelIndex:
    """An index of labels; `labels` are those of the clusters by place."""

    def __init__(self, labels: Sequence[Mapping[str, str]]) -> None:
        self._labels = labels
        self._everything = (1 << len(labels)) - 1
        places: dict[str, dict[str, list[int]]] = {}
        for place, own in enumerate(labels):
            for key, value in own.items():
                places.setdefault(key, {}).setdefault(value, []).append(place)
        self._domains = {
            key: {value: bitset_of(held, len(labels)) for value, held in by_value.items()}
            for key, by_value in places.items()
        }
        self._having: dict[str, Bitset] = {}
        self._matching: dict[LabelSelector, Bitset] = {}

    def matching(self, selector: LabelSelector) -> Bitset:
        """Return the clusters that a valid selector matches."""
        cached = self._matching.get(selector)
        if cached is None:
            if len(self._matching) >= _MAX_CACHED_SELECTORS:
                self._matching.clear()
            cached = self._matching[selector] = self._match(selector)
        return cached

    def domains(self, key: str) -> Mapping[str, Bitset]:
        """Return the clusters by their value of a label; those without it are in none."""
        return self._domains.get(key, {})

    def having(self, key: str) -> Bitset:
        """Return the clusters that have a label."""
        cached = self._having.get(key)
        if cached is None:
            cached = 0
            for clusters in self.domains(key).values():
                cached |= clusters
            self._having[key] = cached
        return cached

    def value(self, key: str, place: int) -> str | None:
        """Return one cluster's value of a label."""
        return self._labels[place].get(key)

    def _match(self, selector: LabelSelector) -> Bitset:
        mask = self._everything
        for key, value in selector.match_labels:
            mask &= self.domains(key).get(value, 0)
        for requirement in selector.match_expressions:
            mask &= self._matching_requirement(requirement)
        return mask

    def _matching_requirement(self, requirement: LabelSelectorRequirement) -> Bitset:
        domains = self.domains(requirement.key)
        narrowed = requirement.operator in ("In", "NotIn")
        found = 0
        for value in requirement.values if narrowed else domains:
            found |= domains.get(value, 0)
        return found if requirement.operator in ("In", "Exists") else self._everything & ~found
