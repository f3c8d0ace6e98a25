"""Kinds that only the placement service writes: clients read them, and change the objects that they come from.

A foreign write would interfere with the steps of a decision or of a rollout. Source: KubeFleet's webhook
`fleetresource`, which reserves these kinds for the fleet's own agents.
"""

from collections.abc import Mapping

from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import Forbidden

_SNAPSHOT = "the placement service keeps it of the placement: change the placement's spec"
_BINDING = (
    "the placement service decides on it: change the placement's policy, taint the cluster, or take the placement off "
    "one cluster with a ClusterResourcePlacementEviction"
)
_OVERRIDE = "the placement service keeps it of the override: change the override's spec"
_HINTS: Mapping[str, str] = {
    "clusterschedulingpolicysnapshot": _SNAPSHOT,
    "schedulingpolicysnapshot": _SNAPSHOT,
    "clusterresourcesnapshot": _SNAPSHOT,
    "resourcesnapshot": _SNAPSHOT,
    "clusterresourceoverridesnapshot": _OVERRIDE,
    "resourceoverridesnapshot": _OVERRIDE,
    "clusterresourcebinding": _BINDING,
    "resourcebinding": _BINDING,
    "work": "the placement service makes it of a binding: change the resources that the placement selects",
}

CONTROLLER_OWNED_KINDS = frozenset(_HINTS)
"""Their kinds, as in `ObjectKey.kind`."""


def reject_controller_owned(key: ObjectKey) -> None:
    """Raise Forbidden, with what to do instead, when requests may not write this object."""
    if hint := _HINTS.get(key.kind):
        raise Forbidden(f"kind: {key} is not written by requests: {hint}")
