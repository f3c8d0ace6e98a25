"""The plug-in TaintToleration: rejects clusters with a taint that the policy does not tolerate.

Source: KubeFleet's `plugins/tainttoleration`.
"""

from collections.abc import Iterable, Sequence

from gardenbus.common.api.bitsets import Bitset
from gardenbus.common.api.fleet.member_clusters import ClusterTaint
from gardenbus.common.api.fleet.placements import ClusterToleration
from gardenbus.common.api.short_cache import short_cache
from gardenbus.fleet.framework import Code, CycleState, FilterResult, Status


class TaintTolerationPlugin:
    """Rejects clusters by their first untolerated taint."""

    name = "TaintToleration"

    def filter(self, state: CycleState, candidates: Bitset) -> Iterable[FilterResult]:
        """Reject clusters with an untolerated taint."""
        for taints, clusters in state.fleet.taints.items():
            if clusters & candidates and (taint := untolerated(taints, state.policy.tolerations)):
                yield FilterResult(clusters & candidates, _untolerated_status(taint))


def untolerated(taints: Sequence[ClusterTaint], tolerations: Sequence[ClusterToleration]) -> ClusterTaint | None:
    """Return the first taint that no toleration covers; None when all are covered."""
    return next((taint for taint in taints if not any(tolerates(one, taint) for one in tolerations)), None)


def tolerates(toleration: ClusterToleration, taint: ClusterTaint) -> bool:
    """Report whether a toleration covers a taint. `Exists` without a key covers every key, no effect every effect."""
    if toleration.effect not in ("", taint.effect):
        return False
    match toleration.operator:
        case "Exists":
            return toleration.key in ("", taint.key)
        case "Equal":
            return (toleration.key, toleration.value) == (taint.key, taint.value)
        case _:
            return False


@short_cache(4096)
def _untolerated_status(taint: ClusterTaint) -> Status:
    return Status(Code.UNSCHEDULABLE, f"TaintToleration: its taint {taint} is not tolerated")
