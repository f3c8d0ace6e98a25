"""Sets of seeds in numbers, and autoscalers over them, for tests of decisions."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import msgspec

from gardenbus.autoscaling.decision import ScalingDecision, decide
from gardenbus.autoscaling.resource_metrics import Measured
from gardenbus.autoscaling.seed_set import ReplicaState, SeedSetState
from gardenbus.common.api.configuration.seed_autoscaler import Pace
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.seed_autoscalers import SeedAutoscalerSpec, SeedAutoscalerStatus

START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
API = "seedmanagement.gardener.cloud/v1alpha1"


def a_metric(name: str = "shoots", *, utilization: int | None = None, amount: str | None = None) -> Document:
    """A Resource metric: percent of the room, or an amount on each seed."""
    target: Document = {"type": "Utilization", "averageUtilization": utilization or 80}
    if amount is not None:
        target = {"type": "AverageValue", "averageValue": amount}
    return {"type": "Resource", "resource": {"name": name, "target": target}}


def a_spec(**fields: Any) -> SeedAutoscalerSpec:
    """From 1 to 10 replicas at 80 % of the capacity for shoots, and down at once, unless stated otherwise."""
    at_once = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    manifest = {"minReplicas": 1, "maxReplicas": 10, "metrics": [a_metric()], "behavior": at_once, **fields}
    return msgspec.convert(manifest, SeedAutoscalerSpec)


def a_built_replica(places: float = 10, **changes: Any) -> ReplicaState:
    """A replica whose seed is ready and accepts so many shoots."""
    fields: dict[str, Any] = {"name": "a", "allocatable": {"shoots": Fraction(str(places))}, **changes}
    return ReplicaState(**fields)


def a_set(built: int = 1, *, building: int = 0, places: float = 10, **changes: Any) -> SeedSetState:
    """A set with as many replicas as were ordered, all of one size."""
    replicas = [a_built_replica(places, name=f"seed-{number}") for number in range(built)]
    replicas += [ReplicaState(name=f"new-{number}", is_built=False) for number in range(building)]
    fields: dict[str, Any] = {
        "ordered": built + building,
        "replicas": replicas,
        "new_seed": {"shoots": Fraction(str(places))},
        **changes,
    }
    return SeedSetState(**fields)


def with_ordered(seeds: SeedSetState, ordered: int, places: float = 10) -> SeedSetState:
    """The same load on a set that has got its replicas, all built."""
    return a_set(ordered, places=places, shoots=seeds.shoots, pending=seeds.pending)


class AutoscalerDriver:
    """Decides again and again, and records the decisions as made at once."""

    def __init__(self, spec: SeedAutoscalerSpec, pace: Pace = Pace()) -> None:  # noqa: B008
        self.spec = spec
        self.pace = pace
        self.memory = SeedAutoscalerStatus()
        self.now = START

    def reconcile_once(self, seeds: SeedSetState, *, after: float = 0) -> ScalingDecision:
        self.now += timedelta(seconds=after)
        decision = decide(self.spec, self.memory, seeds, self.now, self.pace)
        self.memory = decision.memory
        return decision


def currents(decision: ScalingDecision) -> list[Document]:
    """The measured values, as in the status."""
    return [each.current["resource"] for each in decision.proposal.measurements if isinstance(each, Measured)]


def desired(seeds: SeedSetState, spec: SeedAutoscalerSpec | None = None) -> int:
    """Desired replicas of a first decision, no window holding it back."""
    return AutoscalerDriver(spec or a_spec()).reconcile_once(seeds).desired


def an_autoscaler(name: str = "grove", **spec: Any) -> Document:
    """The manifest of a SeedAutoscaler of the set of its name."""
    return {
        "apiVersion": API,
        "kind": "SeedAutoscaler",
        "metadata": {"name": name, "namespace": "garden"},
        "spec": {
            "scaleTargetRef": {"apiVersion": API, "kind": "ManagedSeedSet", "name": name},
            "minReplicas": 1,
            "maxReplicas": 8,
            "metrics": [a_metric()],
            **spec,
        },
    }
