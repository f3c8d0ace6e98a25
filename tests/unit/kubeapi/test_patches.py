"""What patches and updates make of an object."""

from typing import Any

import pytest

from gardenbus.common.errors import BadRequest
from gardenbus.kubeapi.domain.manifests import (
    created,
    difference,
    named_in,
    replacement,
    with_generated_name,
)
from gardenbus.kubeapi.domain.patches.strategic import merged_strategically
from gardenbus.kubeapi.domain.request_info import request_info
from gardenbus.kubeapi.domain.statuses import Rejected

CREATE = request_info("POST", "/api/v1/namespaces/garden/configmaps", {})
STORED: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {
        "name": "one",
        "namespace": "garden",
        "uid": "u",
        "resourceVersion": "7",
        "finalizers": ["a"],
        "labels": {"x": "y"},
    },
    "data": {"a": "b"},
    "status": {"phase": "there"},
}


@pytest.mark.parametrize(
    ("present", "patch", "wanted"),
    [
        (
            {"conditions": [{"type": "A", "status": "False"}, {"type": "B"}]},
            {"conditions": [{"type": "A", "status": "True"}]},
            {"conditions": [{"type": "A", "status": "True"}, {"type": "B"}]},
        ),
        ({"finalizers": ["a"]}, {"finalizers": ["b"]}, {"finalizers": ["a", "b"]}),
        ({"finalizers": ["a", "b"]}, {"$deleteFromPrimitiveList/finalizers": ["a"]}, {"finalizers": ["b"]}),
        (
            {"env": [{"name": "a"}, {"name": "b"}]},
            {"env": [{"name": "a", "$patch": "delete"}]},
            {"env": [{"name": "b"}]},
        ),
        ({"data": {"a": "b"}}, {"data": {"$patch": "replace", "c": "d"}}, {"data": {"c": "d"}}),
        ({"a": 1, "b": 2}, {"$retainKeys": ["b"], "b": 3}, {"b": 3}),
        ({"zones": ["a"]}, {"zones": ["b"]}, {"zones": ["b"]}),
        (
            {"taints": [{"key": "a"}, {"key": "b"}]},
            {"$setElementOrder/taints": [{"key": "b"}, {"key": "a"}], "taints": [{"key": "a", "value": "v"}]},
            {"taints": [{"key": "b"}, {"key": "a", "value": "v"}]},
        ),
    ],
)
def test_a_strategic_patch_merges_lists_by_their_keys(present: Any, patch: Any, wanted: Any) -> None:
    assert merged_strategically(present, patch) == wanted


def test_an_unknown_directive_is_named() -> None:
    with pytest.raises(BadRequest, match=r"\$patch"):
        merged_strategically({}, {"$patch": "turn"})


def test_an_update_without_finalizers_and_labels_removes_them_and_nothing_that_the_server_owns() -> None:
    given = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "garden"}, "data": {}}
    patch = replacement(STORED, given)
    assert patch["metadata"] == {"finalizers": [], "labels": {"x": None}}
    assert patch["data"] == {"a": None}
    assert "status" not in patch


def test_an_update_with_what_is_stored_changes_nothing() -> None:
    assert replacement(STORED, STORED) == {}
    assert difference(STORED, {**STORED, "status": {}}) == {}


def test_a_new_object_takes_namespace_and_kind_from_the_path() -> None:
    document = named_in({"metadata": {"name": "a", "creationTimestamp": None}, "status": {}}, CREATE)
    assert created(document) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "garden"},
    }


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"kind": "Secret", "metadata": {"name": "a"}}, "kind"),
        ({"metadata": {"name": "a", "namespace": "other"}}, "namespace"),
        ({"metadata": {"name": "a", "resourceVersion": "3"}}, "resourceVersion"),
        ({"metadata": {}}, "metadata.name"),
    ],
)
def test_a_new_object_that_contradicts_its_path_is_rejected(document: Any, field: str) -> None:
    with pytest.raises((BadRequest, Rejected), match=field):
        with_generated_name(created(named_in(document, CREATE)), "x")


def test_a_name_is_generated_from_its_prefix() -> None:
    document, is_generated = with_generated_name({"metadata": {"generateName": "a-"}}, "bcdfg")
    assert is_generated
    assert document["metadata"]["name"] == "a-bcdfg"


def test_texts_of_a_secret_are_stored_as_data() -> None:
    info = request_info("POST", "/api/v1/namespaces/garden/secrets", {})
    found = named_in({"metadata": {"name": "a"}, "stringData": {"p": "q"}, "data": {"x": "eA=="}}, info)
    assert found["data"] == {"x": "eA==", "p": "cQ=="}
    assert "stringData" not in found
