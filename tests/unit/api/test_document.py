import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.common.api.document import NO_SPEC, Document, StoredObject, section, split, split_encoded
from gardenbus.common.api.keys import ObjectKey
from tests.support.builders import a_seed, a_shoot, merged

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")


def stored(document: Document, **changes: Any) -> StoredObject:
    fields: dict[str, Any] = {"uid": "u", "version": 7, "generation": 2, "created_at": "then", **changes}
    return StoredObject(key=APOLLO, parts=split(document), **fields)


def test_a_section_is_the_mapping_at_a_path_or_empty() -> None:
    document = {"spec": {"dns": {"domain": "a"}, "list": [1]}, "status": None}
    assert section(document, "spec", "dns") == {"domain": "a"}
    assert section(document, "spec", "list") == section(document, "status", "x") == section(document, "y") == {}
    assert section(document) == document


def test_a_shoots_seeds_and_the_stores_labels_are_kept_apart() -> None:
    labels = {"a": "b", "name.seed.gardener.cloud/old": "true"}
    shoot = a_shoot(spec={"seedName": "new"}, status={"seedName": "old", "x": 1}, metadata={"labels": labels})
    parts = split(shoot)
    assert (parts.seed_name, parts.status_seed_name) == ("new", "old")
    assert parts.labels == b'"a":"b"'
    assert parts.status == b'"x":1'
    assert b"seedName" not in parts.spec


def test_seed_names_of_other_kinds_are_ordinary_fields() -> None:
    parts = split(a_seed(spec={"seedName": "x"}, metadata={"labels": {"name.seed.gardener.cloud/x": "true"}}))
    assert parts.seed_name == ""
    assert b'"seedName":"x"' in parts.spec
    assert b"name.seed" in parts.labels


def test_no_spec_and_an_empty_spec_are_two_things() -> None:
    bare = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}
    assert split(bare).spec == NO_SPEC
    assert split({**bare, "spec": {}}).spec == b""
    assert "spec" not in stored(bare, generation=1).document()
    assert "generation" not in stored(bare, generation=1).document()["metadata"]
    assert stored({**bare, "spec": {}}).document()["spec"] == {}


def test_what_the_store_owns_comes_out_and_never_in() -> None:
    shoot = a_shoot(metadata={"uid": "x", "resourceVersion": "1", "managedFields": [], "finalizers": ["f"]})
    metadata = stored(shoot, deleting_at="now").document()["metadata"]
    assert metadata == {
        "name": "apollo",
        "namespace": "garden-dev",
        "uid": "u",
        "resourceVersion": "7",
        "generation": 2,
        "creationTimestamp": "then",
        "deletionTimestamp": "now",
        "finalizers": ["f"],
    }


def test_a_parked_refusal_shows_as_the_last_operation() -> None:
    shoot = stored(a_shoot(status={"x": 1}), pending=b'"state":"Pending"')
    assert shoot.document()["status"] == {"x": 1, "lastOperation": {"state": "Pending"}}
    assert stored(a_shoot(), pending=b'"state":"Pending"').document()["status"].keys() == {"lastOperation"}


def test_the_refusal_stands_in_place_of_an_operation_that_somebody_else_wrote() -> None:
    status = {"lastOperation": {"state": "Processing"}, "x": 1}
    shoot = stored(a_shoot(status=status), pending=b'"state":"Pending"')
    assert shoot.encoded().count(b"lastOperation") == 1
    assert shoot.document()["status"] == {"lastOperation": {"state": "Pending"}, "x": 1}
    assert stored(a_shoot(status=status)).document()["status"] == status


@pytest.mark.parametrize(
    ("spec", "status", "seeds"),
    [("", "", []), ("a", "", ["a"]), ("a", "a", ["a"]), ("b", "a", ["a", "b"]), ("", "a", ["a"])],
)
def test_a_shoots_labels_name_its_seeds(spec: str, status: str, seeds: list[str]) -> None:
    shoot = stored(a_shoot(spec={"seedName": spec or None}, status={"seedName": status or None}))
    labels = shoot.document()["metadata"].get("labels", {})
    assert labels == {f"name.seed.gardener.cloud/{seed}": "true" for seed in seeds}


@pytest.mark.parametrize(
    "document",
    [
        a_shoot(spec={"seedName": "a"}, status={"seedName": "b"}, metadata={"labels": {"x": "y"}, "finalizers": ["f"]}),
        a_seed(metadata={"labels": {"name.seed.gardener.cloud/x": "true"}, "finalizers": ["f", "g"]}),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {}, "data": {"a": [None, 1.5]}},
    ],
    ids=lambda document: document["kind"],
)
def test_cutting_a_manifest_gives_the_parts_that_it_was_put_together_of(document: Document) -> None:
    whole = stored(document, deleting_at="now")
    assert split_encoded(whole.encoded()) == whole.parts


def test_labels_and_annotations_can_be_read_alone() -> None:
    seed = stored(a_seed(metadata={"labels": {"a": "b"}, "annotations": {"c": "d"}}))
    shoot = stored(a_shoot(spec={"seedName": "x"}))
    assert (seed.labels, seed.annotations) == ({"a": "b"}, {"c": "d"})
    assert (shoot.labels, shoot.annotations) == ({"name.seed.gardener.cloud/x": "true"}, {})


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
mappings = st.dictionaries(st.text(min_size=1, max_size=5), values, max_size=4)


@given(spec=mappings, status=mappings.filter(bool), annotations=mappings, rest=mappings)
def test_every_manifest_comes_back_as_it_was_sent(
    spec: Document, status: Document, annotations: Document, rest: Document
) -> None:
    existing = {"apiVersion", "kind", "metadata", "spec", "status"}
    rest = {name: value for name, value in rest.items() if name not in existing}
    metadata = {"name": "apollo", "namespace": "garden-dev", "annotations": annotations}
    document = {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, "spec": spec, "status": status, **rest}
    whole = stored(document)
    expected = merged(document, {"metadata": {"uid": "u", "resourceVersion": "7"}})
    expected["metadata"] |= {"generation": 2, "creationTimestamp": "then"}
    assert whole.document() == expected
    assert json.loads(whole.encoded()) == expected
    assert split(whole.document()) == whole.parts, "taking apart what was put together changes nothing"
    assert split_encoded(whole.encoded()) == whole.parts, "and so does cutting it"
