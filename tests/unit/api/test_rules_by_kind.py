"""What Gardener's API refuses of each kind by itself, before any admission plug-in: `pkg/api/*/validation`."""

import copy
from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.manifest import validate
from gardenbus.common.api.document import Document
from gardenbus.common.errors import InvalidResource
from tests.support.valid_manifests import (
    BASTION,
    CLOUD_PROFILE,
    CORE,
    CREDENTIALS_BINDING,
    EXPOSURE_CLASS,
    PROJECT,
    QUOTA,
    SECRET_BINDING,
    SEED,
    SHOOT,
    VALID,
)

FORCED = "confirmation.gardener.cloud/force-deletion"
ABSENT: Any = object()


def changed(document: Document, path: str, value: Any) -> Document:
    """The document with another value at a path, as `spec.members.0.role`; ABSENT takes the field away."""
    result = copy.deepcopy(document)
    here: Any = result
    *steps, last = path.split(".")
    for step in steps:
        here = (
            here[int(step) if step.isdigit() else step] if step in here or step.isdigit() else here.setdefault(step, {})
        )
    if value is ABSENT:
        del here[last]
    else:
        here[int(last) if last.isdigit() else last] = value
    return result


def fields_of(document: Document, old: Document | None = None) -> list[str]:
    """The fields at fault."""
    try:
        validate(document, old)
    except InvalidResource as invalid:
        return [problem.field for problem in invalid.problems]
    return []


@pytest.mark.parametrize("document", VALID, ids=lambda document: document["kind"])
def test_what_keeps_the_rules_is_accepted(document: Document) -> None:
    assert fields_of(document) == []
    assert fields_of(document, document) == []


POOL, MEMBERS, VERSIONS = "spec.provider.workers[0]", "spec.members", "spec.kubernetes.versions"
IMAGES, TYPES = "spec.machineImages[0]", "spec.machineTypes[0]"
CASES: list[tuple[Document, str, Any, str]] = [
    (PROJECT, "metadata.name", "a--b", "metadata.name"),
    (PROJECT, "spec.members.1.role", "boss", f"{MEMBERS}[1].role"),
    (PROJECT, "spec.members.0.roles", ["admin", "admni"], f"{MEMBERS}[0].roles[1]"),
    (PROJECT, "spec.members.0.roles", ["admin", "admin"], f"{MEMBERS}[0].roles[1]"),
    (PROJECT, "spec.members.2.roles", ["extension:" + "x" * 21], f"{MEMBERS}[2].roles[0]"),
    (PROJECT, "spec.members.1.role", "owner", f"{MEMBERS}[1]"),
    (PROJECT, "spec.members.1.kind", "Usr", f"{MEMBERS}[1].kind"),
    (PROJECT, "spec.members.1.kind", ABSENT, f"{MEMBERS}[1].kind"),
    (PROJECT, "spec.members.1.name", ABSENT, f"{MEMBERS}[1].name"),
    (PROJECT, "spec.members.1.apiGroup", "v1", f"{MEMBERS}[1].apiGroup"),
    (PROJECT, "spec.members.1.namespace", "garden-dev", f"{MEMBERS}[1].namespace"),
    (PROJECT, "spec.members.2.namespace", ABSENT, f"{MEMBERS}[2].namespace"),
    (PROJECT, "spec.members.1", {"kind": "User", "name": "ann", "role": "viewer"}, f"{MEMBERS}[1]"),
    (PROJECT, "spec.owner.kind", "Robot", "spec.owner.kind"),
    (PROJECT, "spec.description", "a\x1b[31mb", "spec.description"),
    (PROJECT, "spec.purpose", "two\nlines", "spec.purpose"),
    (PROJECT, "spec.owner", {"kind": "User"}, "spec.owner.name"),
    (PROJECT, "spec.tolerations.defaults", [{"key": "c"}], "spec.tolerations.defaults[0]"),
    (PROJECT, "spec.tolerations.whitelist", [], "spec.tolerations.defaults[0]"),
    (QUOTA, "spec.metrics", {"cpus": "1"}, "spec.metrics[cpus]"),
    (QUOTA, "spec.metrics", {"cpu": "-1"}, "spec.metrics[cpu]"),
    (QUOTA, "spec.scope", ABSENT, "spec.scope"),
    (QUOTA, "spec.scope", {"apiVersion": CORE, "kind": "Seed"}, "spec.scope"),
    (QUOTA, "spec.scope", {"apiVersion": "v2", "kind": "Secret"}, "spec.scope"),
    (QUOTA, "spec.clusterLifetimeDays", 0, "spec.clusterLifetimeDays"),
    (CREDENTIALS_BINDING, "credentialsRef.kind", "ConfigMap", "credentialsRef.kind"),
    (CREDENTIALS_BINDING, "credentialsRef", ABSENT, "credentialsRef.name"),
    (CREDENTIALS_BINDING, "credentialsRef.name", ABSENT, "credentialsRef.name"),
    (CREDENTIALS_BINDING, "quotas", [{"namespace": "garden-dev"}], "quotas[0].name"),
    (SECRET_BINDING, "secretRef", ABSENT, "secretRef.name"),
    (SECRET_BINDING, "secretRef.name", ABSENT, "secretRef.name"),
    (CLOUD_PROFILE, "spec.kubernetes.versions.0.version", "1.34", f"{VERSIONS}[0].version"),
    (CLOUD_PROFILE, "spec.kubernetes.versions.0.version", "v1.34.4", f"{VERSIONS}[0].version"),
    (CLOUD_PROFILE, "spec.kubernetes.versions.0.classification", "suported", f"{VERSIONS}[0].classification"),
    (CLOUD_PROFILE, "spec.kubernetes.versions.1.expirationDate", "tomorrow", f"{VERSIONS}[1].expirationDate"),
    (CLOUD_PROFILE, "spec.kubernetes.versions.1.expirationDate", "2026-12-31", f"{VERSIONS}[1].expirationDate"),
    (
        CLOUD_PROFILE,
        "spec.kubernetes.versions.1",
        {"version": "1.34.3", "classification": "supported"},
        f"{VERSIONS}[1].classification",
    ),
    (CLOUD_PROFILE, "spec.machineImages.0.versions.0.version", "latest", f"{IMAGES}.versions[0].version"),
    (CLOUD_PROFILE, "spec.machineImages.0.versions.0.architectures", ["x86"], f"{IMAGES}.versions[0].architectures[0]"),
    (CLOUD_PROFILE, "spec.machineImages.0.versions.0.expirationDate", "soon", f"{IMAGES}.versions[0].expirationDate"),
    (CLOUD_PROFILE, "spec.machineImages.0.updateStrategy", "majr", f"{IMAGES}.updateStrategy"),
    (CLOUD_PROFILE, "spec.machineTypes.0.cpu", "-1", f"{TYPES}.cpu"),
    (CLOUD_PROFILE, "spec.machineTypes.0.architecture", "x86", f"{TYPES}.architecture"),
    (CLOUD_PROFILE, "spec.limits.maxNodesTotal", 0, "spec.limits.maxNodesTotal"),
    (EXPOSURE_CLASS, "handler", "Inter_net", "handler"),
    (BASTION, "spec.sshPublicKey", ABSENT, "spec.sshPublicKey"),
    (BASTION, "spec.sshPublicKey", "foo", "spec.sshPublicKey"),
    (BASTION, "spec.ingress", ABSENT, "spec.ingress"),
    (BASTION, "spec.ingress", [], "spec.ingress"),
    (BASTION, "spec.ingress.0.ipBlock.cidr", "203.0.113.7", "spec.ingress[0].ipBlock.cidr"),
    (SEED, "spec.networks.pods", "10.1.128.0/17", "spec.networks.pods"),
    (SHOOT, "metadata.name", "a--b", "metadata.name"),
    (
        SHOOT,
        "metadata.annotations",
        {"gardener.cloud/operation": "foo"},
        "metadata.annotations[gardener.cloud/operation]",
    ),
    (SHOOT, "metadata.annotations", {FORCED: "true"}, f"metadata.annotations[{FORCED}]"),
    (SHOOT, "spec.networking.nodes", "10.0.0.1/16", "spec.networking.nodes"),
    (SHOOT, "spec.extensions", [{"type": "dns"}, {"type": "dns"}], "spec.extensions[1].type"),
    (SHOOT, "spec.extensions", [{"disabled": True}], "spec.extensions[0].type"),
    *(
        (SHOOT, f"spec.kubernetes.{path}", value, f"spec.kubernetes.{path}")
        for path, value in [
            ("kubelet.maxPods", -1),
            ("kubelet.podPidsLimit", 99),
            ("kubelet.imageGCHighThresholdPercent", 101),
            ("kubeControllerManager.nodeCIDRMaskSize", 99),
            ("kubeControllerManager.nodeCIDRMaskSize", 15),
            ("clusterAutoscaler.scaleDownUtilizationThreshold", 1.5),
            ("clusterAutoscaler.scaleDownDelayAfterAdd", "-1h"),
        ]
    ),
    *(
        (SHOOT, f"spec.provider.workers.0.{path}", value, f"{POOL}.{field}")
        for path, value, field in [
            ("maxSurge", -1, "maxSurge"),
            ("maxSurge", "ten", "maxSurge"),
            ("maxSurge", 0, "maxUnavailable"),
            ("maxUnavailable", "110%", "maxUnavailable"),
            ("maxUnavailable", True, "maxUnavailable"),
            ("machine.image", {"version": "1.2.3"}, "machine.image.name"),
            ("labels", {"a b": "c"}, "labels"),
            ("labels", {"a": "b c"}, "labels"),
            ("annotations", {"a b": "c"}, "annotations"),
            ("taints", [{"key": "a", "effect": "NoShedule"}], "taints[0].effect"),
            ("taints", [{"effect": "NoSchedule"}], "taints[0].key"),
            ("taints", [{"key": "a", "effect": "NoSchedule"}] * 2, "taints[1]"),
            ("volume", {"type": "ssd"}, "volume.size"),
            ("volume", ABSENT, "volume"),
            ("dataVolumes", [{"size": "20Gi"}], "dataVolumes[0].name"),
            ("dataVolumes", [{"name": "data"}], "dataVolumes[0].size"),
            ("dataVolumes", [{"name": "data", "size": "20Gi"}] * 2, "dataVolumes[1].name"),
            ("kubeletDataVolumeName", "other", "kubeletDataVolumeName"),
            ("updateStrategy", "Rolling", "updateStrategy"),
            ("clusterAutoscaler.scaleDownUtilizationThreshold", 1.5, "clusterAutoscaler.scaleDownUtilizationThreshold"),
            ("clusterAutoscaler.scaleDownUnneededTime", "-30m", "clusterAutoscaler.scaleDownUnneededTime"),
        ]
    ),
    (SHOOT, "spec.provider.workers.0.systemComponents.allow", False, "spec.provider.workers"),
]


@pytest.mark.parametrize(("document", "path", "value", "field"), CASES)
def test_what_breaks_a_rule_is_rejected_with_its_field(document: Document, path: str, value: Any, field: str) -> None:
    assert field in fields_of(changed(document, path, value))


UNCHANGED = [case for case in CASES if case[1] != "metadata.name"]


@pytest.mark.parametrize(("document", "path", "value", "_field"), UNCHANGED)
def test_what_an_earlier_version_took_stands_in_the_way_of_no_other_change(
    document: Document, path: str, value: Any, _field: str
) -> None:
    stored = changed(document, path, value)
    assert fields_of(changed(stored, "metadata.labels", {"other": "change"}), stored) == []


@pytest.mark.parametrize(
    ("document", "path", "value", "field"),
    [
        (CREDENTIALS_BINDING, "credentialsRef.name", "other", "credentialsRef"),
        (CREDENTIALS_BINDING, "provider.type", "gcp", "provider"),
        (SECRET_BINDING, "secretRef.name", "other", "secretRef"),
        (QUOTA, "spec.scope", {"apiVersion": "v1", "kind": "Secret"}, "spec.scope"),
        (BASTION, "spec.sshPublicKey", "ssh-rsa AAAAC3NzaC1lZDI1NTE5AAAAIHJlYWxseQ==", "spec.sshPublicKey"),
    ],
)
def test_what_others_rely_on_stays(document: Document, path: str, value: Any, field: str) -> None:
    assert fields_of(changed(document, path, value), document) == [field]


BOUND = changed(SHOOT, "spec.credentialsBindingName", "one")
BOUND_BY_SECRET = changed(SHOOT, "spec.secretBindingName", "one")
WITHOUT_WORKERS = changed(SHOOT, "spec.provider.workers", ABSENT)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (SHOOT, WITHOUT_WORKERS, "spec.provider.workers"),
        (WITHOUT_WORKERS, SHOOT, "spec.provider.workers"),
        (BOUND, SHOOT, "spec.credentialsBindingName"),
        (BOUND_BY_SECRET, SHOOT, "spec.secretBindingName"),
        (BOUND_BY_SECRET, changed(BOUND_BY_SECRET, "spec.secretBindingName", "two"), "spec.secretBindingName"),
        (SHOOT, changed(BOUND, "spec.secretBindingName", "one"), "spec.secretBindingName"),
    ],
)
def test_a_shoot_keeps_its_workers_and_bindings(old: Document, new: Document, field: str) -> None:
    assert field in fields_of(new, old)


def test_a_shoot_gets_bindings_and_changes_to_credentials_bindings() -> None:
    for old, new in (
        (SHOOT, BOUND),
        (SHOOT, BOUND_BY_SECRET),
        (BOUND_BY_SECRET, BOUND),
        (BOUND, changed(BOUND, "spec.credentialsBindingName", "two")),
    ):
        assert fields_of(new, old) == []


def test_a_deletion_is_forced_where_it_cannot_go_on() -> None:
    deleting = changed(SHOOT, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z")
    stuck = changed(deleting, "status", {"lastErrors": [{"description": "no", "codes": ["ERR_INFRA_UNAUTHORIZED"]}]})
    forced = {"annotations": {FORCED: "true"}}
    assert fields_of(a_shoot_like(stuck, forced), stuck) == []
    for old in (SHOOT, deleting, changed(stuck, "status.lastErrors.0.codes", ["ERR_INFRA_RATE_LIMITS_EXCEEDED"])):
        assert fields_of(a_shoot_like(old, forced), old) == [f"metadata.annotations[{FORCED}]"]
    assert fields_of(stuck, a_shoot_like(stuck, forced)) == [f"metadata.annotations[{FORCED}]"], "it stays"


def a_shoot_like(shoot: Document, metadata: Document) -> Document:
    return {**shoot, "metadata": {**shoot["metadata"], **metadata}}


def test_a_secret_binding_gets_its_provider_later_once() -> None:
    of_aws = changed(SECRET_BINDING, "provider", {"type": "aws"})
    assert fields_of(of_aws, SECRET_BINDING) == []
    assert fields_of(changed(of_aws, "provider.type", "gcp"), of_aws) == ["provider"]


ROBOT = {"kind": "ServiceAccount", "name": "robot", "namespace": "garden-dev", "role": "viewer"}


@pytest.mark.parametrize(
    ("kind", "name", "at_fault"),
    [
        ("User", "system:serviceaccount:garden-dev:robot", ["spec.members[1]"]),
        ("User", "system:serviceaccount:garden-other:robot", []),
        ("User", "system:serviceaccount:robot", ["spec.members[1].name"]),
        ("Group", "system:serviceaccount:garden-dev:robot", []),
    ],
)
def test_a_service_account_is_one_member_however_it_is_written(kind: str, name: str, at_fault: list[str]) -> None:
    members = [ROBOT, {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name, "role": "admin"}]
    project = changed(PROJECT, "spec.members", members)
    assert fields_of(project) == at_fault
    assert fields_of(project, project) == []


@pytest.mark.parametrize("path", ["pods", "services", "nodes", "shootDefaults.pods", "shootDefaults.services"])
def test_ranges_of_a_seed_are_not_those_that_gardener_keeps(path: str) -> None:
    seed = changed(SEED, f"spec.networks.{path}", "241.1.0.0/16")
    assert fields_of(seed) == [f"spec.networks.{path}"]
    assert fields_of(seed, seed) == []


@pytest.mark.parametrize(
    ("mask", "most", "is_valid"),
    [(24, None, True), (25, None, True), (26, None, False), (26, 60, True), (24, 300, False)],
)
def test_a_node_has_addresses_for_its_pods(mask: int, most: int | None, is_valid: bool) -> None:
    shoot = changed(SHOOT, "spec.kubernetes.kubeControllerManager", {"nodeCIDRMaskSize": mask})
    if most is not None:
        shoot = changed(shoot, "spec.kubernetes.kubelet", {"maxPods": most})
    where = "spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize"
    assert fields_of(shoot) == ([] if is_valid else [where])
    assert fields_of(shoot, shoot) == []
