"""How plug-ins take part in a cycle: the extension points, and what comes of them.

A plug-in stands at each extension point whose method it has, in the order of the framework's tuple. It speaks about
sets of clusters: what it says of a set is worked out once for all in it.

    post_batch ─► pre_filter ─► filter ─► pre_score ─► score

A filter names those that it objects to; whom none names has passed. Whom one has named is not shown to the next.
Source: KubeFleet's `pkg/scheduler/framework`.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from gardenbus.fleet.fleet import Fleet
from gardenbus.fleet.masks import Mask, ascending
from gardenbus.fleet.outcome import UnexpectedState
from gardenbus.fleet.requirements import Requirements


class Code(Enum):
    """What a plug-in comes to."""

    SUCCESS = "Success"
    """Go on."""

    SKIP = "Skip"
    """The plug-in has nothing to do in this cycle."""

    UNSCHEDULABLE = "ClusterUnschedulable"
    """The cluster cannot be taken."""

    ALREADY_SELECTED = "ClusterAlreadySelected"
    """The cluster is taken already."""

    ERROR = "InternalError"
    """The cycle cannot go on."""


class Status(msgspec.Struct, frozen=True):
    """What a plug-in comes to, and why."""

    code: Code
    reason: str = ""


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


class Verdict(NamedTuple):
    """What a filter has against a set of clusters."""

    clusters: Mask
    status: Status


class Score(NamedTuple):
    """How well a cluster fits. Greater is better, the first field counts most."""

    spread: int = 0
    """By the spread constraints."""

    affinity: int = 0
    """By the preferred terms."""

    obsolete: int = 0
    """1 when it has a binding of an earlier policy: who is there may stay. Not published."""

    def plus(self, other: "Score") -> "Score":
        """Both together."""
        return Score(self.spread + other.spread, self.affinity + other.affinity, self.obsolete + other.obsolete)


class Group(NamedTuple):
    """Clusters of equal score."""

    clusters: Mask
    score: Score


class CycleState:
    """What plug-ins know of a cycle, and note in it for their later extension points."""

    def __init__(
        self,
        policy: Requirements,
        fleet: Fleet,
        *,
        namespace: str = "",
        selected: Mask = 0,
        obsolete: Mask = 0,
        desired: int = 0,
    ) -> None:
        self.policy = policy
        """What is asked for."""
        self.fleet = fleet
        """Of whom."""
        self.namespace = namespace
        """Of a ResourcePlacement."""
        self.selected = selected
        """Clusters that are taken by this policy."""
        self.obsolete = obsolete
        """Clusters that have a binding of an earlier policy."""
        self.desired = desired
        """How many more are wanted."""
        self.notes: dict[str, object] = {}
        """Of plug-ins, by name."""
        self.kept: dict[str, object] = {}
        """What plug-ins hand on from one batch to the next, by whatever they call it."""
        self.skipped_filters: set[str] = set()
        self.skipped_scores: set[str] = set()


class Plugin(Protocol):
    """Whatever stands at an extension point."""

    @property
    def name(self) -> str:
        """As reasons name it."""
        ...


@runtime_checkable
class PostBatchPlugin(Plugin, Protocol):
    """Limits how many are picked at once."""

    def post_batch(self, state: CycleState) -> tuple[int, Status]:
        """The limit, with SUCCESS; or SKIP for none."""
        ...


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Prepares its filter, or has it left out."""

    def pre_filter(self, state: CycleState) -> Status:
        """SUCCESS or SKIP."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Says who cannot be taken."""

    def filter(self, state: CycleState, candidates: Mask) -> Iterable[Verdict]:
        """Whom of the candidates it objects to."""
        ...


@runtime_checkable
class PreScorePlugin(Plugin, Protocol):
    """Prepares its score, or has it left out."""

    def pre_score(self, state: CycleState) -> Status:
        """SUCCESS or SKIP."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Says how well clusters fit."""

    def score(self, state: CycleState, candidates: Mask) -> Sequence[Group]:
        """Scores of disjoint sets; whom it leaves out gets nothing."""
        ...


class Filtered(NamedTuple):
    """What the filters leave, and what they object to."""

    passed: Mask
    objections: tuple[Verdict, ...]

    @property
    def clusters(self) -> Mask:
        """All that are objected to."""
        found = 0
        for verdict in self.objections:
            found |= verdict.clusters
        return found

    def reason(self, place: int) -> str:
        """What is objected to a cluster."""
        return next((verdict.status.reason for verdict in self.objections if verdict.clusters >> place & 1), "")


class Framework:
    """Runs plug-ins at the extension points. Raises UnexpectedState for whatever an extension point cannot answer."""

    def __init__(self, plugins: Sequence[Plugin]) -> None:
        self._post_batch = [plugin for plugin in plugins if isinstance(plugin, PostBatchPlugin)]
        self._pre_filters = [plugin for plugin in plugins if isinstance(plugin, PreFilterPlugin)]
        self._filters = [plugin for plugin in plugins if isinstance(plugin, FilterPlugin)]
        self._pre_scores = [plugin for plugin in plugins if isinstance(plugin, PreScorePlugin)]
        self._scores = [plugin for plugin in plugins if isinstance(plugin, ScorePlugin)]

    def batch_limit(self, state: CycleState) -> int:
        """How many may be picked at once: the least of what plug-ins say, and not more than are wanted."""
        limit = state.desired
        for plugin in self._post_batch:
            own, status = plugin.post_batch(state)
            if status.code is Code.SUCCESS:
                limit = own if 0 <= own < limit else limit
            elif status.code is not Code.SKIP:
                raise _unexpected(plugin, "post_batch", status)
        return limit

    def filter(self, state: CycleState) -> Filtered:
        """Whom of the fleet the filters leave. Clusters that are taken already are in neither part."""
        for plugin in self._pre_filters:
            status = plugin.pre_filter(state)
            if status.code is Code.SKIP:
                state.skipped_filters.add(plugin.name)
            elif status.code is not Code.SUCCESS:
                raise _unexpected(plugin, "pre_filter", status)
        remaining = state.fleet.everything
        objections: list[Verdict] = []
        for plugin in self._filters:
            if plugin.name in state.skipped_filters:
                continue
            for clusters, status in plugin.filter(state, remaining):
                if status.code is Code.UNSCHEDULABLE:
                    objections.append(Verdict(clusters & remaining, status))
                elif status.code is not Code.ALREADY_SELECTED:
                    raise _unexpected(plugin, "filter", status)
                remaining &= ~clusters
        return Filtered(remaining, tuple(objections))

    def score(self, state: CycleState, candidates: Mask) -> list[Group]:
        """The candidates in groups of equal score, the best first."""
        scoring: list[ScorePlugin] = []
        for plugin in self._pre_scores:
            status = plugin.pre_score(state)
            if status.code is Code.SKIP:
                state.skipped_scores.add(plugin.name)
            elif status.code is not Code.SUCCESS:
                raise _unexpected(plugin, "pre_score", status)
        scoring = [plugin for plugin in self._scores if plugin.name not in state.skipped_scores]
        groups = [Group(candidates, Score())] if candidates else []
        for plugin in scoring if candidates else ():
            groups = combine(groups, plugin.score(state, candidates))
        return sorted(groups, key=lambda group: group.score, reverse=True)


_MANY = 4096
_NOTHING = Score()


def combine(groups: Sequence[Group], parts: Sequence[Group]) -> list[Group]:
    """Groups of equal score after further scores are added; `parts` are disjoint."""
    if not parts:
        return list(groups)
    if len(groups) * len(parts) > _MANY:
        return _combine_one_by_one(groups, parts)
    merged: dict[Score, Mask] = {}
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
    return [Group(clusters, score) for score, clusters in merged.items()]


def _combine_one_by_one(groups: Sequence[Group], parts: Sequence[Group]) -> list[Group]:
    more = {place: score for clusters, score in parts for place in ascending(clusters)}
    merged: dict[Score, Mask] = {}
    for clusters, score in groups:
        for place in ascending(clusters):
            total = score.plus(more[place]) if place in more else score
            merged[total] = merged.get(total, 0) | 1 << place
    return [Group(clusters, score) for score, clusters in merged.items()]


def _unexpected(plugin: Plugin, point: str, status: Status) -> UnexpectedState:
    why = f": {status.reason}" if status.reason else ""
    return UnexpectedState(f"plug-in {plugin.name} answers {status.code.value} at {point}{why}")
