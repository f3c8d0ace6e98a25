"""The rules of a SeedAutoscaler: what it scales, within which bounds, by which measurements.

Source: Gardener's proposal 13 (automated seed management), which defines the kind after the HorizontalPodAutoscaler.
"""

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor, unique
from gardenbus.apiserver.domain.validation.managed_seed import check_garden_namespace
from gardenbus.apiserver.domain.validation.metadata import label_problem, qualified_name_problem
from gardenbus.apiserver.domain.validation.shared import check_quantity
from gardenbus.apiserver.domain.validation.status import check_status
from gardenbus.common.api.document import Document
from gardenbus.common.api.kinds import SEED_MANAGEMENT

TARGETS = ("Utilization", "AverageValue")
DIRECTIONS = ("scaleUp", "scaleDown")
SELECTIONS = ("Max", "Min", "Disabled")
POLICIES = ("Replicas", "Pods", "Percent")
"""`Pods` is what the HorizontalPodAutoscaler calls replicas."""

_LONGEST_WINDOW = 3600
_LONGEST_PERIOD = 1800
_MOST_PERCENT = 100
_LEAST_REPLICAS = 1


def check(manifest: FieldCursor, _old: Document | None) -> None:
    """Note every problem of a SeedAutoscaler."""
    check_garden_namespace(manifest, "a SeedAutoscaler, as the set that it scales,")
    check_status(manifest)
    spec = manifest.section("spec", required=True)
    _check_target(spec)
    least = spec.integer("minReplicas", least=0)
    most = spec.integer("maxReplicas", least=1, required=True)
    least = _LEAST_REPLICAS if least is None else least
    if most is not None and most < least:
        spec.add_error("maxReplicas", f"must not be below minReplicas ({least}), but is {most}")
    _check_metrics(spec)
    for direction in DIRECTIONS:
        _check_scaling_rules(spec.nested("behavior", direction))


def _check_target(spec: FieldCursor) -> None:
    target = spec.section("scaleTargetRef", required=True)
    target.choice("kind", ("ManagedSeedSet",), required=True)
    target.text("name", required=True, rule=label_problem)
    api_version = target.text("apiVersion")
    if api_version and api_version.rpartition("/")[0] != SEED_MANAGEMENT:
        target.add_error("apiVersion", f"must be {SEED_MANAGEMENT}/v1alpha1, not {api_version[:80]}")


def _check_metrics(spec: FieldCursor) -> None:
    resources: list[FieldCursor] = []
    for metric in spec.entries("metrics"):
        metric.choice("type", ("Resource",), required=True)
        resource = metric.section("resource", required=True)
        resources.append(resource)
        resource.text("name", required=True, rule=qualified_name_problem)
        _check_measure(resource.section("target", required=True))
    unique(resources, "name")


def _check_scaling_rules(scaling_rules: FieldCursor) -> None:
    """Check scaling rules of one direction. Source: Kubernetes' `validateScalingRules` of autoscaling/v2."""
    scaling_rules.integer("stabilizationWindowSeconds", least=0, most=_LONGEST_WINDOW)
    scaling_rules.choice("selectPolicy", SELECTIONS)
    if scaling_rules.has("tolerance"):
        check_quantity(scaling_rules, "tolerance")
    policies = scaling_rules.entries("policies")
    if scaling_rules.content.get("policies") == []:
        scaling_rules.add_error("policies", "must not be empty: state one, or leave the field out")
    for policy in policies:
        policy.choice("type", POLICIES, required=True)
        policy.integer("value", least=1, required=True)
        policy.integer("periodSeconds", least=1, most=_LONGEST_PERIOD, required=True)


def _check_measure(target: FieldCursor) -> None:
    match target.choice("type", TARGETS, required=True):
        case "Utilization":
            target.integer("averageUtilization", least=1, most=_MOST_PERCENT, required=True)
        case "AverageValue":
            number = check_quantity(target, "averageValue")
            if number == 0:
                target.add_error("averageValue", "must be above zero")
        case _:
            pass
