"""Fields of an object: as paths, as Kubernetes writes them, and whose they are after a write."""

import time
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gardenbus.common.api.document import Document
from gardenbus.common.api.field_ownership import (
    ABSENT,
    OTHER_WRITES,
    OWNERS_ANNOTATION,
    FieldValues,
    Owner,
    Path,
    fields_v1,
    managed_fields,
    owners_of,
    paths_of,
    updated,
    with_owners,
    without_paths,
    written,
)

SHOOT: Document = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Shoot",
    "metadata": {"name": "apollo", "namespace": "garden-dev", "labels": {"a": "b"}, "finalizers": ["x/y"], "uid": "u"},
    "spec": {
        "region": "eu-west-1",
        "addons": {},
        "provider": {"workers": [{"name": "a", "minimum": 1, "zones": ["1", "2"]}, {"name": "b"}]},
    },
    "status": {"progress": 1},
}
PATHS = {
    ".metadata.labels.a",
    '.metadata.finalizers[="x/y"]',
    ".spec.region",
    ".spec.addons",
    '.spec.provider.workers[name="a"]',
    '.spec.provider.workers[name="a"].name',
    '.spec.provider.workers[name="a"].minimum',
    '.spec.provider.workers[name="a"].zones',
    '.spec.provider.workers[name="b"]',
    '.spec.provider.workers[name="b"].name',
}


def value_at(document: Document, path: Path) -> Any:
    return FieldValues(document).at(path)


def test_leaves_and_entries_with_a_key_are_fields_and_what_the_server_sets_is_none() -> None:
    assert {written(path) for path in paths_of(SHOOT)} == PATHS


def test_fields_have_the_form_of_managed_fields() -> None:
    workers = fields_v1(paths_of(SHOOT))["f:spec"]["f:provider"]["f:workers"]
    assert workers['k:{"name":"a"}'] == {".": {}, "f:name": {}, "f:minimum": {}, "f:zones": {}}
    (entry,) = managed_fields(
        with_owners(SHOOT, [Owner("flux", "Apply", "v1", paths_of(SHOOT), "2026-11-30T00:00:00Z")])["metadata"][
            "annotations"
        ][OWNERS_ANNOTATION]
    )
    assert entry == {
        "manager": "flux",
        "operation": "Apply",
        "apiVersion": "v1",
        "time": "2026-11-30T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields_v1(paths_of(SHOOT)),
    }


names = st.sampled_from(["a", "b", "c"])
empty: Document = {}
values: st.SearchStrategy[Any] = st.recursive(
    st.integers(0, 3) | names | st.just(empty) | st.lists(st.integers(0, 2), max_size=2),
    lambda child: st.dictionaries(names, child, max_size=3),
    max_leaves=8,
)
workers: st.SearchStrategy[list[Document]] = st.lists(
    st.fixed_dictionaries({"name": names}, optional={"minimum": st.integers(0, 3)}),
    max_size=3,
    unique_by=lambda each: each["name"],
)
documents: st.SearchStrategy[Document] = st.fixed_dictionaries(
    {
        "apiVersion": st.just("v1"),
        "kind": st.just("Shoot"),
        "metadata": st.fixed_dictionaries(
            {"name": st.just("one")},
            optional={
                "labels": st.dictionaries(names, names, max_size=2),
                "finalizers": st.lists(names, unique=True, max_size=2),
            },
        ),
    },
    optional={"data": st.dictionaries(names, values, max_size=3), "workers": workers},
)


@given(documents)
def test_each_field_is_there_and_none_is_left_without_them(document: Document) -> None:
    paths = paths_of(document)
    assert all(value_at(document, path) is not ABSENT for path in paths)
    left = without_paths(document, paths)
    assert all(value_at(left, path) is ABSENT for path in paths)
    assert paths_of(left) <= {("f:data",), ("f:workers",)}  # of nothing but what was empty from the start


@given(documents, documents)
def test_owners_are_read_back_as_they_were_written(one: Document, other: Document) -> None:
    owners = [Owner("a", "Apply", "v1", paths_of(one), "now"), Owner("b", "Update", "v1", paths_of(other))]
    assert owners_of(with_owners(one, owners)) == tuple(each for each in owners if each.paths)


@given(documents, documents)
def test_who_changes_a_field_owns_it_and_nobody_else_does(before: Document, after: Document) -> None:
    assume(paths_of(before))
    owned = with_owners(before, [Owner("flux", "Apply", "v1", paths_of(before))])
    kept = {**after["metadata"], "annotations": owned["metadata"]["annotations"]}
    stored = updated(owned, {**after, "metadata": kept}, "kubectl-edit")
    of = {each.manager: each.paths for each in owners_of(stored)}
    for path in paths_of(after):
        is_changed = value_at(before, path) != value_at(after, path)
        assert (path in of.get("kubectl-edit", ())) is is_changed
        if is_changed:
            assert path not in of.get("flux", ())
    assert all(value_at(after, path) == value_at(before, path) for path in of.get("flux", ()))


def test_an_object_that_was_never_applied_has_no_owners_and_stays_without() -> None:
    changed = {**SHOOT, "spec": {"region": "eu-north-1"}}
    assert updated(SHOOT, changed) is changed
    assert owners_of(changed) == ()


def test_a_write_without_a_manager_is_of_the_landscape() -> None:
    owned = with_owners(SHOOT, [Owner("flux", "Apply", "v1", paths_of(SHOOT))])
    moved = {**owned, "spec": {**SHOOT["spec"], "region": "eu-north-1"}}
    found = {each.manager: each.paths for each in owners_of(updated(owned, moved))}
    assert found[OTHER_WRITES] == {("f:spec", "f:region")}


MALFORMED = (
    '{"k:zz":{}}',
    '{"zzz":{}}',
    '{"k:{\\"a\\":1,\\"b\\":2}":{}}',
    '{"k:[1]":{}}',
    '{"v:":{}}',
    '{"f:a":{"k:":{}}}',
)
ONE_OWNER = '[{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsV1":FIELDS}]'


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "[1]", '[{"manager": 1}]', '[{"manager":"a","operation":"Delete"}]'),
        *(ONE_OWNER.replace("FIELDS", fields) for fields in MALFORMED),
        ONE_OWNER.replace("FIELDS", '{"f:a":' * 500 + "{}" + "}" * 500),
    ],
    ids=lambda text: text[-60:],
)
def test_an_annotation_that_cannot_be_read_states_no_owners(text: str) -> None:
    damaged = {**SHOOT, "metadata": {**SHOOT["metadata"], "annotations": {OWNERS_ANNOTATION: text}}}
    assert owners_of(damaged) == ()
    assert updated(damaged, {**damaged, "spec": {}}) == {**damaged, "spec": {}}


def test_owners_of_many_entries_take_time_in_proportion() -> None:
    def seconds(count: int) -> float:
        many = {**SHOOT, "spec": {"x": {"resources": [{"name": f"a{number}", "b": number} for number in range(count)]}}}
        owned = with_owners(many, [Owner("flux", "Apply", "v1", paths_of(many))])
        changed = {**owned, "spec": {"x": {"resources": [{"name": f"a{number}", "b": 0} for number in range(count)]}}}
        began = time.process_time()
        assert len(owners_of(updated(owned, changed))) == 2
        assert without_paths(owned, paths_of(owned)).get("spec") is None
        return time.process_time() - began

    small, large = (min(seconds(count) for _ in range(3)) for count in (2_000, 8_000))
    assert large < 10 * small  # quadratic it would be sixteen times
