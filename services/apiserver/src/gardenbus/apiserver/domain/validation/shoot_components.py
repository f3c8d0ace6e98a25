"""Bounds of what a Shoot says of its components: `spec.kubernetes`, the same of a worker pool.

Source: Gardener's `pkg/api/core/validation/shoot.go`. Rules that hold for some versions of Kubernetes alone are in
`shoot_features`.
"""

import re

from gardenbus.apiserver.domain.validation.field_cursor import FieldCursor
from gardenbus.apiserver.domain.validation.issuers import issuer_problem
from gardenbus.apiserver.domain.validation.metadata import label_problem, qualified_name_problem, subdomain_problem
from gardenbus.apiserver.domain.validation.value_rules import (
    ValueRule,
    ValueRules,
    amount,
    amount_or_percent,
    amounts_of,
    check_values,
    lasting,
    of_section,
    one_of,
    share,
    whole,
)
from gardenbus.common.api.keys import RESERVED_TAINT
from gardenbus.common.api.shown_values import shown

_EXPANDERS = ("least-nodes", "least-waste", "most-pods", "priority", "random")
_EVICTIONS = ("memoryAvailable", "imageFSAvailable", "imageFSInodesFree", "nodeFSAvailable", "nodeFSInodesFree")


_ALLOW_LIST = "preloadedImagesVerificationAllowlist"
_ALLOW_LISTED = "NeverVerifyAllowlistedImages"
_VERIFICATION_POLICIES = ("AlwaysVerify", "NeverVerify", _ALLOW_LISTED, "NeverVerifyPreloadedImages")


def _evictions(rule: ValueRule) -> ValueRule:
    return of_section(dict.fromkeys(_EVICTIONS, rule))


_KUBELET: ValueRules = {
    "maxPods": whole(),
    "podPidsLimit": whole(100),
    "cpuManagerPolicy": one_of("none", "static"),
    "evictionMaxPodGracePeriod": whole(),
    "evictionPressureTransitionPeriod": lasting(),
    "evictionHard": _evictions(amount_or_percent),
    "evictionSoft": _evictions(amount_or_percent),
    "evictionSoftGracePeriod": _evictions(lasting()),
    "evictionMinimumReclaim": _evictions(amount()),
    "kubeReserved": of_section(dict.fromkeys(("cpu", "memory", "ephemeralStorage", "pid"), amount())),
    "imageMinimumGCAge": lasting(),
    "imageMaximumGCAge": lasting(),
    "imageGCHighThresholdPercent": whole(0, 100),
    "imageGCLowThresholdPercent": whole(0, 100),
    "registryPullQPS": whole(),
    "registryBurst": whole(),
    "containerLogMaxFiles": whole(2),
    "containerLogMaxSize": amount(),
    "streamingConnectionIdleTimeout": lasting("30s", "4h"),
    "maxParallelImagePulls": whole(1),
    "imagePullCredentialsVerificationPolicy": one_of(*_VERIFICATION_POLICIES),
    "memorySwap": of_section({"swapBehavior": one_of("NoSwap", "LimitedSwap")}),
}

_OPTIONS: ValueRules = {
    "scaleDownUtilizationThreshold": share(),
    "scaleDownGpuUtilizationThreshold": share(),
    "scaleDownUnneededTime": lasting(),
    "scaleDownUnreadyTime": lasting(),
    "maxNodeProvisionTime": lasting(),
}
"""Of the cluster autoscaler, also for a worker pool of its own."""


def _taint_keys(holder: FieldCursor, field: str) -> None:
    for path, key in holder.unique_texts(field, rule=qualified_name_problem):
        if key == RESERVED_TAINT:
            holder.errors.add_error(path, "is set and removed by the gardenlet alone")


def _expanders(holder: FieldCursor, field: str) -> None:
    for one in (holder.text(field) or "").split(","):
        if one not in _EXPANDERS:
            holder.add_error(field, f"must be of {', '.join(_EXPANDERS)}, not {one[:80]!r}")


def _control_plane_autoscaling(**least: str) -> ValueRule:
    """Rule of how a component of the control plane is scaled: from an amount of each resource."""
    rules = {name: amount(least.get(name, "0")) for name in ("cpu", "memory")}

    def check(holder: FieldCursor, field: str) -> None:
        autoscaling = holder.section(field)
        if not autoscaling.content.get("minAllowed"):
            autoscaling.add_error("minAllowed", "is needed: cpu, memory, or both")
        check_values(autoscaling, {"minAllowed": amounts_of(rules)})

    return check


_AUTOSCALER: ValueRules = {
    **_OPTIONS,
    **dict.fromkeys(("scaleDownDelayAfterAdd", "scaleDownDelayAfterDelete", "scaleDownDelayAfterFailure"), lasting()),
    **dict.fromkeys(("scanInterval", "newPodScaleUpDelay", "maxBinpackingTime"), lasting()),
    **dict.fromkeys(("initialNodeGroupBackoffDuration", "maxNodeGroupBackoffDuration"), lasting()),
    "nodeGroupBackoffResetTimeout": lasting(),
    **dict.fromkeys(("maxGracefulTerminationSeconds", "maxEmptyBulkDelete", "maxScaleDownParallelism"), whole()),
    **dict.fromkeys(("maxDrainParallelism", "verbosity"), whole()),
    "expander": _expanders,
    **dict.fromkeys(("startupTaints", "statusTaints", "ignoreTaints"), _taint_keys),
    "autoscaling": _control_plane_autoscaling(cpu="10m", memory="30M"),
}


def _check_cluster_autoscaler(autoscaler: FieldCursor) -> None:
    check_values(autoscaler, _AUTOSCALER)
    at_once, empty = (autoscaler.content.get(field) for field in ("maxScaleDownParallelism", "maxEmptyBulkDelete"))
    if at_once is not None and empty is not None and at_once != empty:
        autoscaler.add_error("maxEmptyBulkDelete", f"must be maxScaleDownParallelism ({at_once}), or be left out")


_POD_AUTOSCALER: ValueRules = {
    **dict.fromkeys(("evictAfterOOMThreshold", "updaterInterval", "recommenderInterval"), lasting()),
    **dict.fromkeys(("cpuHistogramDecayHalfLife", "memoryHistogramDecayHalfLife"), lasting()),
    "memoryAggregationInterval": lasting(),
    **dict.fromkeys(("evictionRateBurst", "memoryAggregationIntervalCount"), whole()),
    "recommenderUpdateWorkerCount": whole(1),
    **dict.fromkeys(("evictionTolerance", "recommendationMarginFraction"), share(below_one=True)),
    **{
        f"{bound}{resource}Percentile": share()
        for bound in ("target", "recommendationLowerBound", "recommendationUpperBound")
        for resource in ("CPU", "Memory")
    },
    "maxAllowed": amounts_of({"cpu": amount(), "memory": amount()}),
}


def _audiences(holder: FieldCursor, field: str) -> None:
    holder.unique_texts(field, rule=lambda audience: "must have no comma" if "," in audience else "")


def _encryption(holder: FieldCursor, field: str) -> None:
    configuration = holder.section(field)
    configuration.unique_texts("resources", rule=_encrypted_problem)
    configuration.section("provider").choice("type", ("aescbc", "aesgcm", "secretbox"))


def _encrypted_problem(resource: str) -> str:
    if resource != resource.lower() or "*" in resource or resource.endswith("."):
        return "must be a resource as configmaps or deployments.apps: no capitals, no *, no dot at the end"
    if resource in ("secrets", "secrets."):
        return "is always encrypted: leave it out"
    name, _, group = resource.partition(".")
    if name in ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations"):
        return "is no resource of the API: it cannot be encrypted"
    if group in ("events.k8s.io", "extensions"):
        return "nothing is stored in that group" + ": write events" * (group == "events.k8s.io")
    return ""


def _cache_sizes(holder: FieldCursor, field: str) -> None:
    for size in holder.section(field).entries("resources"):
        size.text("resource", required=True, rule=_cached_problem)
        size.text("apiGroup", rule=_cached_group_problem)
        size.integer("size", least=0)
    holder.section(field).integer("default", least=0)


def _cached_problem(resource: str) -> str:
    if resource != resource.lower() or set(resource) & set(",. #"):
        return "must be a resource as configmaps: no capitals, and none of comma, dot, space and #"
    return ""


def _cached_group_problem(group: str) -> str:
    if group != group.lower() or set(group) & set(", #"):
        return "must be an API group as apps: no capitals, and none of comma, space and #"
    return ""


def _audit(holder: FieldCursor, field: str) -> None:
    policy = holder.section(field).section("auditPolicy")
    if reference := policy.section("configMapRef"):
        reference.text("name", required=True, rule=subdomain_problem)
        reference.text("namespace", rule=label_problem)


def _structured(holder: FieldCursor, field: str) -> None:
    configuration = holder.section(field)
    configuration.text("configMapName", required=True)
    if field == "structuredAuthorization" and not configuration.content.get("kubeconfigs"):
        configuration.add_error("kubeconfigs", "is needed: the Secrets with the kubeconfigs of the authorizers")


def _service_accounts(holder: FieldCursor, field: str) -> None:
    accounts = holder.section(field)
    check_values(accounts, {"maxTokenExpiration": _token_lifetime})
    issuer = accounts.text("issuer", filled=True, rule=issuer_problem)
    for path, accepted in accounts.unique_texts("acceptedIssuers", rule=issuer_problem):
        if accepted == issuer:
            accounts.errors.add_error(path, "is the issuer itself: leave it out")


def _token_lifetime(holder: FieldCursor, field: str) -> None:
    if holder.content[field] not in (0, "0", "0s"):
        lasting("720h", "2160h")(holder, field)


_API_SERVER: ValueRules = {
    "requests": of_section({"maxNonMutatingInflight": whole(0, 5000), "maxMutatingInflight": whole(0, 2500)}),
    "logging": of_section({"verbosity": whole(), "httpAccessVerbosity": whole()}),
    "watchCacheSizes": _cache_sizes,
    "defaultNotReadyTolerationSeconds": whole(),
    "defaultUnreachableTolerationSeconds": whole(),
    "eventTTL": lasting("0s", "24h"),
    "tlsMinVersion": one_of("VersionTLS12", "VersionTLS13"),
    "serviceAccountConfig": _service_accounts,
    "auditConfig": _audit,
    **dict.fromkeys(("structuredAuthentication", "structuredAuthorization"), _structured),
    "apiAudiences": _audiences,
    "encryptionConfig": _encryption,
    "autoscaling": _control_plane_autoscaling(cpu="20m", memory="200M"),
}


def _above_zero(holder: FieldCursor, field: str) -> None:
    value: object = holder.content[field]
    if isinstance(value, int | float) and value <= 0:
        holder.add_error(field, f"must be above zero, and is {value}")


_POD_SCALING: ValueRules = {
    **dict.fromkeys(("syncPeriod", "downscaleStabilization", "cpuInitializationPeriod"), lasting("1s")),
    "initialReadinessDelay": lasting("1us"),
    "tolerance": _above_zero,
}
_CONTROLLER_MANAGER: ValueRules = {
    "nodeMonitorGracePeriod": lasting("1us"),
    "podEvictionTimeout": lasting("1us"),
    "horizontalPodAutoscaler": of_section(_POD_SCALING),
}


def _volumes_per_node(holder: FieldCursor, field: str) -> None:
    text = holder.text(field) or ""
    if not (text.isascii() and text.isdigit() and int(text[:20]) > 0):
        holder.add_error(field, f"must be a whole number above zero in quotes, not {text[:80]!r}")


_COLLECTION = (40, 50)
"""Defaults of a Shoot's kubelet. Source: Gardener's `defaults_shoot.go`."""

_COMPONENTS: ValueRules = {
    "kubelet": lambda holder, field: check_kubelet(holder.section(field), collection=_COLLECTION),
    "clusterAutoscaler": lambda holder, field: _check_cluster_autoscaler(holder.section(field)),
    "verticalPodAutoscaler": of_section(_POD_AUTOSCALER),
    "kubeAPIServer": of_section(_API_SERVER),
    "kubeControllerManager": of_section(_CONTROLLER_MANAGER),
    "kubeScheduler": of_section({"profile": one_of("balanced", "bin-packing"), "kubeMaxPDVols": _volumes_per_node}),
    "kubeProxy": of_section({"mode": one_of("IPTables", "IPVS", "NFTables")}),
    "etcd": of_section(
        {
            "main": of_section({"autoscaling": _control_plane_autoscaling(memory="300M")}),
            "events": of_section({"autoscaling": _control_plane_autoscaling(memory="60M")}),
        }
    ),
}


_BITS_OF_IPV4, _BITS_OF_IPV6 = 32, 128
DEFAULT_PODS = 110
"""Pods of a node whose kubelet states no other number."""


def check_components(spec: FieldCursor) -> None:
    """Note values beyond their bounds in a Shoot's `spec.kubernetes`."""
    check_values(spec.section("kubernetes"), _COMPONENTS)


def check_masks(spec: FieldCursor) -> None:
    """Note masks of the nodes' ranges that no family of the shoot has."""
    manager = spec.nested("kubernetes", "kubeControllerManager")
    families = spec.section("networking").content.get("ipFamilies")
    if families in (None, [], ["IPv4"]):
        manager.integer("nodeCIDRMaskSize", least=16, most=28)
        if manager.has("nodeCIDRMaskSizeIPv6"):
            manager.add_error("nodeCIDRMaskSizeIPv6", "is for shoots with IPv6: leave it out")
        return
    manager.integer("nodeCIDRMaskSizeIPv6", least=64, most=124)
    if families == ["IPv6"]:
        manager.integer("nodeCIDRMaskSize", least=64, most=124)
        if manager.has("nodeCIDRMaskSize") and manager.has("nodeCIDRMaskSizeIPv6"):
            manager.add_error("nodeCIDRMaskSize", "must not stand beside nodeCIDRMaskSizeIPv6 where all is IPv6")


def check_room_for_pods(spec: FieldCursor) -> None:
    """Note a mask that leaves a node fewer addresses than it may have pods (`ValidateNodeCIDRMaskWithMaxPod`)."""
    manager = spec.nested("kubernetes", "kubeControllerManager")
    mask = manager.content.get("nodeCIDRMaskSize")
    families = spec.section("networking").content.get("ipFamilies")
    bits = _BITS_OF_IPV6 if families == ["IPv6"] else _BITS_OF_IPV4
    if not isinstance(mask, int) or isinstance(mask, bool) or not 0 < mask <= bits:
        return
    pools = spec.section("provider").entries("workers")
    kubelets = [spec.section("kubernetes"), *(pool.section("kubernetes") for pool in pools)]
    stated = [most for one in kubelets if isinstance(most := one.section("kubelet").content.get("maxPods"), int)]
    most, addresses = max(stated, default=DEFAULT_PODS), 2 ** (bits - mask) - 2
    if addresses < most:
        manager.add_error(
            "nodeCIDRMaskSize", f"/{mask} leaves a node {addresses} addresses, and it may have {most} pods"
        )


_IMAGE = re.compile(
    r"(?:(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
)
"""An image without tag and digest, perhaps with its registry."""


def _preloaded_image_problem(image: str) -> str:
    """Problem of an entry of `preloadedImagesVerificationAllowlist`: an image, or a registry's path with `/*`."""
    if image != image.strip():
        return "must have no space at its ends"
    path = image.removesuffix("/*")
    if path != image:
        return "" if path and "*" not in path else "must have a registry before /*, and no other *"
    if "*" in image or not _IMAGE.fullmatch(image):
        return f"must be an image without tag and digest, or a path that ends with /*, not {shown(image)}"
    return ""


def _check_allow_list(kubelet: FieldCursor) -> None:
    if kubelet.content.get("imagePullCredentialsVerificationPolicy") != _ALLOW_LISTED:
        problem = f"is for the imagePullCredentialsVerificationPolicy {_ALLOW_LISTED} alone"
        kubelet.add_error(_ALLOW_LIST, problem)
        return
    for path, image in kubelet.texts(_ALLOW_LIST):
        if problem := _preloaded_image_problem(image):
            kubelet.errors.add_error(path, problem)


def check_kubelet(kubelet: FieldCursor, *, collection: tuple[int | None, int | None] = (None, None)) -> None:
    """Note values of a kubelet beyond their bounds, or at odds with each other.

    `collection`: low and high percents at which images are collected where none are stated.
    """
    content = kubelet.content
    if not content:
        return
    check_values(kubelet, _KUBELET)
    names = (f"imageGC{end}ThresholdPercent" for end in ("Low", "High"))
    low, high = (content.get(name, stated) for name, stated in zip(names, collection, strict=True))
    if isinstance(low, int) and isinstance(high, int) and low >= high:
        problem = f"must be below imageGCHighThresholdPercent ({high}), not {low}"
        kubelet.add_error("imageGCLowThresholdPercent", problem)
    pulls = content.get("maxParallelImagePulls")
    if content.get("serializeImagePulls") is True and isinstance(pulls, int) and pulls > 1:
        kubelet.add_error("maxParallelImagePulls", "must not be above 1 where serializeImagePulls is true")
    if kubelet.has(_ALLOW_LIST):
        _check_allow_list(kubelet)
    if not kubelet.has("memorySwap"):
        return
    swap = kubelet.section("memorySwap")
    if swap and content.get("failSwapOn") is not False:
        kubelet.add_error("memorySwap", "needs failSwapOn: false")
    if swap.has("swapBehavior") and kubelet.section("featureGates").content.get("NodeSwap") is not True:
        kubelet.add_error("memorySwap", "needs featureGates: {NodeSwap: true}")


def check_autoscaler(options: FieldCursor) -> None:
    """Note options of the cluster autoscaler for a pool that are no shares, and negative times."""
    check_values(options, _OPTIONS)
