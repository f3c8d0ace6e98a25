"""Manifests in which every field that a service acts on is set, and what reads a stored manifest."""

from gardenbus.common.api.changes import creation_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.cloudprofiles import CloudProfile, NamespacedCloudProfile, RegionConfigMap
from gardenbus.common.api.garden.projects import Project
from gardenbus.common.api.garden.seeds import Seed, scheduling_content, shoot_capacity
from gardenbus.common.api.garden.shoots import Shoot
from tests.support.admissions import deletion_guards
from tests.support.builders import (
    CORE,
    a_cloudprofile,
    a_condition,
    a_namespaced_cloudprofile,
    a_project,
    a_region_configmap,
    a_seed,
    a_shoot,
)

FULL_SHOOT = a_shoot(
    metadata={
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "finalizers": ["example.org/hold"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "a", "uid": "u"}],
    },
    spec={
        "schedulerName": "default-scheduler",
        "exposureClassName": "internet",
        "seedName": "aws-eu1",
        "seedSelector": {
            "matchLabels": {"a": "b"},
            "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
            "providerTypes": ["aws"],
        },
        "tolerations": [{"key": "a", "value": "b"}],
        "accessRestrictions": [{"name": "a"}],
        "dns": {"domain": "a.b", "providers": [{"type": "aws", "primary": True}]},
        "controlPlane": {"zones": ["eu-west-1a"], "highAvailability": {"failureTolerance": {"type": "node"}}},
        "networking": {"ipFamilies": ["IPv4"]},
    },
    status={
        "conditions": [a_condition("A")],
        "constraints": [a_condition("B")],
        "lastOperation": {"type": "Create", "state": "Succeeded", "progress": 100},
        "lastErrors": [{"description": "x", "codes": ["ERR"]}],
        "seedName": "aws-eu1",
        "networking": {"nodes": ["10.0.0.0/16"], "pods": [], "services": []},
    },
)
FULL_SEED = a_seed(
    metadata={"labels": {"a": "b"}},
    spec={
        "taints": [{"key": "a", "value": "b"}],
        "accessRestrictions": [{"name": "a"}],
        "dns": {"defaults": [{"domain": "a.b"}]},
        "backup": {"provider": "aws"},
        "networks": {"shootDefaults": {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"}},
        "settings": {"zoneSelection": {"mode": "Prefer"}},
    },
)
FULL_PROFILE = a_cloudprofile(spec={"seedSelector": {"matchLabels": {"a": "b"}, "providerTypes": ["aws"]}})
FULL_PROJECT = a_project(
    spec={"tolerations": {"defaults": [{"key": "a"}], "whitelist": [{"key": "a"}, {"key": "b", "value": "c"}]}}
)
FULL_CLASS: Document = {
    "apiVersion": CORE,
    "kind": "ExposureClass",
    "metadata": {"name": "internet"},
    "handler": "h",
    "scheduling": {
        "seedSelector": {
            "matchLabels": {"x": "y"},
            "matchExpressions": [{"key": "a", "operator": "Exists"}],
            "providerTypes": ["aws"],
        },
        "tolerations": [{"key": "edge"}],
    },
}
FULL_NAMESPACED_PROFILE = a_namespaced_cloudprofile(
    spec={
        "kubernetes": {"versions": [{"version": "1.34.1", "expirationDate": "2027-01-01T00:00:00Z"}]},
        "machineTypes": [{"name": "own"}],
        "machineImages": [{"name": "gardenlinux", "versions": [{"version": "9"}]}],
        "limits": {"maxNodesTotal": 5},
    }
)
FULL_MANIFESTS = (
    FULL_SHOOT,
    FULL_SEED,
    FULL_PROFILE,
    FULL_PROJECT,
    FULL_CLASS,
    FULL_NAMESPACED_PROFILE,
    a_region_configmap(),
)


def read_by_everybody(document: Document) -> None:
    """What the store, the scheduler and the gardenlets do with a stored manifest."""
    creation_of(document)
    deletion_guards(document)
    match document["kind"]:
        case "Shoot":
            Shoot.from_document(document)
        case "Seed":
            Seed.from_document(document)
            shoot_capacity(document)
            scheduling_content(document)
        case "CloudProfile":
            CloudProfile.from_document(document)
        case "NamespacedCloudProfile":
            NamespacedCloudProfile.from_document(document)
        case "Project":
            Project.from_document(document)
        case "ConfigMap":
            RegionConfigMap.from_document(document)
        case _:
            pass
