"""Manifests that MemberClusters are registered as, with a fingerprint of the configuration."""

import hashlib
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from gardenbus.common.api.configuration.member_agent import ClusterSettings
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.fleet.member_clusters import reporter_of

FINGERPRINT = "memberagent.gardenbus.io/configuration"
"""Annotation of a MemberCluster: digest of the manifest registered by its agent. Other changes stay until that changes.

A MemberCluster without it was applied by people as a whole: the agent only reports on it.
"""


def member_cluster_manifest(cluster: ClusterSettings, *, period_seconds: int) -> Document:
    """Manifest of a configured cluster."""
    return fingerprinted(
        {
            "apiVersion": "cluster.kubernetes-fleet.io/v1beta1",
            "kind": "MemberCluster",
            "metadata": {
                "name": cluster.name,
                "labels": dict(cluster.metadata.labels),
                "annotations": dict(cluster.metadata.annotations),
            },
            "spec": {
                "identity": identity_of(cluster.name),
                "heartbeatPeriodSeconds": cluster.spec.heartbeat_period_seconds or period_seconds,
                "taints": cast("list[Any]", msgspec.to_builtins(cluster.spec.taints)),
            },
        }
    )


def identity_of(cluster: str) -> Document:
    """Identity of a cluster's agent."""
    return {"kind": "User", "name": reporter_of(cluster), "apiGroup": "rbac.authorization.k8s.io"}


def fingerprinted(manifest: Document) -> Document:
    """Add the annotation with the manifest's digest."""
    digest = hashlib.sha256(encode(manifest)).hexdigest()[:16]
    metadata: Mapping[str, Any] = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), FINGERPRINT: digest}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}
