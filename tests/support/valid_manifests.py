"""A valid manifest of each kind with rules of its own, with everything in it that a rule is about."""

from gardenbus.common.api.document import Document
from tests.support.builders import a_shoot

CORE = "core.gardener.cloud/v1beta1"
RBAC = "rbac.authorization.k8s.io"
IN_DEV = {"name": "one", "namespace": "garden-dev"}

PROJECT: Document = {
    "apiVersion": CORE,
    "kind": "Project",
    "metadata": {"name": "dev"},
    "spec": {
        "owner": {"apiGroup": RBAC, "kind": "User", "name": "ann"},
        "members": [
            {"apiGroup": RBAC, "kind": "User", "name": "ann", "role": "owner", "roles": ["admin", "uam"]},
            {"kind": "Group", "name": "crew", "role": "viewer"},
            {"kind": "ServiceAccount", "name": "robot", "namespace": "garden-dev", "roles": ["extension:bot"]},
        ],
        "tolerations": {
            "defaults": [{"key": "a", "value": "b"}],
            "whitelist": [{"key": "a"}, {"key": "c", "value": "d"}],
        },
    },
}
QUOTA: Document = {
    "apiVersion": CORE,
    "kind": "Quota",
    "metadata": IN_DEV,
    "spec": {"scope": {"apiVersion": CORE, "kind": "Project"}, "metrics": {"cpu": "10", "storage.premium": "1Ti"}},
}
CREDENTIALS_BINDING: Document = {
    "apiVersion": "security.gardener.cloud/v1alpha1",
    "kind": "CredentialsBinding",
    "metadata": IN_DEV,
    "provider": {"type": "aws"},
    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "key", "namespace": "garden-dev"},
    "quotas": [{"name": "small", "namespace": "garden-dev"}],
}
SECRET_BINDING: Document = {
    "apiVersion": CORE,
    "kind": "SecretBinding",
    "metadata": IN_DEV,
    "secretRef": {"name": "key", "namespace": "garden-dev"},
}
CLOUD_PROFILE: Document = {
    "apiVersion": CORE,
    "kind": "CloudProfile",
    "metadata": {"name": "aws"},
    "spec": {
        "type": "aws",
        "kubernetes": {
            "versions": [
                {"version": "1.34.4", "classification": "supported"},
                {"version": "1.33.6", "classification": "deprecated", "expirationDate": "2026-12-31T23:59:59Z"},
            ]
        },
        "machineImages": [
            {"name": "linux", "updateStrategy": "minor", "versions": [{"version": "1.2", "architectures": ["arm64"]}]}
        ],
        "machineTypes": [{"name": "small", "cpu": "500m", "gpu": "0", "memory": "8Gi", "architecture": "amd64"}],
        "limits": {"maxNodesTotal": 50},
    },
}
EXPOSURE_CLASS: Document = {
    "apiVersion": CORE,
    "kind": "ExposureClass",
    "metadata": {"name": "public"},
    "handler": "internet",
}
BASTION: Document = {
    "apiVersion": "operations.gardener.cloud/v1alpha1",
    "kind": "Bastion",
    "metadata": IN_DEV,
    "spec": {
        "shootRef": {"name": "apollo"},
        "sshPublicKey": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHJlYWxseQ== ann@example.org",
        "ingress": [{"ipBlock": {"cidr": "203.0.113.7/24"}}],
    },
}
SEED: Document = {
    "apiVersion": CORE,
    "kind": "Seed",
    "metadata": {"name": "berlin"},
    "spec": {
        "provider": {"type": "aws", "region": "eu-west-1"},
        "networks": {"nodes": "10.1.0.0/16", "pods": "10.2.0.0/16", "services": "10.3.0.0/16"},
    },
}
WORKER: Document = {
    "name": "pool",
    "minimum": 1,
    "maximum": 3,
    "maxSurge": "10%",
    "maxUnavailable": 0,
    "machine": {"type": "small", "image": {"name": "linux", "version": "1.2.3"}},
    "labels": {"example.org/team": "moon"},
    "annotations": {"note": "any text"},
    "taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}],
    "volume": {"type": "ssd", "size": "50Gi"},
    "dataVolumes": [{"name": "data", "size": "20Gi"}],
    "kubeletDataVolumeName": "data",
    "updateStrategy": "AutoRollingUpdate",
    "clusterAutoscaler": {"scaleDownUtilizationThreshold": 0.5, "scaleDownUnneededTime": "30m"},
    "systemComponents": {"allow": True},
}
SHOOT = a_shoot(spec={"provider": {"type": "aws", "workers": [WORKER]}})

VALID = (PROJECT, QUOTA, CREDENTIALS_BINDING, SECRET_BINDING, CLOUD_PROFILE, EXPOSURE_CLASS, BASTION, SEED, SHOOT)
