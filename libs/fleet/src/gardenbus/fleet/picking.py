"""Who is picked out of those that were scored, and when another batch follows.

Better scores go first; of equal ones the later name. Source: KubeFleet's `frameworkutils.go` and `score.go`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gardenbus.fleet.framework import Group, Score
from gardenbus.fleet.masks import descending


class Scored(NamedTuple):
    """One cluster, by its place in the fleet, with its score."""

    place: int
    score: Score


def number_to_pick(desired: int, limit: int, scored: int) -> int:
    """How many to pick: as many as are wanted, allowed at once, and there."""
    return min(desired, limit, scored)


def ranked(groups: Sequence[Group]) -> Iterator[Scored]:
    """Clusters in the order in which they are picked; `groups` as `Framework.score` gives them."""
    for clusters, score in groups:
        for place in descending(clusters):
            yield Scored(place, score)


def needs_another_batch(desired: int, limit: int, made: int) -> bool:
    """Whether to go on at once: more were wanted than were allowed at once, and all that were allowed came about."""
    return desired > limit and made >= limit
