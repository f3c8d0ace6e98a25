"""The labels of all clusters, indexed: which clusters a selector matches, which values a label has."""

from collections.abc import Mapping, Sequence

from gardenbus.common.resources.selectors import LabelSelector, Requirement
from gardenbus.fleet.masks import Mask, mask_of

_MOST_REMEMBERED = 50_000


class LabelIndex:
    """An index of labels; `labels` are those of the clusters in the order of their places."""

    def __init__(self, labels: Sequence[Mapping[str, str]]) -> None:
        self._labels = labels
        self._everything = (1 << len(labels)) - 1
        places: dict[str, dict[str, list[int]]] = {}
        for place, own in enumerate(labels):
            for key, value in own.items():
                places.setdefault(key, {}).setdefault(value, []).append(place)
        self._domains = {
            key: {value: mask_of(held, len(labels)) for value, held in by_value.items()}
            for key, by_value in places.items()
        }
        self._having: dict[str, Mask] = {}
        self._matching: dict[LabelSelector, Mask] = {}

    def matching(self, selector: LabelSelector) -> Mask:
        """The clusters that a valid selector matches."""
        known = self._matching.get(selector)
        if known is None:
            if len(self._matching) >= _MOST_REMEMBERED:
                self._matching.clear()
            known = self._matching[selector] = self._match(selector)
        return known

    def domains(self, key: str) -> Mapping[str, Mask]:
        """The clusters by their value of a label; those without it are in none."""
        return self._domains.get(key, {})

    def having(self, key: str) -> Mask:
        """The clusters that have a label."""
        known = self._having.get(key)
        if known is None:
            known = 0
            for clusters in self.domains(key).values():
                known |= clusters
            self._having[key] = known
        return known

    def value(self, key: str, place: int) -> str | None:
        """One cluster's value of a label."""
        return self._labels[place].get(key)

    def _match(self, selector: LabelSelector) -> Mask:
        mask = self._everything
        for key, value in selector.match_labels:
            mask &= self.domains(key).get(value, 0)
        for requirement in selector.match_expressions:
            mask &= self._meeting(requirement)
        return mask

    def _meeting(self, requirement: Requirement) -> Mask:
        domains = self.domains(requirement.key)
        narrowed = requirement.operator in ("In", "NotIn")
        found = 0
        for value in requirement.values if narrowed else domains:
            found |= domains.get(value, 0)
        return found if requirement.operator in ("In", "Exists") else self._everything & ~found
