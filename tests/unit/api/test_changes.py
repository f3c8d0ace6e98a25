from typing import Any

import pytest

from gardenbus.common.api.changes import change_of, creation_of
from gardenbus.common.api.document import Document, StoredObject
from gardenbus.common.api.keys import ObjectKey
from tests.support.builders import a_region_configmap, a_seed, a_shoot, merged


def stored(document: Document, **changes: Any) -> StoredObject:
    metadata = document["metadata"]
    fields: dict[str, Any] = {"uid": "u", "version": 7, "generation": 2, "created_at": "then", **changes}
    return StoredObject(
        key=ObjectKey(document["kind"].lower(), metadata.get("namespace", ""), metadata["name"]),
        parts=creation_of(document).parts,
        **fields,
    )


def changed(base: StoredObject, changes: Document) -> Document:
    return merged(base.document(), changes)


def test_a_creation_differs_from_nothing_in_everything() -> None:
    change = creation_of(a_shoot())
    assert (change.differs, change.spec, change.beyond_status) == (True, True, True)
    assert change.parts.finalizers == ()


@pytest.mark.parametrize("finalizers", [[], ["mine"], ["gardener", "mine"]])
def test_a_shoot_that_comes_with_a_seed_is_held_once_by_the_gardenlets_finalizer(finalizers: list[str]) -> None:
    change = creation_of(a_shoot(spec={"seedName": "a"}, metadata={"finalizers": finalizers}))
    assert sorted(change.parts.finalizers) == sorted({*finalizers, "gardener"})


def test_only_the_update_that_places_a_shoot_adds_the_finalizer() -> None:
    pending = stored(a_shoot())
    assert change_of(pending, changed(pending, {"spec": {"seedName": "a"}})).parts.finalizers == ("gardener",)
    placed = stored(a_shoot(spec={"seedName": "a"}))
    released = change_of(placed, changed(placed, {"metadata": {"finalizers": []}}))
    assert released.parts.finalizers == ()


def test_a_document_read_and_written_back_is_no_change() -> None:
    base = stored(
        a_shoot(spec={"seedName": "a"}, status={"seedName": "b", "x": 1}, metadata={"labels": {"l": "1"}}),
        pending=b'"state":"Pending"',
        deleting_at="now",
    )
    change = change_of(base, base.document())
    assert (change.differs, change.spec, change.beyond_status) == (False, False, False)
    assert change.parts == base.parts


def test_the_order_of_keys_is_no_change_and_keeps_the_text_that_stands() -> None:
    base = stored(a_shoot())
    document = base.document()
    document["spec"] = dict(reversed(document["spec"].items()))
    change = change_of(base, document)
    assert not change.differs
    assert change.parts.spec == base.parts.spec


@pytest.mark.parametrize(
    ("changes", "spec", "beyond_status"),
    [
        ({"spec": {"purpose": "testing"}}, True, True),
        ({"spec": {"seedName": "b"}}, True, True),
        ({"status": {"x": 1}}, False, False),
        ({"status": {"seedName": "a"}}, False, True),
        ({"metadata": {"labels": {"a": "b"}}}, False, True),
        ({"metadata": {"annotations": {"a": "b"}}}, False, True),
        ({"metadata": {"finalizers": []}}, False, True),
        ({"extra": 1}, False, True),
    ],
)
def test_a_change_says_whether_the_generation_grows_and_who_must_hear(
    changes: Document, spec: bool, beyond_status: bool
) -> None:
    base = stored(a_shoot(spec={"seedName": "a"}))
    change = change_of(base, changed(base, changes))
    assert (change.differs, change.spec, change.beyond_status) == (True, spec, beyond_status)


def test_an_empty_spec_differs_from_none() -> None:
    base = stored(a_region_configmap())
    change = change_of(base, changed(base, {"spec": {}}))
    assert (change.differs, change.spec) == (True, True)


def test_a_refusal_written_back_is_left_to_the_store() -> None:
    base = stored(a_shoot(), pending=b'"state":"Pending"')
    assert change_of(base, changed(base, {"status": {"x": 1}})).parts.status == b'"x":1'


def test_a_change_of_a_seed_tells_what_it_means() -> None:
    base = stored(a_seed())
    assert change_of(base, changed(base, {"spec": {"taints": [{"key": "a"}]}})).effects == (True, True)
    assert change_of(base, changed(base, {"status": {"x": 1}})).effects == (False, False)


def test_the_end_of_a_deletion_means_what_a_removal_means() -> None:
    base = stored(a_region_configmap(metadata={"finalizers": ["mine", "other"]}), deleting_at="now")
    assert not change_of(base, changed(base, {"metadata": {"finalizers": ["mine"]}})).effects.unblocks
    assert change_of(base, changed(base, {"metadata": {"finalizers": []}})).effects.unblocks


def test_who_waits_for_a_destination_hears_when_it_turns_ready() -> None:
    def readiness(status: str, at: str = "now") -> Document:
        constraint = {"type": "ReadyForMigration", "status": status, "lastUpdateTime": at}
        return {"status": {"constraints": [constraint], "other": at}}

    base = stored(a_shoot(spec={"seedName": "b"}, status={"seedName": "a", **readiness("False")["status"]}))
    assert change_of(base, changed(base, readiness("True"))).beyond_status
    assert change_of(base, changed(base, {"status": {"constraints": []}})).beyond_status
    assert not change_of(base, changed(base, readiness("False", "later"))).beyond_status
