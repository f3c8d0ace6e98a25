"""What is written into a SeedAutoscaler's status."""

from collections.abc import Sequence
from datetime import datetime

from gardenbus.autoscaler.decide.autoscaling import Decision, Finding
from gardenbus.autoscaler.decide.landscape import SetOfSeeds
from gardenbus.autoscaler.decide.metrics import Measured
from gardenbus.common.ports.clock import timestamp
from gardenbus.common.resources.conditions import (
    FALSE,
    TRUE,
    build_condition,
    conditions_of,
    get_condition,
    get_or_init,
    merge_conditions,
)
from gardenbus.common.resources.document import Document, section
from gardenbus.common.resources.seed_autoscalers import (
    ABLE_TO_SCALE,
    SCALING_ACTIVE,
    SCALING_LIMITED,
    remembered,
)

_NOT_YET = Finding(TRUE, "SucceededGetScale", "the set's scale could be read")


def with_decision(autoscaler: Document, decision: Decision, seeds: SetOfSeeds, now: datetime) -> Document:
    """The SeedAutoscaler with what was decided in its status; equal to it when nothing is new."""
    status: Document = {
        name: value for name, value in section(autoscaler, "status").items() if name not in _WRITTEN_ANEW
    }
    status |= {
        "observedGeneration": section(autoscaler, "metadata").get("generation", 0),
        "currentReplicas": len(seeds.staying),
        "desiredReplicas": decision.desired,
        "pendingShoots": seeds.pending,
        "currentMetrics": [each.current for each in decision.need.measurements if isinstance(each, Measured)],
        **remembered(decision.memory),
    }
    if decision.memory.last_scale_time:
        status["lastScaleTime"] = decision.memory.last_scale_time
    able = get_condition(conditions_of(autoscaler), ABLE_TO_SCALE)
    findings = {SCALING_ACTIVE: decision.active, SCALING_LIMITED: decision.limited}
    if decision.able is not None or able is None:
        findings = {ABLE_TO_SCALE: decision.able or _NOT_YET, **findings}
    status["conditions"] = _concluded(conditions_of(autoscaler), findings, now)
    return {**autoscaler, "status": status}


def with_failure(autoscaler: Document, reason: str, message: str, now: datetime) -> Document:
    """The SeedAutoscaler when its set cannot be read or scaled; all else that its status says stays."""
    findings = {ABLE_TO_SCALE: Finding(FALSE, reason, message)}
    status = {
        **section(autoscaler, "status"),
        "observedGeneration": section(autoscaler, "metadata").get("generation", 0),
        "conditions": _concluded(conditions_of(autoscaler), findings, now),
    }
    return {**autoscaler, "status": status}


_WRITTEN_ANEW = frozenset({"targetReplicas", "recommendedReplicas", "recommendations", "scaleEvents", "rescale"})


def _concluded(conditions: Sequence[Document], findings: dict[str, Finding], now: datetime) -> list[Document]:
    moment = timestamp(now)
    built = [
        build_condition(
            get_or_init(conditions, kind, moment),
            now=moment,
            status=finding.status,
            reason=finding.reason,
            message=finding.message,
        )[0]
        for kind, finding in findings.items()
    ]
    return merge_conditions(conditions, *built)
