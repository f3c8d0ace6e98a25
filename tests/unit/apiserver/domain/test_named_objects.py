"""What objects name is there. Gardener's cases (`plugin/pkg/global/resourcereferencemanager`)."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.admission import Admission
from gardenbus.apiserver.domain.named_objects import admit_named_objects, named_object_queries
from gardenbus.apiserver.domain.plugins import resource_reference_manager
from gardenbus.apiserver.domain.related_objects import ObjectQuery, RelatedObjects
from gardenbus.common.api.document import Document
from gardenbus.common.api.index_keys import index_keys_of
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import InvalidResource
from tests.support.builders import a_seed, a_shoot, merged

NAMESPACE = "garden-dev"
SERVER = "spec.kubernetes.kubeAPIServer"
IDENTITY = {"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "WorkloadIdentity", "name": "me"}


def key(kind: str, name: str, namespace: str = NAMESPACE) -> ObjectKey:
    return ObjectKey(kind, namespace, name)


def a_server(**fields: Any) -> Document:
    return {"kubernetes": {"kubeAPIServer": fields}}


def problems(document: Document, *found: ObjectKey, old: Document | None = None) -> set[str]:
    """Fields that are rejected where these objects are there."""
    requested = {query.key for query in named_object_queries(document, old) if isinstance(query, ObjectQuery)}
    related = RelatedObjects(objects={each: {"kind": each.kind} for each in found if each in requested})
    try:
        admit_named_objects(document, old, related)
    except InvalidResource as error:
        return {one.field for one in error.problems if one.message.endswith("not found: apply it first")}
    return set()


@pytest.mark.parametrize(
    ("spec", "field", "named"),
    [
        (
            {"resources": [{"name": "a", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}}]},
            "spec.resources[0].resourceRef",
            key("secret", "s"),
        ),
        (
            {"resources": [{"name": "a", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c"}}]},
            "spec.resources[0].resourceRef",
            key("configmap", "c"),
        ),
        ({"resources": [{"name": "a", "resourceRef": IDENTITY}]}, "spec.resources[0].resourceRef", None),
        (
            {"dns": {"providers": [{"type": "a"}, {"type": "b", "secretName": "dns"}]}},
            "spec.dns.providers[1].secretName",
            key("secret", "dns"),
        ),
        (
            {"dns": {"providers": [{"type": "a", "credentialsRef": IDENTITY}]}},
            "spec.dns.providers[0].credentialsRef",
            key("workloadidentity", "me"),
        ),
        (
            a_server(auditConfig={"auditPolicy": {"configMapRef": {"name": "audit"}}}),
            f"{SERVER}.auditConfig.auditPolicy.configMapRef",
            key("configmap", "audit"),
        ),
        (
            a_server(structuredAuthentication={"configMapName": "authn"}),
            f"{SERVER}.structuredAuthentication.configMapName",
            key("configmap", "authn"),
        ),
        (
            a_server(structuredAuthorization={"configMapName": "authz"}),
            f"{SERVER}.structuredAuthorization.configMapName",
            key("configmap", "authz"),
        ),
        (
            a_server(structuredAuthorization={"kubeconfigs": [{"secretName": "one"}]}),
            f"{SERVER}.structuredAuthorization.kubeconfigs[0].secretName",
            key("secret", "one"),
        ),
        (
            a_server(admissionPlugins=[{"name": "P"}, {"name": "Q", "kubeconfigSecretName": "q"}]),
            f"{SERVER}.admissionPlugins[1].kubeconfigSecretName",
            key("secret", "q"),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_shoot_names_in_its_namespace_is_there(spec: Document, field: str, named: ObjectKey | None) -> None:
    shoot = a_shoot(spec=spec)
    assert problems(shoot) == {field}
    assert problems(shoot, named or key("workloadidentity", "me")) == set()
    assert problems(shoot, key("secret", "s", "garden-prod"), key("configmap", "c", "garden-prod")) == {field}
    assert problems(shoot, old=a_shoot()) == {field}, "named by a change"


def test_of_a_stored_object_only_what_is_new_is_looked_for_and_nothing_once_it_is_being_deleted() -> None:
    shoot = a_shoot(spec={"dns": {"providers": [{"type": "a", "secretName": "dns"}]}})
    changed = merged(shoot, {"spec": {"purpose": "testing"}})
    assert named_object_queries(changed, shoot) == []
    leaving = merged(shoot, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert problems(leaving, old=a_shoot()) == set()
    assert named_object_queries(a_shoot(), None) == []


@pytest.mark.parametrize(
    ("binding", "found", "expected"),
    [
        ({"kind": "SecretBinding", "secretRef": {"name": "s"}}, [], {"secretRef"}),
        ({"kind": "SecretBinding", "secretRef": {"name": "s"}}, [key("secret", "s")], set[str]()),
        ({"kind": "SecretBinding", "secretRef": {"name": "s", "namespace": "x"}}, [key("secret", "s")], {"secretRef"}),
        (
            {"kind": "SecretBinding", "secretRef": {"name": "s"}, "quotas": [{"name": "q"}, {"name": "r"}]},
            [key("secret", "s"), key("quota", "q")],
            {"quotas[1]"},
        ),
        ({"kind": "CredentialsBinding", "credentialsRef": IDENTITY}, [], {"credentialsRef"}),
        ({"kind": "CredentialsBinding", "credentialsRef": IDENTITY}, [key("workloadidentity", "me")], set[str]()),
        (
            {"kind": "CredentialsBinding", "credentialsRef": IDENTITY | {"kind": "InternalSecret"}},
            [key("internalsecret", "me")],
            set[str](),
        ),
    ],
)
def test_credentials_and_quotas_of_a_binding_are_there(
    binding: Document, found: list[ObjectKey], expected: set[str]
) -> None:
    stored = {"apiVersion": "v1", "metadata": {"namespace": NAMESPACE, "name": "mine"}, **binding}
    assert problems(stored, *found) == expected
    assert problems(stored, old=stored) == set()


BUCKET = {"kind": "BackupBucket", "spec": {"seedName": "aws", "credentialsRef": {"name": "b", "namespace": "garden"}}}
ENTRY = {"kind": "BackupEntry", "spec": {"seedName": "aws", "bucketName": "store"}}
DEPLOYMENTS = {"deployment": {"deploymentRefs": [{"name": "one"}, {"name": "two"}]}}


@pytest.mark.parametrize(
    ("stored", "found", "expected"),
    [
        (BUCKET, [], {"spec.seedName", "spec.credentialsRef"}),
        (BUCKET, [key("seed", "aws", ""), key("secret", "b", "garden")], set[str]()),
        (
            merged(BUCKET, {"spec": {"credentialsRef": IDENTITY}}),
            [key("seed", "aws", ""), key("workloadidentity", "me", "garden")],
            set[str](),
        ),
        (
            merged(BUCKET, {"spec": {"seedName": None, "credentialsRef": {"kind": "WorkloadIdentity"}}}),
            [key("secret", "b", "garden")],
            {"spec.credentialsRef"},
        ),
        (ENTRY, [], {"spec.seedName", "spec.bucketName"}),
        (ENTRY, [key("seed", "aws", "")], {"spec.bucketName"}),
        (ENTRY, [key("seed", "aws", ""), key("backupbucket", "store", "")], set[str]()),
        (merged(ENTRY, {"spec": {"seedName": None, "bucketName": "no name\n"}}), [], set[str]()),
        (
            {"kind": "ControllerRegistration", "spec": DEPLOYMENTS},
            [key("controllerdeployment", "one", "")],
            {"spec.deployment.deploymentRefs[1].name"},
        ),
    ],
)
def test_what_backups_and_registrations_name_is_there(
    stored: Document, found: list[ObjectKey], expected: set[str]
) -> None:
    assert problems(stored, *found) == expected
    assert problems(stored, old=stored) == set()


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
def test_what_a_seed_names_is_there_in_garden(kind: str) -> None:
    named = {"name": "a", "resourceRef": {"apiVersion": "v1", "kind": kind, "name": "s"}}
    seed = a_seed(spec={"resources": [named]})
    assert problems(seed) == problems(seed, old=a_seed()) == {"spec.resources[0].resourceRef"}
    assert problems(seed, key(kind.lower(), "s")) == {"spec.resources[0].resourceRef"}
    assert problems(seed, key(kind.lower(), "s", "garden")) == problems(seed, old=seed) == set()
    assert ObjectQuery(key(kind.lower(), "s", "garden")) in Admission().related_queries(seed, None)


def test_a_bucket_with_entries_is_not_deleted_and_a_seed_may_wait_for_its_backup() -> None:
    admission = Admission((resource_reference_manager.PLUGIN,))
    (guard,) = admission.deletion_guards({**BUCKET, "metadata": {"name": "store", "finalizers": ["gardener"]}})
    entry = {**ENTRY, "metadata": {"name": "e", "namespace": NAMESPACE}}
    assert (guard.kind, [guard.name]) == ("references", list(index_keys_of(entry).references))
    seed = a_seed(spec={"backup": {"credentialsRef": {"kind": "Secret", "name": "later", "namespace": "garden"}}})
    assert admission.related_queries(seed, None) == ()


def test_the_plugin_looks_for_them() -> None:
    admission = Admission((resource_reference_manager.PLUGIN,))
    shoot = a_shoot(spec={"dns": {"providers": [{"type": "a", "secretName": "dns"}]}})
    queries = admission.related_queries(shoot, None)
    assert ObjectQuery(key("secret", "dns")) in queries
    found: dict[ObjectKey, Document] = {
        query.key: {"metadata": {}} for query in queries if isinstance(query, ObjectQuery)
    }
    admission.admit(shoot, None, RelatedObjects(objects=found))
    del found[key("secret", "dns")]
    with pytest.raises(InvalidResource, match=r"spec\.dns\.providers\[0\]\.secretName"):
        admission.admit(shoot, None, RelatedObjects(objects=found))
