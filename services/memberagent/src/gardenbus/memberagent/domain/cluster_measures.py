"""Properties and resource usage of a cluster, from its nodes and pods.

Source: KubeFleet's `pkg/propertyprovider` (the default provider): nodes count with all they have; free
is what the requests of pods on nodes leave.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

from gardenbus.agent.domain.documents import mappings
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.quantities import parse_quantity

NODE_COUNT = "kubernetes-fleet.io/node-count"
KUBERNETES_VERSION = "k8s.io/k8s-version"
RESOURCES = ("cpu", "memory")
_ENDED = ("Succeeded", "Failed")
_UNITS = {"cpu": ("m", Fraction(1, 1000)), "memory": ("Ki", Fraction(1024))}


def properties_of(version: str, nodes: Sequence[Document]) -> dict[str, str]:
    """Kubernetes' version and the number of nodes."""
    return {NODE_COUNT: str(len(nodes)), **({KUBERNETES_VERSION: version} if version else {})}


def usage_of(nodes: Sequence[Document], pods: Iterable[Document]) -> dict[str, dict[str, str]]:
    """`capacity`, `allocatable` and `available` of cpu and memory."""
    capacity = _sum(section(node, "status", "capacity") for node in nodes)
    allocatable = _sum(section(node, "status", "allocatable") for node in nodes)
    requested = _sum(_requests(pod) for pod in pods if _counts(pod))
    available = {name: max(Fraction(0), allocatable[name] - requested[name]) for name in RESOURCES}
    amounts = {"capacity": capacity, "allocatable": allocatable, "available": available}
    return {field: {name: _text(name, each[name]) for name in RESOURCES} for field, each in amounts.items()}


def _counts(pod: Document) -> bool:
    return bool(section(pod, "spec").get("nodeName")) and section(pod, "status").get("phase") not in _ENDED


def _requests(pod: Document) -> Mapping[str, Any]:
    """Requests of a pod: the sum of its containers, or the largest init container's, and its overhead."""
    spec = section(pod, "spec")
    running = _sum(section(each, "resources", "requests") for each in mappings(spec, "containers"))
    starting = [_sum([section(each, "resources", "requests")]) for each in mappings(spec, "initContainers")]
    overhead = _sum([section(spec, "overhead")])
    return {
        name: max(running[name], *(each[name] for each in starting), Fraction(0)) + overhead[name] for name in RESOURCES
    }


def _sum(amounts: Iterable[Mapping[str, Any]]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {name: Fraction(0) for name in RESOURCES}
    for each in amounts:
        for name in RESOURCES:
            total[name] += _quantity(each.get(name))
    return total


def _quantity(value: Any) -> Fraction:
    """A quantity; nothing for one that is missing, or cannot be read."""
    if isinstance(value, Fraction):
        return value
    try:
        return Fraction(parse_quantity(cast("str", value))) if value is not None else Fraction(0)
    except ValueError:
        return Fraction(0)


def _text(name: str, amount: Fraction) -> str:
    """A quantity in whole units if it is one, else in the resource's small unit, rounded down."""
    unit, size = _UNITS[name]
    if name == "cpu" and amount.denominator == 1:
        return str(int(amount))
    return f"{int(amount / size)}{unit}"
