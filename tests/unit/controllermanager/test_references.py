"""Objects that shoots use: which, and until when. Cases as in Gardener's reference controller."""

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.document_parts import REFERENCE_FINALIZER
from gardenbus.common.api.keys import ObjectKey
from gardenbus.controllermanager.domain.references import (
    ReferenceIndex,
    referenced_objects,
    with_protection,
)
from tests.support.builders import a_seed, a_shoot


def keys(*names: str) -> frozenset[ObjectKey]:
    """Of `secret/a`, in the shoot's namespace."""
    return frozenset(ObjectKey(kind, "garden-dev", name) for kind, name in (each.split("/") for each in names))


def resource(kind: str, name: str, api_version: str = "v1") -> Document:
    return {"name": name, "resourceRef": {"apiVersion": api_version, "kind": kind, "name": name}}


SECURITY = "security.gardener.cloud/v1alpha1"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, keys()),
        ({"dns": {"providers": [{"secretName": "a"}, {"type": "x"}]}}, keys("secret/a")),
        (
            {"dns": {"providers": [{"credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "a"}}]}},
            keys("secret/a"),
        ),
        (
            {
                "dns": {
                    "providers": [{"credentialsRef": {"apiVersion": SECURITY, "kind": "WorkloadIdentity", "name": "a"}}]
                }
            },
            keys("workloadidentity/a"),
        ),
        ({"resources": [resource("Secret", "a"), resource("ConfigMap", "b")]}, keys("secret/a", "configmap/b")),
        ({"resources": [resource("Deployment", "a", "apps/v1"), resource("Secret", "b", "v2")]}, keys()),
        (
            {"kubernetes": {"kubeAPIServer": {"auditConfig": {"auditPolicy": {"configMapRef": {"name": "policy"}}}}}},
            keys("configmap/policy"),
        ),
        (
            {
                "kubernetes": {
                    "kubeAPIServer": {
                        "structuredAuthentication": {"configMapName": "a"},
                        "structuredAuthorization": {"configMapName": "b", "kubeconfigs": [{"secretName": "c"}]},
                        "admissionPlugins": [{"name": "x", "kubeconfigSecretName": "d"}, {"name": "y"}],
                    }
                }
            },
            keys("configmap/a", "configmap/b", "secret/c", "secret/d"),
        ),
    ],
)
def test_a_shoot_names_what_it_uses(spec: Document, expected: frozenset[ObjectKey]) -> None:
    assert referenced_objects(a_shoot(spec=spec)) == expected


def test_a_shoot_that_is_deleted_uses_them_until_its_gardenlet_lets_go() -> None:
    spec = {"dns": {"providers": [{"secretName": "a"}]}}
    leaving = a_shoot(spec=spec, metadata={"deletionTimestamp": "x", "finalizers": ["gardener", REFERENCE_FINALIZER]})
    left = a_shoot(spec=spec, metadata={"deletionTimestamp": "x", "finalizers": [REFERENCE_FINALIZER]})
    assert referenced_objects(leaving) == keys("secret/a")
    assert referenced_objects(left) == keys()


def test_the_finalizer_comes_once_and_goes() -> None:
    bare: Document = {"metadata": {"name": "a", "finalizers": ["other"]}}
    held = with_protection(bare, is_protected=True)
    assert held is not None
    assert held["metadata"]["finalizers"] == ["other", REFERENCE_FINALIZER]
    assert with_protection(held, is_protected=True) is None
    assert with_protection(held, is_protected=False) == bare
    assert with_protection(bare, is_protected=False) is None
    assert with_protection({"metadata": {"deletionTimestamp": "x"}}, is_protected=True) is None


def test_the_index_says_what_nothing_uses_any_more() -> None:
    index = ReferenceIndex()
    first, second = sorted(keys("shoot/a", "shoot/b"))
    assert index.replace(first, keys("secret/x", "secret/y")) == []
    assert index.replace(second, keys("secret/x")) == []
    assert index.replace(first, keys("secret/x")) == sorted(keys("secret/y"))
    assert index.replace(first, keys("secret/x")) == []
    assert index.replace(first, keys()) == []
    assert index.is_used(*keys("secret/x"))
    assert index.replace(second, keys()) == sorted(keys("secret/x"))
    assert not index.is_used(*keys("secret/x"))


def test_a_seed_names_what_it_uses_in_garden() -> None:
    resources = [resource("Secret", "a"), resource("ConfigMap", "b"), resource("Deployment", "c", "apps/v1")]
    named = {ObjectKey("secret", "garden", "a"), ObjectKey("configmap", "garden", "b")}
    assert referenced_objects(a_seed(spec={"resources": resources})) == named
    assert referenced_objects(a_seed(spec={"dns": {"providers": [{"secretName": "a"}]}})) == keys()
    left = a_seed(
        spec={"resources": resources}, metadata={"deletionTimestamp": "x", "finalizers": [REFERENCE_FINALIZER]}
    )
    assert referenced_objects(left) == keys()
