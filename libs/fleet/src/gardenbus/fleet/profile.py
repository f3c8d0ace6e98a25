"""Which plug-ins decide, in which order, and the three that are too small for a module of their own.

Source: KubeFleet's `pkg/scheduler/profile`.
"""

from collections.abc import Iterable, Sequence

from gardenbus.fleet.affinity import ClusterAffinity
from gardenbus.fleet.framework import SKIP, SUCCESS, Code, CycleState, Framework, Group, Plugin, Score, Status, Verdict
from gardenbus.fleet.masks import Mask
from gardenbus.fleet.spreading import TopologySpreadConstraints
from gardenbus.fleet.tolerating import TaintToleration

_SELECTED = Status(Code.ALREADY_SELECTED)


class ClusterEligibility:
    """Keeps off clusters that cannot be placed on at all."""

    name = "ClusterEligibility"

    def filter(self, state: CycleState, candidates: Mask) -> Iterable[Verdict]:
        """Objects to those that are not eligible."""
        for reason, clusters in state.fleet.standing.ineligible:
            if hit := clusters & candidates:
                yield Verdict(hit, Status(Code.UNSCHEDULABLE, f"ClusterEligibility: {reason}"))


class NamespaceAffinity:
    """Keeps a ResourcePlacement off clusters without its namespace. Those that do not tell are taken to have it."""

    name = "NamespaceAffinity"

    def pre_filter(self, state: CycleState) -> Status:
        """Left out for a ClusterResourcePlacement."""
        return SUCCESS if state.namespace else SKIP

    def filter(self, state: CycleState, candidates: Mask) -> Iterable[Verdict]:
        """Objects to those that tell of their namespaces, and not of this one."""
        namespaces = state.fleet.namespaces
        if hit := namespaces.without_any & candidates:
            yield Verdict(hit, Status(Code.UNSCHEDULABLE, "NamespaceAffinity: its namespaces are not known"))
        if hit := namespaces.collecting & candidates & ~namespaces.without_any & ~namespaces.having(state.namespace):
            reason = f"NamespaceAffinity: it has no namespace {state.namespace}"
            yield Verdict(hit, Status(Code.UNSCHEDULABLE, reason))


class SamePlacementAffinity:
    """Leaves out whom this policy has taken already, and prefers whom an earlier one has taken."""

    name = "SamePlacementAffinity"

    def filter(self, state: CycleState, candidates: Mask) -> Iterable[Verdict]:
        """Names those that are taken."""
        if hit := state.selected & candidates:
            yield Verdict(hit, _SELECTED)

    def score(self, state: CycleState, candidates: Mask) -> Sequence[Group]:
        """One for those of an earlier policy."""
        hit = state.obsolete & candidates
        return [Group(hit, Score(obsolete=1))] if hit else []


PLUGINS: tuple[Plugin, ...] = (
    ClusterAffinity(),
    ClusterEligibility(),
    NamespaceAffinity(),
    TaintToleration(),
    SamePlacementAffinity(),
    TopologySpreadConstraints(),
)

FRAMEWORK = Framework(PLUGINS)
"""What decides about placements."""

ADMITTING = Framework(PLUGINS[:4])
"""What of it is about a cluster alone, whoever else is chosen."""
