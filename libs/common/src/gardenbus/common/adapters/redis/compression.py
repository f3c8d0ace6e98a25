"""Long fields of stored objects, compressed with a dictionary of what most of them have in common. Pure.

A Shoot's spec, its status and what was last applied of it are nine tenths of its text, and differ from other Shoots' by
a few names and numbers. zlib with a preset dictionary (RFC 1950, FDICT) leaves a tenth to a fifth of them.

A compressed field is recognizable: zlib's header begins with `x`, the inside of a JSON object with `"`, a JSON
object with `{`. The header carries a checksum of the dictionary as well, so DICTIONARY must never change: another one
would need a format of the store of its own (`FORMAT` in functions/opening.lua).
"""

import zlib

from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.short_cache import short_cache

MIN_BYTES = 192
"""Shorter texts stay as they are."""

MAX_BYTES = 65_536
"""So do longer ones, whose compression would keep the event loop for more than a millisecond."""

SHARED_TEXTS, LONGEST_SHARED = 128, 1024
"""Texts that `decompress_shared` remembers, and the bytes that each may have as it is stored: some MB at most."""

_LEVEL = 3
_FIRST_BYTE = b"x"


def _condition(kind: str, reason: str, message: str) -> Document:
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    return {"type": kind, "status": "True", "reason": reason, "message": message, **times}


_STATUS: Document = {
    "constraints": [
        _condition("HibernationPossible", "NoProblematicWebhooks", "All webhooks are properly configured."),
        _condition(
            "MaintenancePreconditionsSatisfied", "NoProblematicWebhooks", "All webhooks are properly configured."
        ),
    ],
    "gardener": {"id": "", "name": "gardenlet", "version": "1.0.0"},
    "hibernated": False,
    "technicalID": "shoot--",
    "uid": "",
    "clusterIdentity": "shoot--",
    "observedGeneration": 1,
    "lastOperation": {
        "type": "Create",
        "state": "Processing",
        "progress": 0,
        "description": "Shoot cluster state has been successfully migrated.",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    },
    "lastErrors": [],
    "conditions": [
        _condition(
            "APIServerAvailable", "HealthzRequestFailed", "API server /healthz endpoint responded with success."
        ),
        _condition("ControlPlaneHealthy", "ControlPlaneRunning", "All control plane components are healthy."),
        _condition("ObservabilityComponentsHealthy", "Healthy", "All observability components are healthy."),
        _condition("EveryNodeReady", "EveryNodeReady", "All nodes are ready."),
        _condition("SystemComponentsHealthy", "SystemComponentsRunning", "All system components are healthy."),
    ],
}
_WORKER: Document = {
    "name": "worker-pool-0",
    "cri": {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]},
    "machine": {
        "type": "m5.large",
        "image": {"name": "gardenlinux", "version": "1877.4.0"},
        "architecture": "amd64",
    },
    "minimum": 1,
    "maximum": 3,
    "maxSurge": 1,
    "maxUnavailable": 0,
    "volume": {"type": "gp3", "size": "50Gi", "encrypted": True},
    "dataVolumes": [{"name": "data", "type": "gp3", "size": "50Gi"}],
    "labels": {"worker.gardener.cloud/pool": "worker-pool", "node.kubernetes.io/role": "node"},
    "annotations": {},
    "taints": [{"key": "dedicated", "value": "pool", "effect": "NoSchedule"}],
    "caBundle": "",
    "kubernetes": {"version": "1.34.0", "kubelet": {"maxPods": 110}},
    "systemComponents": {"allow": True},
    "updateStrategy": "AutoRollingUpdate",
    "zones": ["eu-central-1a", "eu-central-1b", "eu-central-1c", "eu-west-1a", "us-east-1b"],
}
_KUBERNETES: Document = {
    "version": "1.34.0",
    "enableStaticTokenKubeconfig": False,
    "kubeAPIServer": {
        "admissionPlugins": [
            {"name": "PodSecurity", "config": {"apiVersion": "pod-security.admission.config.k8s.io/v1"}}
        ],
        "auditConfig": {"auditPolicy": {"configMapRef": {"name": "audit-policy"}}},
        "structuredAuthentication": {"configMapName": "structured-authentication"},
        "oidcConfig": {"clientID": "", "issuerURL": "https://", "usernameClaim": "email", "groupsClaim": "groups"},
        "encryptionConfig": {"resources": ["configmaps"]},
        "featureGates": {},
        "runtimeConfig": {},
        "requests": {"maxNonMutatingInflight": 400, "maxMutatingInflight": 200},
        "defaultNotReadyTolerationSeconds": 300,
        "defaultUnreachableTolerationSeconds": 300,
        "eventTTL": "1h0m0s",
        "logging": {"verbosity": 2},
    },
    "kubeControllerManager": {"nodeCIDRMaskSize": 24, "nodeMonitorGracePeriod": "40s"},
    "kubeScheduler": {"profile": "balanced"},
    "kubeProxy": {"mode": "IPTables", "enabled": True},
    "kubelet": {
        "failSwapOn": True,
        "maxPods": 110,
        "serializeImagePulls": False,
        "kubeReserved": {"cpu": "80m", "memory": "1Gi"},
    },
    "clusterAutoscaler": {
        "expander": "least-waste",
        "maxNodeProvisionTime": "20m0s",
        "scaleDownDelayAfterAdd": "1h0m0s",
        "scaleDownUnneededTime": "30m0s",
        "scaleDownUtilizationThreshold": 0.5,
        "scanInterval": "10s",
    },
    "verticalPodAutoscaler": {"enabled": True, "updaterInterval": "1m0s", "recommenderInterval": "1m0s"},
}
_SPEC: Document = {
    "accessRestrictions": [
        {"name": "eu-access-only", "options": {"support.gardener.cloud/eu-access-for-cluster-nodes": "true"}}
    ],
    "addons": {"kubernetesDashboard": {"enabled": False}, "nginxIngress": {"enabled": False}},
    "controlPlane": {"highAvailability": {"failureTolerance": {"type": "zone"}}},
    "dns": {"domain": "example.com", "providers": [{"type": "aws-route53", "primary": True, "secretName": ""}]},
    "exposureClassName": "",
    "extensions": [
        {
            "type": "shoot-dns-service",
            "providerConfig": {"apiVersion": "service.dns.extensions.gardener.cloud/v1alpha1"},
        }
    ],
    "hibernation": {
        "enabled": False,
        "schedules": [{"start": "00 18 * * 1,2,3,4,5", "end": "00 07 * * 1,2,3,4,5", "location": "Europe/Berlin"}],
    },
    "resources": [{"name": "", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": ""}}],
    "systemComponents": {"coreDNS": {"autoscaling": {"mode": "horizontal"}}, "nodeLocalDNS": {"enabled": True}},
    "seedSelector": {"matchLabels": {}, "matchExpressions": [{"key": "", "operator": "In", "values": [""]}]},
    "tolerations": [{"key": "seed.gardener.cloud/protected", "value": ""}],
    "cloudProfileName": "aws",
    "cloudProfile": {"kind": "CloudProfile", "name": "aws"},
    "secretBindingName": "",
    "credentialsBindingName": "credentials",
    "purpose": "production",
    "region": "eu-central-1",
    "schedulerName": "default-scheduler",
    "kubernetes": _KUBERNETES,
    "maintenance": {
        "autoUpdate": {"kubernetesVersion": True, "machineImageVersion": True},
        "timeWindow": {"begin": "220000+0000", "end": "230000+0000"},
        "confineSpecUpdateRollout": True,
    },
    "networking": {
        "type": "calico",
        "ipFamilies": ["IPv4"],
        "nodes": "10.250.0.0/16",
        "pods": "100.96.0.0/11",
        "services": "100.64.0.0/13",
        "providerConfig": {
            "apiVersion": "calico.networking.extensions.gardener.cloud/v1alpha1",
            "kind": "NetworkConfig",
        },
    },
    "provider": {
        "type": "aws",
        "infrastructureConfig": {
            "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
            "kind": "InfrastructureConfig",
            "networks": {
                "vpc": {"cidr": "10.250.0.0/16"},
                "zones": [
                    {
                        "name": "eu-central-1a",
                        "internal": "10.250.112.0/22",
                        "public": "10.250.96.0/22",
                        "workers": "10.250.0.0/19",
                    }
                ],
            },
        },
        "controlPlaneConfig": {
            "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
            "kind": "ControlPlaneConfig",
        },
        "workers": [_WORKER],
    },
}

DICTIONARY = encode(
    {
        "status": _STATUS,
        "metadata": {
            "annotations": {"shoot.gardener.cloud/cleanup-infrastructure-resources-grace-period-seconds": "0"},
            "labels": {},
            "name": "",
            "namespace": "garden-",
        },
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "spec": _SPEC,
    }
)
"""Texts that are found in most Shoots; those that come last are found at the least cost."""


_PRIMED = zlib.compressobj(_LEVEL, zdict=DICTIONARY)
"""Copied for each text: taking the dictionary in is half of the work."""


def compress(text: bytes) -> bytes:
    """Compress a text of MIN_BYTES to MAX_BYTES if that makes it shorter."""
    if not MIN_BYTES <= len(text) <= MAX_BYTES:
        return text
    compressor = _PRIMED.copy()
    compressed = compressor.compress(text) + compressor.flush()
    return compressed if len(compressed) < len(text) else text


def decompress(field: bytes) -> bytes:
    """Give the text of a field back. Raises zlib.error for one that was compressed with another dictionary, or cut."""
    if not field.startswith(_FIRST_BYTE):
        return field
    decompressor = zlib.decompressobj(zdict=DICTIONARY)
    text = decompressor.decompress(field)
    if not decompressor.eof:
        raise zlib.error("the compressed text is cut")
    return text


decompress_shared = short_cache(SHARED_TEXTS, longest=LONGEST_SHARED)(decompress)
"""The same for a field whose text many objects have in common, as the spec of Shoots of one class."""
