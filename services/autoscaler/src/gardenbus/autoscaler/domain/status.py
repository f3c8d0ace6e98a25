"""Status of a SeedAutoscaler."""

from collections.abc import Sequence
from datetime import datetime

from gardenbus.autoscaling.decision import ConditionValue, ScalingDecision
from gardenbus.autoscaling.resource_metrics import Measured
from gardenbus.autoscaling.seed_set import SeedSetState
from gardenbus.common.api.conditions import (
    FALSE,
    TRUE,
    build_condition,
    conditions_of,
    get_condition,
    get_or_init,
    merge_conditions,
)
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.seed_autoscalers import (
    ABLE_TO_SCALE,
    SCALING_ACTIVE,
    SCALING_LIMITED,
    persisted_status,
)
from gardenbus.common.ports.clock import timestamp

_SCALE_READ = ConditionValue(TRUE, "SucceededGetScale", "the set's scale could be read")


def with_decision(autoscaler: Document, decision: ScalingDecision, seeds: SeedSetState, now: datetime) -> Document:
    """The SeedAutoscaler with a decision in its status; equal to it when nothing changes."""
    status: Document = {name: value for name, value in section(autoscaler, "status").items() if name not in _REWRITTEN}
    status |= {
        "observedGeneration": section(autoscaler, "metadata").get("generation", 0),
        "currentReplicas": len(seeds.staying),
        "desiredReplicas": decision.desired,
        "pendingShoots": seeds.pending,
        "currentMetrics": [each.current for each in decision.proposal.measurements if isinstance(each, Measured)],
        **persisted_status(decision.memory),
    }
    if decision.memory.last_scale_time:
        status["lastScaleTime"] = decision.memory.last_scale_time
    able = get_condition(conditions_of(autoscaler), ABLE_TO_SCALE)
    condition_values = {SCALING_ACTIVE: decision.active, SCALING_LIMITED: decision.limited}
    if decision.able is not None or able is None:
        condition_values = {ABLE_TO_SCALE: decision.able or _SCALE_READ, **condition_values}
    status["conditions"] = _merged_conditions(conditions_of(autoscaler), condition_values, now)
    return {**autoscaler, "status": status}


def with_failure(autoscaler: Document, reason: str, message: str, now: datetime) -> Document:
    """The SeedAutoscaler when its set cannot be read or scaled; the rest of its status stays."""
    condition_values = {ABLE_TO_SCALE: ConditionValue(FALSE, reason, message)}
    status = {
        **section(autoscaler, "status"),
        "observedGeneration": section(autoscaler, "metadata").get("generation", 0),
        "conditions": _merged_conditions(conditions_of(autoscaler), condition_values, now),
    }
    return {**autoscaler, "status": status}


_REWRITTEN = frozenset({"targetReplicas", "recommendedReplicas", "recommendations", "scaleEvents", "rescale"})


def _merged_conditions(
    conditions: Sequence[Document], condition_values: dict[str, ConditionValue], now: datetime
) -> list[Document]:
    moment = timestamp(now)
    built = [
        build_condition(
            get_or_init(conditions, kind, moment),
            now=moment,
            status=condition_value.status,
            reason=condition_value.reason,
            message=condition_value.message,
        )[0]
        for kind, condition_value in condition_values.items()
    ]
    return merge_conditions(conditions, *built)
