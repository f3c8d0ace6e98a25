"""The rules of a SeedAutoscaler: what it scales, within which bounds, by which measurements.

Source: Gardener's proposal 13 (automated seed management), which defines the kind after the HorizontalPodAutoscaler.
"""

from gardenbus.apiserver.decide.fields import Place, unique
from gardenbus.apiserver.decide.metadata import label_problem, qualified_name_problem
from gardenbus.apiserver.decide.validators.managed_seed import check_garden_namespace
from gardenbus.apiserver.decide.validators.scheduling import check_quantity
from gardenbus.apiserver.decide.validators.status import check_status
from gardenbus.common.resources.document import Document
from gardenbus.common.resources.kinds import SEED_MANAGEMENT

TARGETS = ("Utilization", "AverageValue")
DIRECTIONS = ("scaleUp", "scaleDown")
SELECTIONS = ("Max", "Min", "Disabled")
POLICIES = ("Replicas", "Pods", "Percent")
"""`Pods` is what the HorizontalPodAutoscaler calls replicas."""

_LONGEST_WINDOW = 3600
_LONGEST_PERIOD = 1800
_MOST_PERCENT = 100
_LEAST_REPLICAS = 1


def check(manifest: Place, old: Document | None) -> None:
    """Note every problem of a SeedAutoscaler."""
    _ = old
    check_garden_namespace(manifest, "a SeedAutoscaler, as the set that it scales,")
    check_status(manifest)
    spec = manifest.section("spec", required=True)
    if spec is None:
        return
    _check_target(spec)
    least = spec.integer("minReplicas", least=0)
    most = spec.integer("maxReplicas", least=1, required=True)
    least = _LEAST_REPLICAS if least is None else least
    if most is not None and most < least:
        spec.note("maxReplicas", f"must not be below minReplicas ({least}), but is {most}")
    _check_metrics(spec)
    _check_behavior(spec)


def _check_target(spec: Place) -> None:
    target = spec.section("scaleTargetRef", required=True)
    if target is None:
        return
    target.choice("kind", ("ManagedSeedSet",), required=True)
    if (name := target.text("name", required=True)) and (problem := label_problem(name)):
        target.note("name", problem)
    api_version = target.text("apiVersion")
    if api_version and api_version.rpartition("/")[0] != SEED_MANAGEMENT:
        target.note("apiVersion", f"must be {SEED_MANAGEMENT}/v1alpha1, not {api_version[:80]}")


def _check_metrics(spec: Place) -> None:
    resources: list[Place] = []
    for metric in spec.entries("metrics"):
        metric.choice("type", ("Resource",), required=True)
        resource = metric.section("resource", required=True)
        if resource is None:
            continue
        resources.append(resource)
        if (name := resource.text("name", required=True)) and (problem := qualified_name_problem(name)):
            resource.note("name", problem)
        if target := resource.section("target", required=True):
            _check_measure(target)
    unique(resources, "name")


def _check_behavior(spec: Place) -> None:
    behavior = spec.section("behavior")
    if behavior is None:
        return
    for direction in DIRECTIONS:
        if rules := behavior.section(direction):
            _check_rules(rules)


def _check_rules(rules: Place) -> None:
    """How fast it may go in one direction. Source: Kubernetes' `validateScalingRules` of autoscaling/v2."""
    rules.integer("stabilizationWindowSeconds", least=0, most=_LONGEST_WINDOW)
    rules.choice("selectPolicy", SELECTIONS)
    if rules.has("tolerance"):
        check_quantity(rules, "tolerance")
    policies = rules.entries("policies")
    if rules.content.get("policies") == []:
        rules.note("policies", "must not be empty: state one, or leave the field out")
    for policy in policies:
        policy.choice("type", POLICIES, required=True)
        policy.integer("value", least=1, required=True)
        policy.integer("periodSeconds", least=1, most=_LONGEST_PERIOD, required=True)


def _check_measure(target: Place) -> None:
    match target.choice("type", TARGETS, required=True):
        case "Utilization":
            target.integer("averageUtilization", least=1, most=_MOST_PERCENT, required=True)
        case "AverageValue":
            number = check_quantity(target, "averageValue")
            if number == 0:
                target.note("averageValue", "must be above zero")
        case _:
            pass
