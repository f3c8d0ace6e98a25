"""What Gardener's API lets nobody change once an object is stored, and rules of kinds that are only kept here."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.manifest import key_of_applied, validate
from gardenbus.apiserver.domain.validation.metadata import key_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.identity.signing_requests import RENEWALS
from gardenbus.common.errors import InvalidResource
from tests.support.builders import a_managed_seed, a_shoot, merged
from tests.support.valid_manifests import (
    CLOUD_PROFILE,
    CORE,
    CREDENTIALS_BINDING,
    EXPOSURE_CLASS,
    PROJECT,
    SECRET_BINDING,
    SEED,
    SHOOT,
)
from tests.unit.api.test_rules_by_kind import ABSENT, changed, fields_of

SEEDED = merged(
    SEED,
    {
        "spec": {
            "provider": {"zones": ["a", "b"]},
            "networks": {"ipFamilies": ["IPv4"]},
            "ingress": {"domain": "ingress.example.org", "controller": {"kind": "nginx"}},
            "backup": {"provider": "aws", "region": "eu-west-1"},
            "dns": {"defaults": [{"domain": "example.org"}]},
        }
    },
)
OPERATION = "metadata.annotations[gardener.cloud/operation]"
MANAGED_SEED = a_managed_seed(spec={"gardenlet": {"bootstrap": "BootstrapToken"}})


def object_of(kind: str, spec: Document, namespace: str | None = None) -> Document:
    metadata = {"name": "one"} if namespace is None else {"name": "one", "namespace": namespace}
    return {"apiVersion": CORE, "kind": kind, "metadata": metadata, "spec": spec}


BACKUP_KEY = {"apiVersion": "v1", "kind": "Secret", "name": "backup", "namespace": "garden"}
BUCKET = object_of(
    "BackupBucket",
    {"provider": {"type": "aws", "region": "eu-west-1"}, "seedName": "berlin", "credentialsRef": BACKUP_KEY},
)
ENTRY = object_of("BackupEntry", {"bucketName": "one", "seedName": "berlin"}, "garden-dev")
SHOOT_REF = {"apiVersion": CORE, "kind": "Shoot", "name": "apollo", "namespace": "garden-dev"}
REGISTRATION = object_of(
    "ControllerRegistration",
    {
        "resources": [
            {"kind": "OperatingSystemConfig", "type": "linux", "primary": True},
            {"kind": "Extension", "type": "dns", "autoEnable": ["shoot"], "clusterCompatibility": ["shoot", "seed"]},
        ],
        "deployment": {"policy": "OnDemand", "deploymentRefs": [{"name": "linux"}]},
    },
)
INSTALLATION = object_of(
    "ControllerInstallation", {"registrationRef": {"name": "linux"}, "seedRef": {"name": "berlin"}}
)


def test_a_seed_does_not_switch_off_the_dns_of_its_shoots_unless_it_did_already() -> None:
    off, on = ({"spec": {"settings": {"shootDNS": {"enabled": is_on}}}} for is_on in (False, True))
    old = merged(SEEDED, off)
    template = {"spec": {"gardenlet": {"config": {"seedConfig": off}}}}
    assert fields_of(old) == fields_of(old, SEEDED) == ["spec.settings.shootDNS.enabled"]
    assert fields_of(merged(old, {"metadata": {"labels": {"a": "b"}}}), old) == fields_of(merged(SEEDED, on)) == []
    found = fields_of(merged(MANAGED_SEED, template))
    assert "spec.gardenlet.config.seedConfig.spec.settings.shootDNS.enabled" in found


@pytest.mark.parametrize("document", [SEEDED, BUCKET, ENTRY, REGISTRATION, INSTALLATION], ids=lambda each: each["kind"])
def test_what_keeps_the_rules_is_accepted(document: Document) -> None:
    assert fields_of(document) == fields_of(document, document) == []


@pytest.mark.parametrize(
    ("document", "path", "value", "field"),
    [
        (CREDENTIALS_BINDING, "quotas", [{"name": "large", "namespace": "garden-dev"}], "quotas"),
        (CREDENTIALS_BINDING, "quotas", ABSENT, "quotas"),
        (SECRET_BINDING, "quotas", [{"name": "small"}], "quotas"),
        (EXPOSURE_CLASS, "scheduling", {"seedSelector": {"matchLabels": {"a": "b"}}}, "scheduling"),
        (SEEDED, "spec.backup.provider", "gcp", "spec.backup.provider"),
        (SEEDED, "spec.backup.region", "eu-north-1", "spec.backup.region"),
        (SEEDED, "spec.backup.region", ABSENT, "spec.backup.region"),
        (SEEDED, "spec.backup", ABSENT, "spec.backup"),
        (SEEDED, "spec.ingress.domain", "other.example.org", "spec.ingress.domain"),
        (SEEDED, "spec.networks.ipFamilies", ["IPv6"], "spec.networks.ipFamilies"),
        (SEEDED, "spec.dns.defaults", [], "spec.dns.defaults"),
        (
            changed(PROJECT, "spec.createdBy", {"kind": "User", "name": "ann"}),
            "spec.createdBy.name",
            "bob",
            "spec.createdBy",
        ),
        (PROJECT, "spec.owner", ABSENT, "spec.owner"),
        (CLOUD_PROFILE, "spec.limits.maxNodesTotal", 49, "spec.limits.maxNodesTotal"),
        (BUCKET, "spec.provider.region", "eu-north-1", "spec.provider"),
        (BUCKET, "spec.seedName", "paris", "spec.seedName"),
        (REGISTRATION, "spec.resources.0.primary", False, "spec.resources[0].primary"),
        (REGISTRATION, "spec.resources.1.primary", False, "spec.resources[1].primary"),
        (INSTALLATION, "spec.registrationRef.name", "other", "spec.registrationRef.name"),
        (INSTALLATION, "spec.seedRef.name", "paris", "spec.seedRef.name"),
        (INSTALLATION, "spec.shootRef", {"name": "a", "namespace": "b"}, "spec.shootRef.name"),
    ],
)
def test_what_is_set_once_stays(document: Document, path: str, value: Any, field: str) -> None:
    assert field in fields_of(changed(document, path, value), document)


@pytest.mark.parametrize(
    ("document", "path", "value"),
    [
        (SEED, "spec.backup", {"provider": "aws"}),
        (SEED, "spec.ingress", {"domain": "ingress.example.org"}),
        (SEED, "spec.networks.ipFamilies", ["IPv4"]),
        (SEEDED, "spec.dns.defaults", [{"domain": "example.org"}, {"domain": "example.com"}]),
        (CLOUD_PROFILE, "spec.limits.maxNodesTotal", 51),
        (CLOUD_PROFILE, "spec.limits", ABSENT),
        (ENTRY, "spec.seedName", "paris"),
        (REGISTRATION, "spec.resources", []),
        (REGISTRATION, "spec.resources.0.primary", ABSENT),
        (PROJECT, "spec.owner.name", "bob"),
        (SECRET_BINDING, "quotas", []),
    ],
)
def test_what_is_set_later_or_grows_is_accepted(document: Document, path: str, value: Any) -> None:
    assert fields_of(changed(document, path, value), document) == []


@pytest.mark.parametrize("document", [REGISTRATION, INSTALLATION], ids=lambda each: each["kind"])
def test_an_extension_that_is_deleted_stays_as_it_was(document: Document) -> None:
    deleted = changed(document, "metadata.deletionTimestamp", "2026-01-01T00:00:00Z")
    assert fields_of(changed(deleted, "spec.deployment", {"policy": "Always"}), deleted) == ["spec"]
    assert fields_of(changed(deleted, "metadata.labels", {"a": "b"}), deleted) == []


REJECTED: list[tuple[Document, str, Any, str]] = [
    (EXPOSURE_CLASS, "handler", "x" * 35, "handler"),
    (PROJECT, "spec.description", "", "spec.description"),
    (PROJECT, "spec.namespace", "dev", "spec.namespace"),
    (PROJECT, "spec.namespace", "gardener-system-seed-lease", "spec.namespace"),
    (SEED, "metadata.annotations", {"gardener.cloud/operation": "retry"}, OPERATION),
    (SEED, "spec.backup", {"provider": "gcp"}, "spec.backup.region"),
    (SEED, "spec.volume", {"minimumSize": "-1Gi"}, "spec.volume.minimumSize"),
    (SEED, "spec.volume", {"providers": [{"purpose": "a", "name": "b"}] * 2}, "spec.volume.providers[1].purpose"),
    (SEED, "spec.volume", {"providers": [{"name": "b"}]}, "spec.volume.providers[0].purpose"),
    (SEED, "spec.settings", {"zoneSelection": {"mode": "Prefer"}}, "spec.settings.zoneSelection"),
    (
        SEED,
        "spec.settings",
        {"loadBalancerServices": {"zones": [{"name": "a"}]}},
        "spec.settings.loadBalancerServices.zones",
    ),
    (BUCKET, "spec.provider.region", "", "spec.provider.region"),
    (BUCKET, "spec.seedName", ABSENT, "spec.seedName"),
    (BUCKET, "spec.shootRef", SHOOT_REF, "spec.seedName"),
    (ENTRY, "spec.bucketName", "", "spec.bucketName"),
    (ENTRY, "spec", {"bucketName": "one", "shootRef": {**SHOOT_REF, "kind": "Seed"}}, "spec.shootRef.kind"),
    (ENTRY, "spec", {"bucketName": "one", "shootRef": {**SHOOT_REF, "namespace": "x"}}, "spec.shootRef.namespace"),
    (REGISTRATION, "spec.resources.0.kind", "Operator", "spec.resources[0].kind"),
    (REGISTRATION, "spec.resources.0.type", "", "spec.resources[0].type"),
    (REGISTRATION, "spec.resources.0.autoEnable", ["shoot"], "spec.resources[0].autoEnable"),
    (REGISTRATION, "spec.resources.1", {"kind": "OperatingSystemConfig", "type": "linux"}, "spec.resources[1]"),
    (REGISTRATION, "spec.resources.1.clusterCompatibility", ["seed"], "spec.resources[1].autoEnable"),
    (REGISTRATION, "spec.resources.1.clusterCompatibility", ["garden"], "spec.resources[1].clusterCompatibility[0]"),
    (REGISTRATION, "spec.resources.1.reconcileTimeout", "-1s", "spec.resources[1].reconcileTimeout"),
    (REGISTRATION, "spec.resources.1.lifecycle", {"delete": "AfterWorker"}, "spec.resources[1].lifecycle.delete"),
    (REGISTRATION, "spec.deployment.policy", "Never", "spec.deployment.policy"),
    (REGISTRATION, "spec.deployment.deploymentRefs", [{"name": "a"}, {"name": "b"}], "spec.deployment.deploymentRefs"),
    (REGISTRATION, "spec.deployment.seedSelector", {}, "spec.deployment.seedSelector"),
    (INSTALLATION, "spec.registrationRef", ABSENT, "spec.registrationRef.name"),
    (INSTALLATION, "spec.seedRef", ABSENT, "spec.seedRef"),
]


@pytest.mark.parametrize(("document", "path", "value", "field"), REJECTED)
def test_what_breaks_a_rule_is_rejected_with_its_field(document: Document, path: str, value: Any, field: str) -> None:
    broken = changed(document, path, value)
    assert field in fields_of(broken)
    assert fields_of(changed(broken, "metadata.labels", {"other": "change"}), broken) == []


def with_operation(document: Document, operation: str | None) -> Document:
    return merged(document, {"metadata": {"annotations": {"gardener.cloud/operation": operation}}})


def test_an_operation_of_a_seed_waits_for_one_that_is_acted_upon() -> None:
    for operation in ("reconcile", *RENEWALS, "renew-garden-access-secrets", "renew-workload-identity-tokens"):
        assert fields_of(with_operation(SEED, operation), SEED) == []
        assert fields_of(with_operation(SEED, None), with_operation(SEED, operation)) == []
    renewed = with_operation(SEED, "renew")
    assert fields_of(with_operation(SEED, "reconcile"), renewed) == [OPERATION]
    with pytest.raises(InvalidResource, match=r"renew: wait until it is done, or take it off first"):
        validate(with_operation(SEED, "reconcile"), renewed)
    for one, other in (RENEWALS, RENEWALS[::-1]):
        assert fields_of(with_operation(SEED, other), with_operation(SEED, one)) == [], "both demand the same"
    again = with_operation(MANAGED_SEED, "reconcile")
    assert fields_of(with_operation(MANAGED_SEED, "renew-kubeconfig"), again) == [OPERATION]


@pytest.mark.parametrize(
    ("document", "stored", "operation"),
    [
        (SEED, "reconcile", "renew"),
        (SEED, "renew-garden-access-secrets", "renew"),
        (SEED, "renew-workload-identity-tokens", "reconcile"),
        (SEED, "of-an-older-version", "renew"),
        (MANAGED_SEED, "renew-kubeconfig", "reconcile"),
    ],
)
def test_an_operation_that_nothing_acts_on_holds_up_no_other(document: Document, stored: str, operation: str) -> None:
    assert fields_of(with_operation(document, operation), with_operation(document, stored)) == []


DEFINED: Document = merged(
    CLOUD_PROFILE,
    {
        "spec": {
            "machineCapabilities": [
                {"name": "architecture", "values": ["amd64", "arm64"]},
                {"name": "network", "values": ["basic", "fast"]},
            ],
            "machineTypes": [
                {"name": "small", "cpu": "1", "gpu": "0", "memory": "1Gi", "capabilities": {"architecture": ["arm64"]}}
            ],
            "machineImages": [
                {
                    "name": "linux",
                    "versions": [
                        {
                            "version": "1.0.0",
                            "architectures": ["arm64"],
                            "capabilityFlavors": [{"architecture": ["arm64"]}],
                        }
                    ],
                }
            ],
        }
    },
)
ONE_ARCHITECTURE = changed(DEFINED, "spec.machineCapabilities.0.values", ["arm64"])
TYPE, IMAGE = "spec.machineTypes[0]", "spec.machineImages[0].versions[0]"
FLAVORS = "spec.machineImages.0.versions.0.capabilityFlavors"


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("spec.machineCapabilities.1.name", "architecture", "spec.machineCapabilities[1].name"),
        ("spec.machineCapabilities.1.name", "a/b", "spec.machineCapabilities[1].name"),
        ("spec.machineCapabilities.1.values", [], "spec.machineCapabilities[1].values"),
        ("spec.machineCapabilities.1.values", ["a b"], "spec.machineCapabilities[1].values[0]"),
        ("spec.machineCapabilities.0.values", ["x86"], "spec.machineCapabilities[0].values[0]"),
        ("spec.machineCapabilities", [{"name": "network", "values": ["fast"]}], "spec.machineCapabilities"),
        ("spec.machineCapabilities", ABSENT, f"{TYPE}.capabilities"),
        ("spec.machineCapabilities", ABSENT, f"{IMAGE}.capabilityFlavors"),
        ("spec.machineTypes.0.capabilities", {"network": ["slow"]}, f"{TYPE}.capabilities.network[0]"),
        ("spec.machineTypes.0.capabilities", {"disk": ["ssd"]}, f"{TYPE}.capabilities.disk"),
        ("spec.machineTypes.0.capabilities", {"architecture": ["arm64", "amd64"]}, f"{TYPE}.capabilities.architecture"),
        ("spec.machineTypes.0.architecture", "amd64", f"{TYPE}.architecture"),
        (FLAVORS, [{"architecture": ["arm64", "amd64"]}], f"{IMAGE}.capabilityFlavors[0].architecture"),
        (FLAVORS, [{"network": ["fast"]}], f"{IMAGE}.capabilityFlavors[0].architecture"),
        (FLAVORS, [{"architecture": ["arm64"], "network": ["slow"]}], f"{IMAGE}.capabilityFlavors[0].network[0]"),
        (FLAVORS, [{"architecture": ["arm64"], "disk": ["ssd"]}], f"{IMAGE}.capabilityFlavors[0].disk"),
        (FLAVORS, [], f"{IMAGE}.capabilityFlavors"),
        (FLAVORS, [{"architecture": ["amd64"]}], f"{IMAGE}.architectures[0]"),
    ],
)
def test_capabilities_are_those_that_are_defined(path: str, value: Any, field: str) -> None:
    broken = changed(DEFINED, path, value)
    assert field in fields_of(broken)
    assert fields_of(changed(broken, "spec.limits.maxNodesTotal", 60), broken) == [], "stored ones stay"


def test_what_is_defined_may_be_left_open_where_there_is_one_architecture() -> None:
    assert fields_of(DEFINED) == fields_of(ONE_ARCHITECTURE) == []
    assert fields_of(changed(ONE_ARCHITECTURE, FLAVORS, [])) == []
    assert fields_of(changed(ONE_ARCHITECTURE, FLAVORS, [{"network": ["fast"]}])) == []


def test_a_new_shoot_brings_no_finalizers_of_controllers() -> None:
    assert fields_of(a_shoot(metadata={"finalizers": ["gardener"]})) == ["metadata.finalizers[0]"]
    for finalizer in ("gardener", "gardener.cloud/reference-protection"):
        held = merged(SHOOT, {"metadata": {"finalizers": ["example.org/hold", finalizer]}})
        assert fields_of(held) == ["metadata.finalizers[1]"]
        assert fields_of(held, SHOOT) == fields_of(held, held) == [], "controllers put it on"
    assert fields_of(merged(SHOOT, {"metadata": {"finalizers": ["example.org/hold"]}})) == []


def test_a_new_label_has_no_capitals_before_the_slash() -> None:
    assert fields_of(a_shoot(metadata={"labels": {"A.b/c": "d"}})) == ["metadata.labels"]
    labelled = merged(SHOOT, {"metadata": {"labels": {"Example.org/Team": "moon"}}})
    assert fields_of(labelled) == fields_of(labelled, SHOOT) == ["metadata.labels"]
    assert fields_of(merged(labelled, {"spec": {"purpose": "testing"}}), labelled) == [], "it was stored"
    assert fields_of(merged(SHOOT, {"metadata": {"labels": {"example.org/Team": "Moon"}}})) == []
    assert fields_of(merged(SHOOT, {"metadata": {"annotations": {"Example.org/Team": "moon"}}})) == []


def test_annotations_are_measured_in_bytes() -> None:
    def annotated(value: str) -> Document:
        return merged(SHOOT, {"metadata": {"annotations": {"a": value}}})

    most = 256 * 1024 - 1
    for value in ("x" * most, "ä" * (most // 2)):
        key_of(annotated(value))
    for value in ("x" * (most + 1), "ä" * (most // 2 + 1)):
        with pytest.raises(InvalidResource, match=r"metadata\.annotations: have 26214[0-9] bytes"):
            key_of(annotated(value))


def test_an_event_owns_nothing() -> None:
    owner = {"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "11111111-1111-1111-1111-111111111111"}
    with pytest.raises(InvalidResource, match=r"ownerReferences\[0\]\.kind: an Event owns nothing"):
        key_of(merged(SHOOT, {"metadata": {"ownerReferences": [owner]}}))


def test_workers_that_are_taken_away_leave_no_fields_for_nodes() -> None:
    shoot = changed(a_shoot(), "spec.kubernetes.kubelet", {"maxPods": 100})
    shoot = changed(shoot, "spec.networking", {"type": "calico"})
    assert fields_of(changed(shoot, "spec.provider.workers", ABSENT), shoot) == [
        "spec.provider.workers",
        "spec.kubernetes.kubelet",
        "spec.networking.type",
    ]


def test_problems_of_a_shoot_are_told_in_gardeners_order_what_stays_first() -> None:
    stored = changed(a_shoot(), "spec.dns", {"domain": "a.example.org"})
    shoot = changed(stored, "spec.purpose", "fun")
    for path, value in (
        ("spec.dns.domain", "b.example.org"),
        ("spec.provider.type", "A b"),
        ("spec.region", ABSENT),
        ("spec.cloudProfile", {"kind": "CloudProfile"}),
        ("spec.networking.pods", "x"),
        ("spec.kubernetes.version", "new"),
    ):
        shoot = changed(shoot, path, value)
    assert list(dict.fromkeys(fields_of(shoot, stored)))[:3] == ["spec.region", "spec.dns.domain", "spec.provider.type"]
    assert list(dict.fromkeys(fields_of(shoot))) == [
        "spec.cloudProfile.name",
        "spec.provider.type",
        "spec.kubernetes.version",
        "spec.networking.pods",
        "spec.region",
        "spec.purpose",
    ]


def test_faults_of_metadata_and_of_the_rest_are_told_at_once() -> None:
    wrong = changed(changed(SEED, "metadata.labels", {"a b": "c"}), "spec.provider.region", ABSENT)
    with pytest.raises(
        InvalidResource, match=r"^Seed berlin is invalid: metadata\.labels: .*; spec\.provider\.region:"
    ) as found:
        key_of_applied(wrong)
    assert [problem.field for problem in found.value.problems] == ["metadata.labels", "spec.provider.region"]


def test_a_large_manifest_with_wrong_metadata_is_checked_no_further() -> None:
    wrong = changed(changed(SEED, "metadata.labels", {"a b": "c"}), "spec.provider.region", ABSENT)
    wrong = changed(wrong, "metadata.annotations", {"long": "x" * 20_000})
    with pytest.raises(InvalidResource) as found:
        key_of_applied(wrong)
    assert [problem.field for problem in found.value.problems] == ["metadata.labels"]


@pytest.mark.parametrize(("pods", "mask", "is_accepted"), [(None, 24, True), (None, 25, False), (60, 25, True)])
def test_a_mask_of_nodes_that_is_stated_later_is_the_one_that_there_is(
    pods: int | None, mask: int, *, is_accepted: bool
) -> None:
    stored = a_shoot() if pods is None else changed(a_shoot(), "spec.kubernetes.kubelet", {"maxPods": pods})
    where = "spec.kubernetes.kubeControllerManager.nodeCIDRMaskSize"
    found = fields_of(changed(stored, where, mask), stored)
    assert found == ([] if is_accepted else [where])


def test_an_empty_field_of_what_stays_counts_as_absent() -> None:
    stored = changed(PROJECT, "spec.createdBy", {"kind": "ServiceAccount", "name": "bot", "namespace": "garden-dev"})
    assert fields_of(changed(stored, "spec.createdBy.apiGroup", ""), stored) == []
    assert fields_of(changed(stored, "spec.createdBy.name", "other"), stored) == ["spec.createdBy"]
