"""Ranking of scored clusters, and the condition for another batch.

Better scores come first; of equal ones the later name. Source: KubeFleet's `frameworkutils.go` and `score.go`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gardenbus.common.api.bitsets import descending
from gardenbus.fleet.framework import Score, ScoreGroup


class ScoredCluster(NamedTuple):
    """One cluster, by its place in the fleet, with its score."""

    place: int
    score: Score


def ranked(groups: Sequence[ScoreGroup]) -> Iterator[ScoredCluster]:
    """Yield clusters in picking order; `groups` as `Framework.score` returns them."""
    for clusters, score in groups:
        for place in descending(clusters):
            yield ScoredCluster(place, score)


def needs_another_batch(desired: int, limit: int, made: int) -> bool:
    """Report whether another batch follows: more were wanted than allowed at once, and all allowed were made."""
    return desired > limit and made >= limit
