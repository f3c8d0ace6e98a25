"""The scheduler profile: the plug-ins in order, and the three that are too small for a module of their own.

Source: KubeFleet's `pkg/scheduler/profile`.
"""

from collections.abc import Iterable, Sequence

from gardenbus.common.api.bitsets import Bitset
from gardenbus.fleet.cluster_affinity import ClusterAffinityPlugin
from gardenbus.fleet.framework import (
    SKIP,
    SUCCESS,
    Code,
    CycleState,
    FilterResult,
    Framework,
    Plugin,
    Score,
    ScoreGroup,
    Status,
)
from gardenbus.fleet.taint_toleration import TaintTolerationPlugin
from gardenbus.fleet.topology_spread import TopologySpreadPlugin

_SELECTED = Status(Code.ALREADY_SELECTED)


class ClusterEligibilityPlugin:
    """Rejects ineligible clusters."""

    name = "ClusterEligibility"

    def filter(self, state: CycleState, candidates: Bitset) -> Iterable[FilterResult]:
        """Reject clusters that are not eligible."""
        for reason, clusters in state.fleet.eligibility.ineligible:
            if hit := clusters & candidates:
                yield FilterResult(hit, Status(Code.UNSCHEDULABLE, f"ClusterEligibility: {reason}"))


class NamespaceAffinityPlugin:
    """Keeps a ResourcePlacement off clusters without its namespace. Clusters that do not report theirs pass."""

    name = "NamespaceAffinity"

    def pre_filter(self, state: CycleState) -> Status:
        """Skip the filter for a ClusterResourcePlacement."""
        return SUCCESS if state.namespace else SKIP

    def filter(self, state: CycleState, candidates: Bitset) -> Iterable[FilterResult]:
        """Reject clusters that report namespaces without this one."""
        namespaces = state.fleet.namespaces
        if hit := namespaces.without_any & candidates:
            yield FilterResult(hit, Status(Code.UNSCHEDULABLE, "NamespaceAffinity: its namespaces are not known"))
        if hit := namespaces.reporting & candidates & ~namespaces.without_any & ~namespaces.having(state.namespace):
            reason = f"NamespaceAffinity: it has no namespace {state.namespace}"
            yield FilterResult(hit, Status(Code.UNSCHEDULABLE, reason))


class SamePlacementAffinityPlugin:
    """Leaves out the clusters of this policy's bindings, and prefers those of an earlier policy."""

    name = "SamePlacementAffinity"

    def filter(self, state: CycleState, candidates: Bitset) -> Iterable[FilterResult]:
        """Name the clusters that are selected already."""
        if hit := state.selected & candidates:
            yield FilterResult(hit, _SELECTED)

    def score(self, state: CycleState, candidates: Bitset) -> Sequence[ScoreGroup]:
        """Score 1 for clusters of an earlier policy."""
        hit = state.obsolete & candidates
        return [ScoreGroup(hit, Score(obsolete=1))] if hit else []


PLUGINS: tuple[Plugin, ...] = (
    ClusterAffinityPlugin(),
    ClusterEligibilityPlugin(),
    NamespaceAffinityPlugin(),
    TaintTolerationPlugin(),
    SamePlacementAffinityPlugin(),
    TopologySpreadPlugin(),
)

FRAMEWORK = Framework(PLUGINS)
"""All plug-ins."""

PER_CLUSTER_FRAMEWORK = Framework(PLUGINS[:4])
"""The filters that depend on the cluster alone, not on other choices."""
