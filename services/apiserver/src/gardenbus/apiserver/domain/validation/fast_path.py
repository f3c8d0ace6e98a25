"""Fast path of validation: one typed conversion accepts a common new Shoot.

The rules (metadata.py, shoot.py) accept whatever this accepts, and are skipped then. Everything else,
invalid or unusual, goes through the rules, which know every form and report what is wrong. A rule that is added there
needs its counterpart here, or its field a type that no value has (`None`).
"""

from collections.abc import Hashable, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from gardenbus.apiserver.domain.validation.limits import MOST_MACHINES
from gardenbus.common.api.document import Document, section
from gardenbus.common.api.garden.maintenance_windows import window_problems
from gardenbus.common.api.garden.scheduling_requirements import REQUIREMENTS
from gardenbus.common.api.garden.shoot_operations import FORCE_DELETION, OPERATIONS
from gardenbus.common.api.keys import RESERVED_TAINT
from gardenbus.common.api.networks import ip_family_of, is_canonical, overlap

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_MOST_ANNOTATIONS = 256 * 1024
_WATCHED_ANNOTATIONS = {*OPERATIONS, FORCE_DELETION, REQUIREMENTS}

_Text = Annotated[str, Meta(min_length=1)]
_Label = Annotated[str, Meta(max_length=63, pattern=rf"\A{_LABEL}\Z")]
_Subdomain = Annotated[str, Meta(max_length=253, pattern=rf"\A{_SUBDOMAIN}\Z")]
_QualifiedKey = Annotated[str, Meta(max_length=253, pattern=rf"\A({_SUBDOMAIN}/)?{_QUALIFIED}\Z")]
_QualifiedName = Annotated[str, Meta(max_length=63, pattern=rf"\A{_QUALIFIED}\Z")]
_LabelValue = Annotated[str, Meta(max_length=63, pattern=rf"\A({_QUALIFIED})?\Z")]
_NODE_MASK, _ADDRESSES_OF_A_NODE = 24, 254
"""Masks up to this one leave a node so many addresses for its pods; others are checked with what it may have."""

_Count = Annotated[int, Meta(ge=0, le=MOST_MACHINES)]
_Period = Annotated[str, Meta(pattern=r"\A[1-9][0-9]{0,3}(s|m|m0s|h|h0m0s)\Z")]
_Version = Annotated[str, Meta(pattern=r"\A([0-9]+(\.[0-9]+){0,2})?\Z")]
_HoursOfDay = Annotated[str, Meta(pattern=r"\A([1-9]|1[0-9]|2[0-4])h(0m0s)?\Z")]


class _ManifestPart(Struct, frozen=True, gc=False, rename="camel"):
    """A mapping in a manifest; fields that are not named here may be anything."""


class _Metadata(_ManifestPart, frozen=True):
    name: _Label
    namespace: _Label
    labels: dict[_QualifiedKey, _LabelValue] | None = None
    annotations: dict[_QualifiedKey, str] | None = None
    finalizers: None = None
    owner_references: None = None
    uid: str | None = None
    resource_version: str | None = None
    generate_name: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class _Profile(_ManifestPart, frozen=True):
    name: _Text
    kind: Literal["CloudProfile", "NamespacedCloudProfile"] | None = None


class _Image(_ManifestPart, frozen=True):
    name: _Text


class _Machine(_ManifestPart, frozen=True):
    type: _Text
    architecture: Literal["amd64", "arm64"] | None = None
    image: _Image | None = None


class _CRI(_ManifestPart, frozen=True):
    name: Literal["containerd"]
    container_runtimes: None = None


class _Volume(_ManifestPart, frozen=True):
    size: Annotated[str, Meta(pattern=r"\A[0-9]+Gi\Z")]
    name: None = None


class _Kubelet(_ManifestPart, frozen=True, forbid_unknown_fields=True):
    max_pods: Annotated[int, Meta(ge=0, le=_ADDRESSES_OF_A_NODE)] | None = None
    fail_swap_on: bool | None = None
    serialize_image_pulls: bool | None = None


class _WorkerKubernetes(_ManifestPart, frozen=True):
    version: _Version | None = None
    kubelet: _Kubelet | None = None


class _Taint(_ManifestPart, frozen=True):
    key: _QualifiedKey
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
    value: _LabelValue | None = None


class _SystemComponents(_ManifestPart, frozen=True):
    allow: bool | None = None


class _Worker(_ManifestPart, frozen=True):
    name: _Label
    machine: _Machine
    zones: list[_Text] | None = None
    control_plane: None = None
    minimum: _Count | None = None
    maximum: Annotated[int, Meta(ge=1, le=MOST_MACHINES)] | None = None
    kubernetes: _WorkerKubernetes | None = None
    volume: _Volume | None = None
    data_volumes: None = None
    kubelet_data_volume_name: None = None
    max_surge: _Count | None = None
    max_unavailable: _Count | None = None
    labels: dict[_QualifiedKey, _LabelValue] | None = None
    annotations: None = None
    taints: list[_Taint] | None = None
    update_strategy: None = None
    system_components: _SystemComponents | None = None
    cluster_autoscaler: None = None
    machine_controller_manager: None = None
    priority: None = None
    sysctls: None = None
    cri: _CRI | None = None
    ca_bundle: None = None


class _Provider(_ManifestPart, frozen=True):
    type: _Label
    workers: Annotated[list[_Worker], Meta(min_length=1)]


class _Networking(_ManifestPart, frozen=True):
    type: _QualifiedName
    nodes: str | None = None
    pods: str | None = None
    services: str | None = None
    ip_families: list[Literal["IPv4", "IPv6"]] | None = None


class _Tolerance(_ManifestPart, frozen=True):
    type: Literal["node", "zone"]


class _Availability(_ManifestPart, frozen=True):
    failure_tolerance: _Tolerance


class _ControlPlane(_ManifestPart, frozen=True):
    zones: None = None
    high_availability: _Availability | None = None


class _DNS(_ManifestPart, frozen=True):
    domain: _Subdomain | None = None
    providers: None = None


class _Selector(_ManifestPart, frozen=True):
    match_labels: dict[_QualifiedKey, _LabelValue] | None = None
    match_expressions: None = None
    provider_types: list[_Text] | None = None


class _Toleration(_ManifestPart, frozen=True):
    key: _QualifiedKey
    value: _LabelValue | None = None


class _Restriction(_ManifestPart, frozen=True):
    name: _Text
    options: dict[str, str] | None = None


class _InflightRequests(_ManifestPart, frozen=True):
    max_non_mutating_inflight: Annotated[int, Meta(ge=0, le=5000)] | None = None
    max_mutating_inflight: Annotated[int, Meta(ge=0, le=2500)] | None = None


class _ConfigMapReference(_ManifestPart, frozen=True):
    name: _Subdomain
    namespace: None = None


class _AuditPolicy(_ManifestPart, frozen=True):
    config_map_ref: _ConfigMapReference | None = None


class _AuditConfig(_ManifestPart, frozen=True):
    audit_policy: _AuditPolicy | None = None


class _StructuredAuthentication(_ManifestPart, frozen=True):
    config_map_name: _Text


class _APIServer(_ManifestPart, frozen=True):
    admission_plugins: None = None
    runtime_config: None = None
    enable_anonymous_authentication: None = None
    feature_gates: None = None
    audit_config: _AuditConfig | None = None
    structured_authentication: _StructuredAuthentication | None = None
    structured_authorization: None = None
    requests: _InflightRequests | None = None
    logging: None = None
    watch_cache_sizes: None = None
    default_not_ready_toleration_seconds: _Count | None = None
    default_unreachable_toleration_seconds: _Count | None = None
    event_ttl: _HoursOfDay | None = msgspec.field(name="eventTTL", default=None)
    tls_min_version: None = None
    service_account_config: None = None
    api_audiences: None = None
    encryption_config: None = None
    autoscaling: None = None


class _PodAutoscaler(_ManifestPart, frozen=True, forbid_unknown_fields=True):
    enabled: bool | None = None
    updater_interval: _Period | None = None
    recommender_interval: _Period | None = None


class _ControllerManager(_ManifestPart, frozen=True, forbid_unknown_fields=True):
    node_monitor_grace_period: _Period | None = None
    node_cidr_mask_size: Annotated[int, Meta(ge=16, le=_NODE_MASK)] | None = msgspec.field(
        name="nodeCIDRMaskSize", default=None
    )


class _Scheduler(_ManifestPart, frozen=True, forbid_unknown_fields=True):
    profile: Literal["balanced", "bin-packing"] | None = None


class _Proxy(_ManifestPart, frozen=True, forbid_unknown_fields=True):
    enabled: bool | None = None
    mode: Literal["IPTables", "IPVS", "NFTables"] | None = None


class _Kubernetes(_ManifestPart, frozen=True):
    version: _Version | None = None
    kubelet: _Kubelet | None = None
    cluster_autoscaler: None = None
    vertical_pod_autoscaler: _PodAutoscaler | None = None
    kube_controller_manager: _ControllerManager | None = None
    kube_scheduler: _Scheduler | None = None
    kube_proxy: _Proxy | None = None
    etcd: None = None
    kube_api_server: _APIServer | None = msgspec.field(name="kubeAPIServer", default=None)


class _Extension(_ManifestPart, frozen=True):
    type: _Label


class _Hibernation(_ManifestPart, frozen=True):
    enabled: bool | None = None
    schedules: None = None


class _AutoUpdate(_ManifestPart, frozen=True):
    kubernetes_version: bool | None = None
    machine_image_version: bool | None = None


class _Maintenance(_ManifestPart, frozen=True):
    confine_spec_update_rollout: bool | None = None
    auto_update: _AutoUpdate | None = None
    time_window: dict[str, Any] | None = None
    auto_rotation: None = None


class _Spec(_ManifestPart, frozen=True):
    region: _Text
    cloud_profile: _Profile
    provider: _Provider
    networking: _Networking
    cloud_profile_name: str | None = None
    seed_name: _Label | None = None
    scheduler_name: _Label | None = None
    purpose: Literal["evaluation", "testing", "development", "production"] | None = None
    exposure_class_name: _Subdomain | None = None
    control_plane: _ControlPlane | None = None
    dns: _DNS | None = None
    seed_selector: _Selector | None = None
    tolerations: list[_Toleration] | None = None
    access_restrictions: list[_Restriction] | None = None
    kubernetes: _Kubernetes | None = None
    hibernation: _Hibernation | None = None
    maintenance: _Maintenance | None = None
    resources: None = None
    addons: None = None
    system_components: None = None
    monitoring: None = None
    extensions: list[_Extension] | None = None
    secret_binding_name: str | None = None
    credentials_binding_name: str | None = None


def has_common_metadata(metadata: Document) -> bool:
    """True when the metadata of a Shoot, as it was sent, is valid."""
    try:
        typed = msgspec.convert(metadata, _Metadata)
    except msgspec.ValidationError:
        return False
    annotations = typed.annotations
    if not annotations:
        return True
    texts = (*annotations, *annotations.values())
    is_small = sum(map(len, texts)) <= _MOST_ANNOTATIONS and all(map(str.isascii, texts))
    return is_small and _WATCHED_ANNOTATIONS.isdisjoint(annotations)


def has_common_spec(shoot: Document) -> bool:
    """True when the rest of a new Shoot, whose metadata is valid, is valid as it will be stored."""
    metadata = section(shoot, "metadata")
    if shoot.get("status") is not None or "--" in str(metadata.get("name")) or metadata.get("finalizers") is not None:
        return False
    if any("/" in key and key != key.lower() for key in section(metadata, "labels")):
        return False
    if not _WATCHED_ANNOTATIONS.isdisjoint(section(metadata, "annotations")):
        return False
    try:
        spec = msgspec.convert(shoot.get("spec"), _Spec)
    except msgspec.ValidationError:
        return False
    return (
        _are_valid_workers(spec.provider.workers)
        and _is_valid_networking(spec.networking)
        and (spec.kubernetes is None or _has_mask_of_family(spec.kubernetes, spec.networking))
        and (spec.seed_selector is None or _are_distinct(spec.seed_selector.provider_types))
        and (spec.maintenance is None or next(window_problems(shoot["spec"]), None) is None)
        and not (spec.secret_binding_name and spec.credentials_binding_name)
        and _are_distinct([extension.type for extension in spec.extensions or ()])
        and _are_distinct([toleration.key for toleration in spec.tolerations or ()])
        and _are_distinct([restriction.name for restriction in spec.access_restrictions or ()])
    )


def _are_valid_workers(workers: Sequence[_Worker]) -> bool:
    return (
        all(map(_is_valid_worker, workers))
        and _are_distinct([worker.name for worker in workers])
        and any(worker.system_components is None or worker.system_components.allow is not False for worker in workers)
    )


def _is_valid_worker(worker: _Worker) -> bool:
    if worker.minimum is not None and worker.minimum > (worker.maximum or 0):
        return False
    if worker.maximum is not None and worker.maximum < len(worker.zones or ()):
        return False
    if worker.max_surge == 0 and not worker.max_unavailable:
        return False
    taints = [(taint.key, taint.effect) for taint in worker.taints or ()]
    return _are_distinct(worker.zones) and _are_distinct(taints) and all(key != RESERVED_TAINT for key, _ in taints)


def _has_mask_of_family(kubernetes: _Kubernetes, networking: _Networking) -> bool:
    manager = kubernetes.kube_controller_manager
    if manager is None or manager.node_cidr_mask_size is None:
        return True
    return networking.ip_families in (None, [], ["IPv4"])


def _is_valid_networking(networking: _Networking) -> bool:
    families = networking.ip_families or ("IPv4",)
    ranges = (networking.nodes, networking.pods, networking.services)
    return (
        _are_distinct(networking.ip_families)
        and all(text is None or (ip_family_of(text) in families and is_canonical(text)) for text in ranges)
        and _are_disjoint(*(text for text in ranges if text is not None))
    )


def _are_disjoint(*ranges: str) -> bool:
    return not any(overlap(one, other) for number, one in enumerate(ranges) for other in ranges[:number])


def _are_distinct(values: Sequence[Hashable] | None) -> bool:
    return not values or len(values) == 1 or len(set(values)) == len(values)
