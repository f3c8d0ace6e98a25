"""SeedAutoscalers: a typed view of what they ask for, with its defaults, and of what they remember in their status.

Metrics and behavior read as Kubernetes' HorizontalPodAutoscaler has them (autoscaling/v2); Gardener's proposal 13 took
the kind from there.
"""

from datetime import UTC, datetime
from fractions import Fraction

import msgspec

from gardenbus.common.resources.document import Document
from gardenbus.common.resources.quantities import parse_quantity
from gardenbus.common.resources.seeds import SHOOTS
from gardenbus.common.resources.views import Metadata, View, read_view

UTILIZATION = "Utilization"
AVERAGE_VALUE = "AverageValue"
DEFAULT_UTILIZATION = 80
"""Percent of their room that the seeds' shoots may take when no metrics are stated, as Kubernetes has it for CPU."""

PODS, REPLICAS, PERCENT = "Pods", "Replicas", "Percent"
"""Types of scaling policies. `Pods` is Kubernetes' word for a number of replicas, `Replicas` is ours for the same."""

MAX, MIN, DISABLED = "Max", "Min", "Disabled"
"""Which of several policies counts: the one that changes most, the one that changes least, or no change at all."""

ABLE_TO_SCALE = "AbleToScale"
SCALING_ACTIVE = "ScalingActive"
SCALING_LIMITED = "ScalingLimited"
"""Conditions of a SeedAutoscaler."""


class ScaleTargetRef(View, frozen=True):
    """Which set is scaled."""

    api_version: str = ""
    """The set's apiVersion."""

    kind: str = ""
    """`ManagedSeedSet`."""

    name: str = ""
    """Its name, in the same namespace."""


class MetricTarget(View, frozen=True):
    """What is aimed at: percent of the seeds' room, or an amount on each seed."""

    type: str = UTILIZATION
    """`Utilization` or `AverageValue`."""

    average_utilization: int | None = None
    """Percent of what the seeds have to be used on average."""

    average_value: str | int | float | None = None
    """How much of it on each seed."""

    @property
    def share(self) -> Fraction:
        """The part of the room that may be used."""
        return Fraction(self.average_utilization or DEFAULT_UTILIZATION, 100)

    @property
    def amount(self) -> Fraction:
        """The amount on each seed; 0 when none is stated. Raises ValueError when it is no quantity."""
        return Fraction(0) if self.average_value is None else parse_quantity(self.average_value)


class ResourceMetric(View, frozen=True):
    """A resource out of the seeds' allocatable, and its target."""

    name: str = ""
    """As `shoots`: what seeds state in `status.allocatable`."""

    target: MetricTarget = MetricTarget()


class Metric(View, frozen=True):
    """One measurement; only those of type `Resource` are known."""

    type: str = ""
    """`Resource`."""

    resource: ResourceMetric | None = None


class ScalingPolicy(View, frozen=True):
    """How much may change within a period: `value` replicas, or percent of those at its beginning."""

    type: str = ""
    """`Pods` (replicas) or `Percent`."""

    value: int = 0
    """How many, or how much."""

    period_seconds: int = 0
    """Within how long."""


class ScalingRules(View, frozen=True):
    """How fast it goes in one direction. Without policies there is no limit."""

    stabilization_window_seconds: int | None = None
    """How long back recommendations count: the most cautious of them is followed."""

    select_policy: str | None = None
    """`Max`, `Min` or `Disabled`."""

    policies: tuple[ScalingPolicy, ...] = ()
    tolerance: str | int | float | None = None
    """Which part of the target may be missed before anything happens."""

    def tolerance_or(self, default: Fraction) -> Fraction:
        """Which part of the target may be missed in this direction. Raises ValueError when it is no quantity."""
        return default if self.tolerance is None else parse_quantity(self.tolerance)


class Behavior(View, frozen=True):
    """How fast it goes up and down."""

    scale_up: ScalingRules = ScalingRules()
    scale_down: ScalingRules = ScalingRules()


_DEFAULT_METRICS = (Metric("Resource", ResourceMetric(SHOOTS, MetricTarget(UTILIZATION, DEFAULT_UTILIZATION))),)


class SeedAutoscalerSpec(View, frozen=True):
    """What a SeedAutoscaler asks for."""

    scale_target_ref: ScaleTargetRef = ScaleTargetRef()
    min_replicas: int = 1
    """Never fewer."""

    max_replicas: int = 1
    """Never more."""

    metrics: tuple[Metric, ...] = ()
    behavior: Behavior = Behavior()

    @property
    def measured(self) -> tuple[ResourceMetric, ...]:
        """The resources to be looked at: those stated, or how full of shoots the seeds are."""
        return tuple(metric.resource for metric in self.metrics or _DEFAULT_METRICS if metric.resource is not None)


class Recommendation(View, frozen=True):
    """How many replicas were right, and until when."""

    replicas: int = 0
    """How many."""

    until: datetime = datetime.min.replace(tzinfo=UTC)
    """Until when it counts."""


class ScaleEvent(View, frozen=True):
    """By how many replicas the set was made to change, and when that was seen."""

    change: int = 0
    """By how many."""

    at: datetime = datetime.min.replace(tzinfo=UTC)
    """When it was seen."""


class Rescale(View, frozen=True):
    """A change that was decided and is being carried out."""

    from_replicas: int = 0
    """Replicas before."""

    to_replicas: int = 0
    """Replicas after."""

    reason: str = ""
    """Why."""


class SeedAutoscalerStatus(View, frozen=True):
    """What a SeedAutoscaler remembers from one look to the next.

    `target_replicas` is the set's spec.replicas as last seen, `recommended_replicas` what the last look came to,
    `recommendations` what earlier ones came to that still counts, the newest last.
    """

    observed_generation: int = 0
    """The generation that this is about."""

    current_replicas: int | None = None
    """Replicas that are ready."""

    desired_replicas: int | None = None
    """Replicas that are wanted now."""

    last_scale_time: str | None = None
    """When the set was last asked to change."""

    target_replicas: int | None = None
    """The set's `spec.replicas` as last seen."""

    recommended_replicas: int | None = None
    """What the last look came to, before windows and policies."""

    recommendations: tuple[Recommendation, ...] = ()
    scale_events: tuple[ScaleEvent, ...] = ()
    rescale: Rescale | None = None


class SeedAutoscaler(View, frozen=True):
    """A SeedAutoscaler."""

    metadata: Metadata = Metadata()
    spec: SeedAutoscalerSpec = SeedAutoscalerSpec()
    status: SeedAutoscalerStatus = SeedAutoscalerStatus()

    @classmethod
    def from_document(cls, document: Document | bytes) -> "SeedAutoscaler":
        """Read the view; raises InvalidResource when a field has the wrong type."""
        return read_view(document, cls)


def micro_time(instant: datetime) -> str:
    """RFC 3339 in UTC to the microsecond, as Kubernetes' MicroTime, for instants that are compared."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def remembered(status: SeedAutoscalerStatus) -> Document:
    """What of the status is memory, as it is written; the fields that hold nothing are left out."""
    memory: Document = {}
    if status.target_replicas is not None:
        memory["targetReplicas"] = status.target_replicas
    if status.recommended_replicas is not None:
        memory["recommendedReplicas"] = status.recommended_replicas
    if status.recommendations:
        memory["recommendations"] = [
            {"replicas": each.replicas, "until": micro_time(each.until)} for each in status.recommendations
        ]
    if status.scale_events:
        memory["scaleEvents"] = [{"change": each.change, "at": micro_time(each.at)} for each in status.scale_events]
    if status.rescale is not None:
        memory["rescale"] = msgspec.to_builtins(status.rescale)
    return memory
