"""Applying, patching, reporting."""

import json

import pytest

from gardenbus.apiserver.domain.merging import (
    CONFIRMED_BY,
    CREATED_BY,
    apply_three_way,
    is_sent_whole,
    merge_patch,
    without_system_fields,
)
from gardenbus.common.api.document import STATUS_LABEL, Document
from gardenbus.common.api.garden.tolerations import UNCHECKED_TOLERATIONS
from tests.support.admissions import all_related_queries
from tests.support.builders import a_shoot


def an_object(**fields: object) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}, **fields}


def test_creating_takes_what_is_given_without_nulls() -> None:
    assert apply_three_way(None, None, an_object(data={"x": "1", "y": None})) == an_object(data={"x": "1"})


def test_given_fields_are_set_missing_ones_go_and_foreign_ones_stay() -> None:
    current = an_object(data={"mine": "1", "gone": "1", "theirs": "1"})
    merged = apply_three_way(current, an_object(data={"mine": "1", "gone": "1"}), an_object(data={"mine": "2"}))
    assert merged == an_object(data={"mine": "2", "theirs": "1"})


def test_a_mapping_that_is_no_longer_given_goes_whole() -> None:
    merged = apply_three_way(an_object(data={"a": "1", "b": "2"}), an_object(data={"a": "1"}), an_object())
    assert merged == an_object()


def test_lists_are_replaced_whole() -> None:
    assert apply_three_way(an_object(x=[1, 2, 3]), an_object(x=[1, 2, 3]), an_object(x=[4])) == an_object(x=[4])


def test_null_takes_a_foreign_field_away() -> None:
    assert apply_three_way(an_object(x={"a": 1, "b": 2}), None, an_object(x={"a": None})) == an_object(x={"b": 2})


def test_null_that_was_null_last_time_leaves_what_the_server_set() -> None:
    given = an_object(x={"a": None, "b": 1}, y=None)
    current = an_object(x={"a": "set", "b": 1}, y={"c": 2})
    assert apply_three_way(current, given, given) == current
    assert apply_three_way(current, an_object(x={"b": 1}), given) == an_object(x={"b": 1})
    assert apply_three_way(current, an_object(x={"a": "set", "b": 1}, y=None), given) == an_object(
        x={"b": 1}, y={"c": 2}
    )
    assert apply_three_way(current, given, an_object(x={"b": 1})) == current


def test_null_is_no_value_in_the_entries_of_lists() -> None:
    entries = [
        {"name": "a", "zones": None, "machine": {"image": None, "type": "m"}, "taints": [{"key": "k", "value": None}]}
    ]
    kept = [{"name": "a", "machine": {"type": "m"}, "taints": [{"key": "k"}]}]
    given = an_object(workers=entries)
    stored = apply_three_way(None, None, given)
    assert stored == an_object(workers=kept)
    assert apply_three_way(stored, given, given) == stored
    assert merge_patch(an_object(), {"workers": entries}) == stored
    assert apply_three_way(None, None, an_object(zones=[None])) == an_object(zones=[None])


def test_a_null_of_a_placed_shoot_leaves_it_where_it_is() -> None:
    given = a_shoot(spec={"region": "eu-west-1"})
    given["spec"]["seedName"] = None
    placed = a_shoot(spec={"region": "eu-west-1", "seedName": "aws-eu1"})
    assert apply_three_way(placed, given, given)["spec"]["seedName"] == "aws-eu1"


def test_status_and_what_the_store_owns_are_not_taken_from_the_manifest() -> None:
    current = an_object(status={"a": 1})
    current["metadata"] |= {"uid": "u", "resourceVersion": "5", "generation": 2}
    given = an_object(status={"b": 2})
    given["metadata"] = {**given["metadata"], "uid": "other", "resourceVersion": "5", "generation": 9}
    assert apply_three_way(current, None, given) == current


def test_what_the_system_wrote_into_metadata_is_not_missed_later() -> None:
    printed = a_shoot(
        metadata={
            "labels": {"shoot.gardener.cloud/status": "healthy", "name.seed.gardener.cloud/s": "true", "mine": "1"},
            "annotations": {"gardener.cloud/created-by": "ann"},
            "finalizers": ["gardener"],
        },
        spec={"seedName": "s"},
    )
    merged = apply_three_way(printed, without_system_fields(printed), a_shoot())
    assert merged["metadata"]["labels"] == {
        "shoot.gardener.cloud/status": "healthy",
        "name.seed.gardener.cloud/s": "true",
    }
    assert merged["metadata"]["annotations"] == {"gardener.cloud/created-by": "ann"}
    assert merged["metadata"]["finalizers"] == ["gardener"]
    assert merged["spec"]["seedName"] == "s"


def test_finalizers_are_a_set_of_which_only_own_ones_go() -> None:
    def held(*finalizers: str) -> Document:
        return a_shoot(metadata={"finalizers": list(finalizers)})

    merged = apply_three_way(held("theirs", "old", "gardener"), held("old", "gardener"), held("new"))
    assert merged["metadata"]["finalizers"] == ["theirs", "gardener", "new"]
    assert "finalizers" not in apply_three_way(held("old"), held("old"), a_shoot())["metadata"]


def test_owners_are_merged_by_uid() -> None:
    def owned(*uids: str) -> Document:
        return a_shoot(metadata={"ownerReferences": [{"uid": uid, "name": uid} for uid in uids]})

    merged = apply_three_way(owned("theirs", "old"), owned("old"), owned("new"))
    assert [owner["uid"] for owner in merged["metadata"]["ownerReferences"]] == ["theirs", "new"]


def test_applying_leaves_its_arguments_alone() -> None:
    current, last, given = an_object(x={"a": {"b": 1}}), an_object(x={"a": {"b": 1}}), an_object(x={"a": {"c": 2}})
    before = json.dumps([current, last, given])
    apply_three_way(current, last, given)
    assert json.dumps([current, last, given]) == before


def test_what_was_applied_is_remembered_without_status_and_versions() -> None:
    given = an_object(status={"a": 1}, data={"x": "1"})
    given["metadata"] = {**given["metadata"], "resourceVersion": "5"}
    assert without_system_fields(given) == an_object(data={"x": "1"})


def test_a_merge_patch_follows_the_examples_of_its_rfc() -> None:
    cases: list[tuple[Document, Document, Document]] = [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ]
    assert [merge_patch(current, patch) for current, patch, _ in cases] == [result for *_, result in cases]


@pytest.mark.parametrize(
    ("metadata", "status", "is_whole"),
    [
        ({}, None, True),
        ({"labels": {"a": "b"}, "annotations": {"c": "d"}}, None, True),
        ({"annotations": {CREATED_BY: "ann", CONFIRMED_BY: "bob", UNCHECKED_TOLERATIONS: "key"}}, None, True),
        ({"labels": {STATUS_LABEL: "healthy"}}, None, False),
        ({"uid": "u"}, None, False),
        ({}, {"conditions": []}, False),
    ],
)
def test_admission_asks_for_the_same_where_the_system_only_took_annotations_of_its_own_out(
    metadata: Document, status: Document | None, is_whole: bool
) -> None:
    given = a_shoot(metadata=metadata) | ({} if status is None else {"status": status})
    sent = without_system_fields(given)
    assert is_sent_whole(sent, given) == is_whole
    assert all_related_queries(sent, None) == all_related_queries(given, None)
