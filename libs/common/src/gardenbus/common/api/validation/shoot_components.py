"""Bounds of what a Shoot says of its components. Source: Gardener's `pkg/api/core/validation/shoot.go`."""

from gardenbus.common.api.durations import parse_duration
from gardenbus.common.api.validation.field_cursor import FieldCursor

_KUBELET = {
    "maxPods": (0, None),
    "podPIDsLimit": (100, None),
    "evictionMaxPodGracePeriod": (0, None),
    "imageGCHighThresholdPercent": (0, 100),
    "imageGCLowThresholdPercent": (0, 100),
    "registryPullQPS": (0, None),
    "registryBurst": (0, None),
    "containerLogMaxFiles": (2, None),
}
"""Whole numbers of a kubelet, from and to which they go."""

_THRESHOLDS = ("scaleDownUtilizationThreshold", "scaleDownGpuUtilizationThreshold")
_TIMES = (
    "scaleDownUnneededTime",
    "scaleDownUnreadyTime",
    "maxNodeProvisionTime",
    "scaleDownDelayAfterAdd",
    "scaleDownDelayAfterDelete",
    "scaleDownDelayAfterFailure",
    "scanInterval",
)


def check_components(spec: FieldCursor) -> None:
    """Note numbers beyond their bounds in a Shoot's `spec.kubernetes`."""
    kubernetes = spec.section("kubernetes")
    check_kubelet(kubernetes.section("kubelet"))
    if spec.section("networking").content.get("ipFamilies") in (None, [], ["IPv4"]):
        kubernetes.section("kubeControllerManager").integer("nodeCIDRMaskSize", least=16, most=28)
    check_autoscaler(kubernetes.section("clusterAutoscaler"))


def check_kubelet(kubelet: FieldCursor) -> None:
    """Note numbers of a kubelet beyond their bounds."""
    for field, (least, most) in _KUBELET.items():
        kubelet.integer(field, least=least, most=most)


def check_autoscaler(options: FieldCursor) -> None:
    """Note thresholds of the cluster autoscaler that are no shares, and negative times."""
    for field in _THRESHOLDS:
        value = options.content.get(field)
        if isinstance(value, int | float) and not 0 <= value <= 1:
            options.add_error(field, f"must be from 0 to 1, not {value}")
    for field in _TIMES:
        text = options.text(field)
        if text is not None and _is_negative(text):
            options.add_error(field, f"must not be negative, and is {text}")


def _is_negative(text: str) -> bool:
    try:
        return parse_duration(text).total_seconds() < 0
    except ValueError:
        return False
