"""Order in which the manifests of a Work are applied: wave by wave, and removed wave by wave in reverse.

Source: KubeFleet's `pkg/controllers/workapplier/waves.go`, whose order is that of Helm. CustomResourceDefinitions come
with the namespaces, since other waves may hold objects of their kinds.
"""

from collections.abc import Mapping

LAST_WAVE = 99
_GROUPS = frozenset(
    {
        "",
        "networking.k8s.io",
        "scheduling.k8s.io",
        "policy",
        "storage.k8s.io",
        "apiextensions.k8s.io",
        "rbac.authorization.k8s.io",
        "apps",
        "autoscaling",
        "apiregistration.k8s.io",
        "admissionregistration.k8s.io",
        "batch",
    }
)
_WAVES = (
    ("Namespace", "PriorityClass", "CustomResourceDefinition"),
    (
        "NetworkPolicy",
        "ResourceQuota",
        "LimitRange",
        "PodDisruptionBudget",
        "ServiceAccount",
        "Secret",
        "ConfigMap",
        "StorageClass",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "IngressClass",
    ),
    ("ClusterRole", "Role"),
    ("ClusterRoleBinding", "RoleBinding"),
    (
        "Service",
        "DaemonSet",
        "Pod",
        "ReplicationController",
        "ReplicaSet",
        "Deployment",
        "HorizontalPodAutoscaler",
        "StatefulSet",
        "Job",
        "CronJob",
        "Ingress",
    ),
    ("APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"),
)
_WAVE_BY_KIND: Mapping[str, int] = {kind: number for number, kinds in enumerate(_WAVES) for kind in kinds}


def wave_of(group: str, kind: str) -> int:
    """The wave of a kind; other groups' kinds come last."""
    return _WAVE_BY_KIND.get(kind, LAST_WAVE) if group in _GROUPS else LAST_WAVE
