"""SeedAutoscalers: typed views of spec, with its defaults, and of the state in status.

Metrics and behavior are those of Kubernetes' HorizontalPodAutoscaler (autoscaling/v2); Gardener's proposal 13 adopted
them.
"""

from datetime import UTC, datetime
from fractions import Fraction

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.seeds import SHOOTS
from gardenbus.common.api.quantities import parse_quantity
from gardenbus.common.api.views import Metadata, TypedView

UTILIZATION = "Utilization"
AVERAGE_VALUE = "AverageValue"
DEFAULT_UTILIZATION = 80
"""Default utilization of the seeds in percent, as Kubernetes' for CPU."""

PODS, REPLICAS, PERCENT = "Pods", "Replicas", "Percent"
"""Types of scaling policies. `Pods` is Kubernetes' word for a number of replicas, `Replicas` is ours for the same."""

MAX, MIN, DISABLED = "Max", "Min", "Disabled"
"""Selection among policies: the largest change, the smallest change, or no change at all."""

ABLE_TO_SCALE = "AbleToScale"
SCALING_ACTIVE = "ScalingActive"
SCALING_LIMITED = "ScalingLimited"
"""Conditions of a SeedAutoscaler."""


class ScaleTargetRef(TypedView, frozen=True):
    """Reference to the scaled set."""

    api_version: str = ""
    """The set's apiVersion."""

    kind: str = ""
    """`ManagedSeedSet`."""

    name: str = ""
    """Its name, in the same namespace."""


class MetricTarget(TypedView, frozen=True):
    """Target of a metric: percent of the seeds' capacity, or an amount on each seed."""

    type: str = UTILIZATION
    """`Utilization` or `AverageValue`."""

    average_utilization: int | None = None
    """Average utilization of the seeds' capacity in percent."""

    average_value: str | int | float | None = None
    """Amount on each seed."""

    @property
    def share(self) -> Fraction:
        """Utilization as a fraction."""
        return Fraction(self.average_utilization or DEFAULT_UTILIZATION, 100)

    @property
    def amount(self) -> Fraction:
        """The amount on each seed; 0 when none is stated. Raises ValueError when it is no quantity."""
        return Fraction(0) if self.average_value is None else parse_quantity(self.average_value)


class ResourceMetric(TypedView, frozen=True):
    """A resource out of the seeds' allocatable, and its target."""

    name: str = ""
    """As `shoots`: what seeds state in `status.allocatable`."""

    target: MetricTarget = MetricTarget()


class Metric(TypedView, frozen=True):
    """A metric; only type `Resource` is supported."""

    type: str = ""
    """`Resource`."""

    resource: ResourceMetric | None = None


class ScalingPolicy(TypedView, frozen=True):
    """Largest change within a period: `value` replicas, or percent of those at its beginning."""

    type: str = ""
    """`Pods` (replicas) or `Percent`."""

    value: int = 0
    """Number of replicas, or percent."""

    period_seconds: int = 0
    """Length of the period."""


class ScalingRules(TypedView, frozen=True):
    """Scaling rules of one direction. Without policies there is no limit."""

    stabilization_window_seconds: int | None = None
    """Window of recommendations, of which the most cautious is applied."""

    select_policy: str | None = None
    """`Max`, `Min` or `Disabled`."""

    policies: tuple[ScalingPolicy, ...] = ()
    tolerance: str | int | float | None = None
    """Deviation from the target, as a part of it, that changes nothing."""

    def tolerance_or(self, default: Fraction) -> Fraction:
        """Deviation in this direction that changes nothing. Raises ValueError when it is no quantity."""
        return default if self.tolerance is None else parse_quantity(self.tolerance)


class Behavior(TypedView, frozen=True):
    """Scaling rules up and down."""

    scale_up: ScalingRules = ScalingRules()
    scale_down: ScalingRules = ScalingRules()


_DEFAULT_METRICS = (Metric("Resource", ResourceMetric(SHOOTS, MetricTarget(UTILIZATION, DEFAULT_UTILIZATION))),)


class SeedAutoscalerSpec(TypedView, frozen=True):
    """Spec of a SeedAutoscaler."""

    scale_target_ref: ScaleTargetRef = ScaleTargetRef()
    min_replicas: int = 1
    """Least number of replicas."""

    max_replicas: int = 1
    """Largest number of replicas."""

    metrics: tuple[Metric, ...] = ()
    behavior: Behavior = Behavior()

    @property
    def measured(self) -> tuple[ResourceMetric, ...]:
        """Resources that are measured: those stated, else the number of shoots."""
        return tuple(metric.resource for metric in self.metrics or _DEFAULT_METRICS if metric.resource is not None)


class Recommendation(TypedView, frozen=True):
    """A recommended number of replicas, and the end of its window."""

    replicas: int = 0
    """Number of replicas."""

    until: datetime = datetime.min.replace(tzinfo=UTC)
    """End of its validity."""


class ScaleEvent(TypedView, frozen=True):
    """A change of the set's replicas, and the time of its observation."""

    change: int = 0
    """Difference of replicas."""

    at: datetime = datetime.min.replace(tzinfo=UTC)
    """Time of the observation."""


class Rescale(TypedView, frozen=True):
    """A change in progress."""

    from_replicas: int = 0
    """Replicas before."""

    to_replicas: int = 0
    """Replicas after."""

    reason: str = ""
    """Reason of the change."""


class SeedAutoscalerStatus(TypedView, frozen=True):
    """Status of a SeedAutoscaler, with its state between reconciles.

    `target_replicas` is the last observed spec.replicas of the set, `recommended_replicas` the result of the last
    reconcile, `recommendations` earlier results within their windows, the newest last.
    """

    observed_generation: int = 0
    """Observed generation."""

    current_replicas: int | None = None
    """Replicas that are ready."""

    desired_replicas: int | None = None
    """Desired replicas."""

    last_scale_time: str | None = None
    """Time of the last scaling."""

    target_replicas: int | None = None
    """Last observed `spec.replicas` of the set."""

    recommended_replicas: int | None = None
    """Result of the last reconcile, before windows and policies."""

    recommendations: tuple[Recommendation, ...] = ()
    scale_events: tuple[ScaleEvent, ...] = ()
    rescale: Rescale | None = None


class SeedAutoscaler(TypedView, frozen=True):
    """A SeedAutoscaler."""

    metadata: Metadata = Metadata()
    spec: SeedAutoscalerSpec = SeedAutoscalerSpec()
    status: SeedAutoscalerStatus = SeedAutoscalerStatus()


def micro_time(instant: datetime) -> str:
    """RFC 3339 in UTC to the microsecond, as Kubernetes' MicroTime, for instants that are compared."""
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def persisted_status(status: SeedAutoscalerStatus) -> Document:
    """State fields of the status as they are written; empty ones are left out."""
    fields: Document = {}
    if status.target_replicas is not None:
        fields["targetReplicas"] = status.target_replicas
    if status.recommended_replicas is not None:
        fields["recommendedReplicas"] = status.recommended_replicas
    if status.recommendations:
        fields["recommendations"] = [
            {"replicas": each.replicas, "until": micro_time(each.until)} for each in status.recommendations
        ]
    if status.scale_events:
        fields["scaleEvents"] = [{"change": each.change, "at": micro_time(each.at)} for each in status.scale_events]
    if status.rescale is not None:
        fields["rescale"] = msgspec.to_builtins(status.rescale)
    return fields
