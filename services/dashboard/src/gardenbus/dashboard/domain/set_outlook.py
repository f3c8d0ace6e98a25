"""A set of seeds in words: its rollout, and what its controllers do next. Pure.

The order is that of the controller of sets: the pending replica first, then too few, then too many, then the rollout.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gardenbus.common.api.conditions import FALSE, TRUE, condition_status, conditions_of, get_condition
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.managed_seed_sets import replica_name
from gardenbus.common.api.garden.rows import SetRow, autoscaler_row, number, set_row, text

SCALE_IN_BLOCKED = "ScaleInBlocked"


class Rollout(NamedTuple):
    """Progress of a changed template: replicas that have it, and the names of both revisions."""

    updated: int
    replicas: int
    current: str
    update: str

    @property
    def is_done(self) -> bool:
        """True when all replicas have the template."""
        return self.updated >= self.replicas


def rollout_of(seed_set: Document) -> Rollout:
    """Return the rollout of a ManagedSeedSet."""
    status, row = section(seed_set, "status"), set_row(seed_set)
    return Rollout(row.updated, row.replicas, text(status.get("currentRevision")), text(status.get("updateRevision")))


def next_of_set(seed_set: Document) -> str:
    """Return what the set's controller does now, or next."""
    row, rollout = set_row(seed_set), rollout_of(seed_set)
    if row.pending:
        return f"{row.pending}: {row.reason}" if row.reason else f"{row.pending} is in the making"
    if row.replicas < row.wanted:
        made = replica_name(seed_set, number(section(seed_set, "status").get("nextReplicaNumber")))
        return f"makes {made}: {row.replicas} of {row.wanted} seeds are there"
    if row.replicas > row.wanted:
        return _shrinking(seed_set, row)
    if not rollout.is_done:
        return f"rolls its template out: {rollout.updated} of {rollout.replicas} seeds have it"
    return "nothing: as many seeds as wanted are there, with its template"


def _shrinking(seed_set: Document, row: SetRow) -> str:
    blocked = get_condition(conditions_of(seed_set), SCALE_IN_BLOCKED)
    if blocked and blocked.get("status") == TRUE:
        return f"removes a seed as soon as it can: {text(blocked.get('message'))}"
    return f"removes a seed: {row.replicas} are there, {row.wanted} wanted"


def next_of_autoscaler(autoscaler: Document) -> Sequence[str]:
    """Return why an autoscaler wants the number that it wants, what keeps it from another, and what would change it."""
    row, conditions = autoscaler_row(autoscaler), conditions_of(autoscaler)
    if row.desired is None:
        return ["it has not decided yet"]
    found = [f"wants {row.desired}, between {row.least} and {row.most}: {row.reason}"]
    able = get_condition(conditions, "AbleToScale")
    if able and able.get("status") == FALSE:
        found.append(f"it cannot scale: {text(able.get('message'))}")
    if row.desired >= row.most:
        found.append(f"it has reached its maximum: shoots that need more wait until maxReplicas is above {row.most}")
    elif row.desired <= row.least and condition_status(conditions, "ScalingLimited") == TRUE:
        found.append(f"it has reached its minimum: fewer need minReplicas below {row.least}")
    if row.current is not None and row.desired != row.current:
        found.append(f"the set goes from {row.current} to {row.desired} seeds")
    return found
