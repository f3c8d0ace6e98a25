from typing import Any

import pytest

from gardenbus.cli.manifests.patches import contested, split_pairs
from gardenbus.common.api.json_patches import patched
from gardenbus.common.api.merge_patches import merge_patch_between
from gardenbus.common.errors import BadRequest

DOCUMENT: dict[str, Any] = {"a": {"b": [1, 2, 3], "c/d": "x", "e~f": 1}, "g": None}


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ({"op": "add", "path": "/a/new", "value": 1}, {"a": {**DOCUMENT["a"], "new": 1}, "g": None}),
        ({"op": "add", "path": "/a/b/1", "value": 9}, {"a": {**DOCUMENT["a"], "b": [1, 9, 2, 3]}, "g": None}),
        ({"op": "add", "path": "/a/b/-", "value": 9}, {"a": {**DOCUMENT["a"], "b": [1, 2, 3, 9]}, "g": None}),
        ({"op": "remove", "path": "/a"}, {"g": None}),
        ({"op": "remove", "path": "/a/b/0"}, {"a": {**DOCUMENT["a"], "b": [2, 3]}, "g": None}),
        ({"op": "replace", "path": "/a/c~1d", "value": "y"}, {"a": {**DOCUMENT["a"], "c/d": "y"}, "g": None}),
        ({"op": "replace", "path": "/a/e~0f", "value": 2}, {"a": {**DOCUMENT["a"], "e~f": 2}, "g": None}),
        ({"op": "replace", "path": "/a/b/0", "value": 7}, {"a": {**DOCUMENT["a"], "b": [7, 2, 3]}, "g": None}),
        ({"op": "move", "from": "/a", "path": "/z"}, {"z": DOCUMENT["a"], "g": None}),
        ({"op": "copy", "from": "/a/b", "path": "/g"}, {"a": DOCUMENT["a"], "g": [1, 2, 3]}),
        ({"op": "test", "path": "/a/b/2", "value": 3}, DOCUMENT),
        ({"op": "replace", "path": "", "value": {"n": 1}}, {"n": 1}),
    ],
)
def test_a_json_patch_is_carried_out(operation: dict[str, Any], expected: Any):
    assert patched(DOCUMENT, [operation]) == expected


@pytest.mark.parametrize(
    ("operations", "problem"),
    [
        ({"op": "add"}, "a JSON patch is a list"),
        ([{"op": "upsert", "path": "/a"}], "op is one of add, remove"),
        ([{"op": "remove"}], "path a text"),
        ([{"op": "remove", "path": "a"}], "begins with /"),
        ([{"op": "remove", "path": "/no"}], "operation 0 (remove): there is no /no"),
        ([{"op": "replace", "path": "/no", "value": 1}], "there is no /no"),
        ([{"op": "add", "path": "/a/b/9", "value": 1}], "there is no /a/b/9"),
        ([{"op": "add", "path": "/a/b/x", "value": 1}], "there is no /a/b/x"),
        ([{"op": "test", "path": "/a/b/0", "value": 5}], "/a/b/0 is 1, not 5"),
        ([{"op": "test", "path": "/g/h", "value": 5}], "there is no /g/h"),
        ([{"op": "copy", "path": "/g"}], "operation 0 (copy)"),
        ([{"op": "copy", "from": "/no", "path": "/g"}], "operation 0 (copy): there is no"),
        ([{"op": "test", "path": "/g", "value": None}] * 10_001, "10,000 operations at most, not 10,001"),
    ],
)
def test_what_cannot_be_carried_out_is_said_with_its_operation(operations: object, problem: str):
    before = repr(DOCUMENT)

    with pytest.raises(BadRequest) as rejected:
        patched(DOCUMENT, operations)

    assert problem in rejected.value.message
    assert repr(DOCUMENT) == before


def test_a_value_that_is_copied_into_itself_does_not_double_for_ever():
    operations = [{"op": "copy", "from": "/a", "path": f"/a/{number}"} for number in range(200)]

    with pytest.raises(BadRequest, match=r"\(copy\): the copies of one patch add 3,145,728 bytes at most"):
        patched(DOCUMENT, operations)


def test_a_merge_patch_holds_what_differs_and_nothing_else():
    after = {"a": {"b": [1, 2], "c/d": "x", "new": {"n": 1}}, "g": None}

    assert merge_patch_between(DOCUMENT, after) == {"a": {"b": [1, 2], "new": {"n": 1}, "e~f": None}}
    assert merge_patch_between(DOCUMENT, DOCUMENT) == {}


def test_fields_are_contested_when_others_have_changed_them_otherwise():
    base: dict[str, Any] = {"spec": {"a": 1, "b": 1, "c": {"d": 1}}, "status": {"x": 1}}
    patch: dict[str, Any] = {"spec": {"a": 2, "new": 1, "c": {"d": 2}}}

    def changed(**spec: Any) -> list[str]:
        return list(contested(base, {"spec": {**base["spec"], **spec}, "status": {"x": 2}}, patch))

    assert changed() == []
    assert changed(b=5) == []
    assert changed(a=2) == []
    assert changed(a=3) == ["spec.a"]
    assert changed(new=7) == ["spec.new"]
    assert changed(c={"d": 9}) == ["spec.c.d"]
    assert changed(c="other") == ["spec.c"]


def test_labels_are_told_from_names():
    objects, pairs = split_pairs(["shoot", "apollo", "tier=gold", "empty=", "old-"])

    assert objects == ["shoot", "apollo"]
    assert pairs.patch == {"tier": "gold", "empty": "", "old": None}
    assert pairs.already({"tier": "iron", "empty": ""}) == ["tier (iron)"]


@pytest.mark.parametrize("words", [["shoot", "a"], ["shoot", "a", "k=v", "k-"]])
def test_nothing_to_set_or_both_is_refused(words: list[str]):
    with pytest.raises(BadRequest):
        split_pairs(words)
