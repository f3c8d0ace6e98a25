"""The scheduling framework: extension points, and the plug-ins that run at them.

A plug-in runs at each extension point whose method it has, in the order of the framework's tuple. It works on sets of
clusters: a result is computed once for all members of a set.

    post_batch ─► pre_filter ─► filter ─► pre_score ─► score

A filter names the clusters that it rejects; all others pass. Rejected clusters are not shown to the next filter.
Source: KubeFleet's `pkg/scheduler/framework`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from gardenbus.common.api.bitsets import Bitset, ascending
from gardenbus.fleet.cycle_result import UnexpectedState
from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.requirements import Requirements


class Code(Enum):
    """Result code of a plug-in."""

    SUCCESS = "Success"
    """Continue."""

    SKIP = "Skip"
    """The plug-in has nothing to do in this cycle."""

    UNSCHEDULABLE = "ClusterUnschedulable"
    """The cluster cannot be chosen."""

    ALREADY_SELECTED = "ClusterAlreadySelected"
    """The cluster is chosen already."""

    ERROR = "InternalError"
    """The cycle cannot go on."""


class Status(msgspec.Struct, frozen=True):
    """Result code of a plug-in, with a reason."""

    code: Code
    reason: str = ""


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


class FilterResult(NamedTuple):
    """Status of a filter for a set of clusters."""

    clusters: Bitset
    status: Status


class Score(NamedTuple):
    """Score of a cluster. Greater is better, the first field counts most."""

    spread: int = 0
    """From the spread constraints."""

    affinity: int = 0
    """From the preferred terms."""

    obsolete: int = 0
    """1 when the cluster has a binding of an earlier policy, which is preferred. Not published."""

    def plus(self, other: "Score") -> "Score":
        """Return the sum of both."""
        return Score(self.spread + other.spread, self.affinity + other.affinity, self.obsolete + other.obsolete)


class ScoreGroup(NamedTuple):
    """Clusters of equal score."""

    clusters: Bitset
    score: Score


@dataclass(kw_only=True)
class CycleState:
    """Input of a cycle, and what plug-ins keep for their later extension points."""

    policy: Requirements = field(kw_only=False)
    """The parsed policy."""

    fleet: Fleet = field(kw_only=False)
    """The candidate clusters."""

    namespace: str = ""
    """Namespace of a ResourcePlacement; "" otherwise."""

    selected: Bitset = 0
    """Clusters already chosen by this policy."""

    obsolete: Bitset = 0
    """Clusters that have a binding of an earlier policy."""

    desired: int = 0
    """Number of further clusters wanted."""

    notes: dict[str, object] = field(default_factory=dict[str, object])
    """Data of plug-ins within a batch, by name."""

    kept: dict[str, object] = field(default_factory=dict[str, object])
    """Data of plug-ins kept from batch to batch, by keys of their own."""


class Plugin(Protocol):
    """A plug-in of the framework."""

    @property
    def name(self) -> str:
        """Name as reasons show it."""
        ...


@runtime_checkable
class PostBatchPlugin(Plugin, Protocol):
    """Limits the size of a batch."""

    def post_batch(self, state: CycleState) -> tuple[int, Status]:
        """Return the limit, with SUCCESS; or SKIP for none."""
        ...


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Prepares its filter, or skips it."""

    def pre_filter(self, state: CycleState) -> Status:
        """Return SUCCESS or SKIP."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Rejects clusters."""

    def filter(self, state: CycleState, candidates: Bitset) -> Iterable[FilterResult]:
        """Yield the rejected candidates."""
        ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Prepares its score, or skips it."""

    def pre_score(self, state: CycleState) -> Status:
        """Return SUCCESS or SKIP."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Scores clusters."""

    def score(self, state: CycleState, candidates: Bitset) -> Sequence[ScoreGroup]:
        """Return scores of disjoint sets; clusters in none get zero."""
        ...


class FilteredClusters(NamedTuple):
    """Clusters that passed the filters, and the rejections."""

    passed: Bitset
    rejections: tuple[FilterResult, ...]

    @property
    def clusters(self) -> Bitset:
        """All rejected clusters."""
        found = 0
        for result in self.rejections:
            found |= result.clusters
        return found

    def reason(self, place: int) -> str:
        """Return why a cluster was rejected."""
        return next((result.status.reason for result in self.rejections if result.clusters >> place & 1), "")


class Framework:
    """Runs plug-ins at the extension points. Raises UnexpectedState for a status that is invalid at its point."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._post_batch = [plugin for plugin in plugins if isinstance(plugin, PostBatchPlugin)]
        self._pre_filters = [plugin for plugin in plugins if isinstance(plugin, PreFilterPlugin)]
        self._filters = [plugin for plugin in plugins if isinstance(plugin, FilterPlugin)]
        self._pre_scores = [plugin for plugin in plugins if isinstance(plugin, PreScorePlugin)]
        self._scores = [plugin for plugin in plugins if isinstance(plugin, ScorePlugin)]

    def batch_limit(self, state: CycleState) -> int:
        """Return the smallest limit of the plug-ins, and at most the number of wanted clusters."""
        limit = state.desired
        for plugin in self._post_batch:
            own, status = plugin.post_batch(state)
            if status.code is Code.SUCCESS:
                limit = own if 0 <= own < limit else limit
            elif status.code is not Code.SKIP:
                raise _unexpected(plugin, "post_batch", status)
        return limit

    def filter(self, state: CycleState) -> FilteredClusters:
        """Run the filters over the fleet. Clusters already selected are in neither part of the result."""
        skipped = {each.name for each in self._pre_filters if _skips(each, "pre_filter", each.pre_filter(state))}
        remaining = state.fleet.all_clusters
        rejections: list[FilterResult] = []
        for plugin in self._filters:
            if plugin.name in skipped:
                continue
            for clusters, status in plugin.filter(state, remaining):
                if status.code is Code.UNSCHEDULABLE:
                    rejections.append(FilterResult(clusters & remaining, status))
                elif status.code is not Code.ALREADY_SELECTED:
                    raise _unexpected(plugin, "filter", status)
                remaining &= ~clusters
        return FilteredClusters(remaining, tuple(rejections))

    def score(self, state: CycleState, candidates: Bitset) -> list[ScoreGroup]:
        """Return the candidates in groups of equal score, the best first."""
        skipped = {each.name for each in self._pre_scores if _skips(each, "pre_score", each.pre_score(state))}
        groups = [ScoreGroup(candidates, Score())] if candidates else []
        for plugin in self._scores if candidates else ():
            if plugin.name in skipped:
                continue
            groups = combine(groups, plugin.score(state, candidates))
        return sorted(groups, key=lambda group: group.score, reverse=True)


_MANY = 4096
_NOTHING = Score()


def combine(groups: Sequence[ScoreGroup], parts: Sequence[ScoreGroup]) -> list[ScoreGroup]:
    """Add further scores to groups of equal score; `parts` are disjoint."""
    if not parts:
        return list(groups)
    if len(groups) * len(parts) > _MANY:
        return _combine_one_by_one(groups, parts)
    merged: dict[Score, Bitset] = {}
    for clusters, score in groups:
        rest, is_first = clusters, score == _NOTHING
        for part, more in parts:
            if hit := rest & part:
                total = more if is_first else score.plus(more)
                merged[total] = merged.get(total, 0) | hit
                rest ^= hit
                if not rest:
                    break
        if rest:
            merged[score] = merged.get(score, 0) | rest
    return [ScoreGroup(clusters, score) for score, clusters in merged.items()]


def _combine_one_by_one(groups: Sequence[ScoreGroup], parts: Sequence[ScoreGroup]) -> list[ScoreGroup]:
    more = {place: score for clusters, score in parts for place in ascending(clusters)}
    merged: dict[Score, Bitset] = {}
    for clusters, score in groups:
        for place in ascending(clusters):
            total = score.plus(more[place]) if place in more else score
            merged[total] = merged.get(total, 0) | 1 << place
    return [ScoreGroup(clusters, score) for score, clusters in merged.items()]


def _skips(plugin: Plugin, point: str, status: Status) -> bool:
    if status.code not in (Code.SKIP, Code.SUCCESS):
        raise _unexpected(plugin, point, status)
    return status.code is Code.SKIP


def _unexpected(plugin: Plugin, point: str, status: Status) -> UnexpectedState:
    why = f": {status.reason}" if status.reason else ""
    return UnexpectedState(f"plug-in {plugin.name} returns {status.code.value} at {point}{why}")
