"""Order of the kinds of a placement's resources: that of Helm, in two shapes.

A resource snapshot holds its resources in the `rank` of their kinds (KubeFleet's
`pkg/utils/controller/resource_selector_resolver.go`). A member agent applies the manifests of a Work wave by wave, and
removes them in reverse (`pkg/controllers/workapplier/waves.go`). CustomResourceDefinitions come with the namespaces
there, since other waves may hold objects of their kinds.
"""

from collections.abc import Mapping

LAST_WAVE = 99

_POLICIES = ("NetworkPolicy", "ResourceQuota", "LimitRange", "PodDisruptionBudget", "ServiceAccount", "Secret")
_STORAGE = ("ConfigMap", "StorageClass", "PersistentVolume", "PersistentVolumeClaim")
_PODS = ("Service", "DaemonSet", "Pod", "ReplicationController", "ReplicaSet", "Deployment")
_MORE_PODS = ("HorizontalPodAutoscaler", "StatefulSet", "Job", "CronJob")
_RBAC = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_WEBHOOKS = ("APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")

_ORDER = (
    *("PriorityClass", "Namespace", *_POLICIES, *_STORAGE, "CustomResourceDefinition"),
    *(*_RBAC, *_PODS, *_MORE_PODS, "IngressClass", "Ingress", *_WEBHOOKS),
)
_RANKS: Mapping[str, int] = {kind: rank for rank, kind in enumerate(_ORDER)}

_K8S_GROUPS = (
    *("networking", "scheduling", "storage", "rbac.authorization"),
    *("admissionregistration", "apiextensions", "apiregistration"),
)
_GROUPS = frozenset({"", "apps", "autoscaling", "batch", "policy"} | {f"{name}.k8s.io" for name in _K8S_GROUPS})
_WAVES = (
    ("Namespace", "PriorityClass", "CustomResourceDefinition"),
    (*_POLICIES, *_STORAGE, "IngressClass"),
    ("ClusterRole", "Role"),
    ("ClusterRoleBinding", "RoleBinding"),
    (*_PODS, *_MORE_PODS, "Ingress"),
    _WEBHOOKS,
)
_WAVE_BY_KIND: Mapping[str, int] = {kind: number for number, kinds in enumerate(_WAVES) for kind in kinds}


def rank_of(kind: str) -> int:
    """Place of a kind among the resources of a snapshot; unknown kinds come last."""
    return _RANKS.get(kind, len(_ORDER))


def wave_of(group: str, kind: str) -> int:
    """The wave of a kind; other groups' kinds come last."""
    return _WAVE_BY_KIND.get(kind, LAST_WAVE) if group in _GROUPS else LAST_WAVE
