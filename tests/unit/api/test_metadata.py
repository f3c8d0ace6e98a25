"""Metadata's rules, for every kind."""

from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.metadata import key_of, reference_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.errors import BadRequest, InvalidResource, Unsupported
from tests.support.builders import a_cloudprofile, a_seed, a_shoot

EMPTY: Document = {}


def fields_of(document: Document) -> set[str]:
    with pytest.raises(InvalidResource) as caught:
        key_of(document)
    return {problem.field for problem in caught.value.problems}


def test_the_key_of_a_manifest_is_kind_namespace_and_name() -> None:
    assert key_of(a_shoot()) == ObjectKey("shoot", "garden-dev", "apollo")
    assert key_of(a_seed("s1")) == ObjectKey("seed", "", "s1")


@pytest.mark.parametrize(
    "name", ["a.b*>", "a b", "A", "-a", "a-", "a/b", "a:b", "", "ä", "a\n", "x" * 64, "a.b", "\x00", "..", "a..b"]
)
def test_names_of_shoots_are_labels(name: str) -> None:
    with pytest.raises((InvalidResource, BadRequest), match=r"metadata\.name"):
        key_of(a_shoot(name))


@pytest.mark.parametrize("kind", ["Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"])
@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        *((name, True) for name in ("system:node", "secretReader", "a.b:C_d", "oidc:ann@example.com", "x" * 253)),
        *(
            (name, False)
            for name in ("a/b", "50%", "..", ".a", "a.", "a..b", "a b", "a*", "a>b", "a\n", "ä", "x" * 254)
        ),
    ],
)
def test_names_of_rbac_are_parts_of_paths(kind: str, name: str, is_valid: bool) -> None:
    metadata = {"name": name, **({} if kind.startswith("Cluster") else {"namespace": "garden-dev"})}
    document = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": metadata}
    if is_valid:
        key = key_of(document)
        assert ObjectKey.from_stored(key.stored) == ObjectKey.from_tail(key.tail) == key
    else:
        assert fields_of(document) == {"metadata.name"}


def test_other_names_may_have_dots() -> None:
    assert key_of(a_cloudprofile("aws.v2")).name == "aws.v2"
    assert fields_of(a_cloudprofile("aws..v2")) == {"metadata.name"}
    assert fields_of(a_cloudprofile("a.b*>")) == {"metadata.name"}


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"kind": "Shoot"},
        {"apiVersion": "v1", "kind": ""},
        {"apiVersion": 1, "kind": "Shoot"},
        {"apiVersion": "v1", "kind": ["Shoot"], "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "Namespace"},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": []},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": 5}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "a-"}},
    ],
)
def test_without_kind_or_name_nothing_can_be_done(document: Document) -> None:
    with pytest.raises(BadRequest):
        key_of(document)


def test_an_unknown_group_is_unsupported() -> None:
    with pytest.raises(Unsupported, match=r"^apiVersion"):
        key_of({"apiVersion": "apps.example/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "b"}})


def test_a_shoot_needs_a_namespace_and_a_seed_has_none() -> None:
    assert fields_of(a_shoot(metadata={"namespace": None})) == {"metadata.namespace"}
    assert fields_of(a_shoot(metadata={"namespace": ""})) == {"metadata.namespace"}
    assert fields_of(a_shoot(metadata={"namespace": "a.b"})) == {"metadata.namespace"}
    assert fields_of(a_seed(metadata={"namespace": "garden"})) == {"metadata.namespace"}


def test_a_kind_that_nobody_knows_may_have_a_namespace_or_not() -> None:
    etcd: Document = {"apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd", "metadata": {"name": "main"}}
    assert key_of(etcd) == ObjectKey("etcd", "", "main")
    assert key_of({**etcd, "metadata": {"name": "main", "namespace": "a"}}).namespace == "a"


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        ({"labels": ["a"]}, "metadata.labels"),
        ({"labels": {"a": 1}}, "metadata.labels[a]"),
        ({"labels": {"a": None}}, "metadata.labels[a]"),
        ({"labels": {"a b": "c"}}, "metadata.labels"),
        ({"labels": {"/a": "c"}}, "metadata.labels"),
        ({"labels": {"a": "b c"}}, "metadata.labels"),
        ({"labels": {"a": "x" * 64}}, "metadata.labels"),
        ({"labels": {"x" * 64: "a"}}, "metadata.labels"),
        ({"annotations": {"a": True}}, "metadata.annotations[a]"),
        ({"annotations": {"-": ""}}, "metadata.annotations"),
        ({"annotations": {"a": "x" * 300_000}}, "metadata.annotations"),
        ({"finalizers": "a"}, "metadata.finalizers"),
        ({"finalizers": [1]}, "metadata.finalizers[0]"),
        ({"finalizers": ["a", "a"]}, "metadata.finalizers[1]"),
        ({"finalizers": ["a b"]}, "metadata.finalizers[0]"),
        ({"ownerReferences": [EMPTY]}, "metadata.ownerReferences[0].uid"),
        ({"ownerReferences": ["a"]}, "metadata.ownerReferences[0]"),
        ({"ownerReferences": [{**EMPTY, "uid": "*"}]}, "metadata.ownerReferences[0].uid"),
        ({"ownerReferences": [{**EMPTY, "uid": "a\r\nPUB b"}]}, "metadata.ownerReferences[0].uid"),
        ({"resourceVersion": 5}, "metadata.resourceVersion"),
    ],
)
def test_each_rule_names_its_field(metadata: Document, field: str) -> None:
    assert field in fields_of(a_shoot(metadata=metadata))


def test_one_owner_at_most_is_the_controller() -> None:
    def owner(uid: str) -> Document:
        return {"apiVersion": "v1", "kind": "Secret", "name": "a", "uid": uid, "controller": True}

    assert fields_of(a_shoot(metadata={"ownerReferences": [owner("1"), owner("2")]})) == {"metadata.ownerReferences"}


def test_all_problems_are_told_at_once() -> None:
    broken = a_shoot("A", metadata={"labels": {"a b": "c"}, "finalizers": [""]})
    assert fields_of(broken) == {"metadata.name", "metadata.labels", "metadata.finalizers[0]"}


def test_metadata_as_the_store_writes_it_passes() -> None:
    key_of(
        a_shoot(
            metadata={
                "uid": "u",
                "resourceVersion": "7",
                "generation": 2,
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"name.seed.gardener.cloud/s1": "true", "shoot.gardener.cloud/status": "healthy", "a": ""},
                "finalizers": ["gardener", "example.com/own"],
                "annotations": {"UPPER.example.com/x": "any text, äöü"},
            }
        )
    )


@pytest.mark.parametrize(
    ("reference", "key"),
    [
        ({"kind": "shoot", "namespace": "a", "name": "b"}, ObjectKey("shoot", "a", "b")),
        ({"kind": "Seeds", "name": "b"}, ObjectKey("seed", "", "b")),
        (a_seed("b"), ObjectKey("seed", "", "b")),
    ],
)
def test_a_delete_request_names_its_object_shortly_or_by_manifest(reference: Document, key: ObjectKey) -> None:
    assert reference_of(reference) == key


@pytest.mark.parametrize(
    ("reference", "error", "reported"),
    [
        ({"kind": "shoot", "name": "b"}, InvalidResource, "namespace"),
        ({"kind": "seed", "namespace": "a", "name": "b"}, InvalidResource, "namespace"),
        ({"kind": "shoot", "namespace": "a"}, BadRequest, "name"),
        ({"kind": "boot", "namespace": "a", "name": "b"}, Unsupported, "kind"),
        ({"kind": "shoot", "namespace": "a", "name": "a.b*>"}, InvalidResource, "name"),
        ({"name": "b"}, BadRequest, "kind"),
    ],
)
def test_a_delete_request_that_names_nothing_is_refused(reference: Document, error: Any, reported: str) -> None:
    with pytest.raises(error, match=reported):
        reference_of(reference)


@pytest.mark.parametrize(
    ("kind", "version", "advice"),
    [
        ("Shoot", "core.gardener.cloud/v1beta1", "garden-<project>"),
        ("Deployment", "apps/v1", "<its name>"),
        ("Pod", "v1", "<its name>"),
    ],
)
def test_the_advice_for_a_missing_namespace_is_that_of_the_kind(kind: str, version: str, advice: str) -> None:
    with pytest.raises(InvalidResource, match=f"write namespace: {advice}"):
        key_of({"apiVersion": version, "kind": kind, "metadata": {"name": "web"}})
