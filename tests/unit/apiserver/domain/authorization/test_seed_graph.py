"""The graph of a seed's gardenlet: the edges of Gardener's `pkg/admissioncontroller/webhook/auth/seed/graph`."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.authorization.seed_graph import is_of_seed, own_keys, references_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import LEASE_NAMESPACE, ObjectKey
from tests.support.builders import a_shoot

NAMESPACE, SEED = "garden-dev", "aws"
SHOOT = ObjectKey("shoot", NAMESPACE, "apollo")
ALWAYS = {ObjectKey("namespace", "", NAMESPACE), ObjectKey("shootstate", NAMESPACE, "apollo")}


def key(kind: str, name: str, namespace: str = NAMESPACE) -> ObjectKey:
    return ObjectKey(kind, namespace, name)


def of_server(**fields: Any) -> Document:
    return {"kubernetes": {"version": "1.31.0", "kubeAPIServer": fields}}


def resource(kind: str, name: str, version: str = "v1") -> Document:
    return {"resources": [{"name": "r", "resourceRef": {"apiVersion": version, "kind": kind, "name": name}}]}


@pytest.mark.parametrize(
    ("spec", "leads_to"),
    [
        ({}, set[ObjectKey]()),
        ({"cloudProfileName": "aws"}, {key("cloudprofile", "aws", "")}),
        ({"cloudProfile": {"kind": "CloudProfile", "name": "aws"}}, {key("cloudprofile", "aws", "")}),
        ({"cloudProfile": {"kind": "NamespacedCloudProfile", "name": "own"}}, {key("namespacedcloudprofile", "own")}),
        ({"exposureClassName": "public"}, {key("exposureclass", "public", "")}),
        ({"secretBindingName": "b"}, {key("secretbinding", "b")}),
        ({"credentialsBindingName": "b"}, {key("credentialsbinding", "b")}),
        (of_server(auditConfig={"auditPolicy": {"configMapRef": {"name": "audit"}}}), {key("configmap", "audit")}),
        (of_server(structuredAuthentication={"configMapName": "authn"}), {key("configmap", "authn")}),
        (
            of_server(structuredAuthorization={"configMapName": "authz", "kubeconfigs": [{"secretName": "k"}]}),
            {key("configmap", "authz"), key("secret", "k")},
        ),
        (of_server(admissionPlugins=[{"name": "P", "kubeconfigSecretName": "k"}]), {key("secret", "k")}),
        (
            {
                "dns": {
                    "providers": [{"type": "a"}, {"type": "b", "secretName": "dns"}, {"type": "c", "secretName": "e"}]
                }
            },
            {key("secret", "dns"), key("secret", "e")},
        ),
        (resource("Secret", "s"), {key("secret", "s")}),
        (resource("ConfigMap", "c"), {key("configmap", "c")}),
        (resource("Deployment", "d", "apps/v1"), set[ObjectKey]()),
    ],
)
def test_a_shoot_leads_to_what_it_names_and_to_its_state(spec: Document, leads_to: set[ObjectKey]) -> None:
    shoot: Document = {**a_shoot(), "spec": spec}
    assert set(references_of(SHOOT, shoot)) == ALWAYS | leads_to


CREDENTIALS = {"name": "s", "namespace": "garden-other"}
QUOTAS: list[Document] = [{"name": "q"}, {"name": "r", "namespace": "garden"}]
OF_QUOTAS = {key("quota", "q"), key("quota", "r", "garden")}
CONFIG: Document = {
    "backup": {"credentialsRef": {"kind": "Secret", "name": "backup", "namespace": "garden"}},
    "dns": {"provider": {"type": "a", "secretRef": {"name": "dns", "namespace": "garden"}}},
    **resource("ConfigMap", "c"),
}
OF_CONFIG = {key("secret", "backup", "garden"), key("secret", "dns", "garden"), key("configmap", "c", "garden")}


@pytest.mark.parametrize(
    ("start", "document", "leads_to"),
    [
        (key("secretbinding", "b"), {"secretRef": CREDENTIALS}, {key("secret", "s", "garden-other")}),
        (key("secretbinding", "b"), {"secretRef": {"name": "s"}, "quotas": QUOTAS}, {key("secret", "s"), *OF_QUOTAS}),
        (
            key("credentialsbinding", "b"),
            {"credentialsRef": {"kind": "Secret", **CREDENTIALS}},
            {key("secret", "s", "garden-other")},
        ),
        (
            key("credentialsbinding", "b"),
            {"credentialsRef": {"kind": "WorkloadIdentity", "name": "w"}, "quotas": QUOTAS},
            {key("workloadidentity", "w"), *OF_QUOTAS},
        ),
        (key("credentialsbinding", "b"), {"credentialsRef": {"kind": "Pod", "name": "p"}}, set[ObjectKey]()),
        (
            key("namespacedcloudprofile", "own"),
            {"spec": {"parent": {"kind": "CloudProfile", "name": "aws"}}},
            {key("cloudprofile", "aws", "")},
        ),
        (
            key("managedseed", "child", "garden"),
            {"spec": {"gardenlet": {"config": {"seedConfig": {"spec": CONFIG}}}}},
            {key("seed", "child", ""), key("lease", "child", LEASE_NAMESPACE), *OF_CONFIG},
        ),
        (
            key("managedseed", "child", "garden"),
            {"spec": {}},
            {key("seed", "child", ""), key("lease", "child", LEASE_NAMESPACE)},
        ),
        (key("seed", SEED, ""), {"spec": CONFIG}, OF_CONFIG),
        (
            key("seed", SEED, ""),  # a gardenlet writes its own Seed: it leads out of `garden` nowhere
            {"spec": {"backup": {"credentialsRef": {"kind": "Secret", **CREDENTIALS}}}},
            set[ObjectKey](),
        ),
        (key("secret", "s"), {"data": {}}, set[ObjectKey]()),
        (key("project", "dev", ""), {"spec": {"namespace": NAMESPACE}}, set[ObjectKey]()),
    ],
)
def test_bindings_profiles_and_seeds_lead_on(start: ObjectKey, document: Document, leads_to: set[ObjectKey]) -> None:
    assert set(references_of(start, document)) == leads_to


@pytest.mark.parametrize(
    ("kind", "fields", "is_its"),
    [
        *((kind, {"spec": {"seedName": SEED}}, True) for kind in ("shoot", "backupbucket", "backupentry", "bastion")),
        *((kind, {"status": {"seedName": SEED}}, True) for kind in ("shoot", "backupentry")),
        ("controllerinstallation", {"spec": {"seedRef": {"name": SEED}}}, True),
        ("shoot", {"spec": {"seedName": "gcp"}, "status": {"seedName": SEED}}, True),  # its control plane moves
        ("shoot", {"spec": {"seedName": "gcp"}, "status": {"seedName": "gcp"}}, False),
        ("shoot", {"spec": {}}, False),
        ("secret", {"spec": {"seedName": SEED}}, False),
        ("managedseed", {"spec": {"seedName": SEED}}, False),
    ],
)
def test_what_names_a_seed_is_of_it(kind: str, fields: Document, is_its: bool) -> None:
    assert is_of_seed(key(kind, "one"), fields, SEED) == is_its


def test_a_seed_its_lease_and_its_gardenlet_are_its_gardenlets_own() -> None:
    own = {key("seed", SEED, ""), key("lease", SEED, LEASE_NAMESPACE), key("gardenlet", SEED, "garden")}
    assert set(own_keys(SEED)) == own
