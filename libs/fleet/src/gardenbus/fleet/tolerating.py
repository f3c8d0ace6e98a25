"""The plug-in TaintToleration: a cluster's taints keep a placement off unless it tolerates each.

Source: KubeFleet's `plugins/tainttoleration`.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from gardenbus.common.resources.member_clusters import Taint
from gardenbus.common.resources.placements import ClusterToleration
from gardenbus.fleet.framework import Code, CycleState, Status, Verdict
from gardenbus.fleet.masks import Mask


class TaintToleration:
    """Objects to the first taint that nothing tolerates."""

    name = "TaintToleration"

    def filter(self, state: CycleState, candidates: Mask) -> Iterable[Verdict]:
        """Objects to those with a taint that is not tolerated."""
        for taints, clusters in state.fleet.taints.items():
            if clusters & candidates and (taint := untolerated(taints, state.policy.tolerations)):
                yield Verdict(clusters & candidates, _not_tolerated(taint))


def untolerated(taints: Sequence[Taint], tolerations: Sequence[ClusterToleration]) -> Taint | None:
    """The first taint that no toleration covers; None when all are covered."""
    return next((taint for taint in taints if not any(tolerates(one, taint) for one in tolerations)), None)


def tolerates(toleration: ClusterToleration, taint: Taint) -> bool:
    """Whether a toleration covers a taint. `Exists` without a key covers every key, no effect covers every effect."""
    if toleration.effect not in ("", taint.effect):
        return False
    match toleration.operator:
        case "Exists":
            return toleration.key in ("", taint.key)
        case "Equal":
            return (toleration.key, toleration.value) == (taint.key, taint.value)
        case _:
            return False


@lru_cache(maxsize=4096)
def _not_tolerated(taint: Taint) -> Status:
    return Status(Code.UNSCHEDULABLE, f"TaintToleration: its taint {taint} is not tolerated")
