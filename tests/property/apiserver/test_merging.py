"""Applies of one object may come in any order and be skipped: the newest decides."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gardenbus.apiserver.domain.defaults import with_defaults
from gardenbus.apiserver.domain.merging import apply_three_way, merge_patch, without_system_fields
from gardenbus.common.api.document import Document, encode

NAMES = st.sampled_from(["a", "b", "c"])
LEAVES = st.one_of(st.none(), st.integers(0, 3), st.sampled_from(["x", "y"]), st.lists(st.integers(0, 2), max_size=2))
VALUES: st.SearchStrategy[Any] = st.recursive(
    LEAVES, lambda below: st.dictionaries(NAMES, below, max_size=3), max_leaves=8
)
MAPPINGS = st.dictionaries(NAMES, VALUES, max_size=3)
TEXTS = st.dictionaries(NAMES, st.sampled_from(["1", "2"]), max_size=2)


@st.composite
def manifests(draw: st.DrawFn) -> Document:
    metadata: Document = {"name": "apollo", "namespace": "garden-dev"}
    for field in ("labels", "annotations"):
        if draw(st.booleans()):
            metadata[field] = draw(TEXTS)
    if draw(st.booleans()):
        metadata["finalizers"] = draw(st.lists(st.sampled_from(["x/1", "x/2", "gardener"]), unique=True))
    document: Document = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": metadata}
    document["spec"] = draw(st.one_of(MAPPINGS, st.fixed_dictionaries({"networking": MAPPINGS})))
    if draw(st.booleans()):
        document["extra"] = draw(VALUES)
    return document


def taken(stored: Document | None, last: bytes, manifest: Document) -> tuple[Document, bytes]:
    """One apply as the apiserver makes it: merge, fill in defaults, remember."""
    last_applied = msgspec.json.decode(last) if last else None
    return with_defaults(apply_three_way(stored, last_applied, manifest)), encode(without_system_fields(manifest))


def sets_of_finalizers(document: Document) -> Document:
    """The system's finalizer stays once it is there, whoever brought it; the order of finalizers means nothing."""
    metadata = {name: value for name, value in document["metadata"].items() if name != "finalizers"}
    finalizers = {name for name in document["metadata"].get("finalizers", []) if name != "gardener"}
    return {**document, "metadata": {**metadata, "finalizers": sorted(finalizers)}}


@given(st.lists(manifests(), min_size=1, max_size=5), st.data())
def test_any_order_with_skips_ends_as_taking_all_in_order(requests: list[Document], data: st.DataObject) -> None:
    in_order: tuple[Document | None, bytes] = (None, b"")
    for manifest in requests:
        in_order = taken(*in_order, manifest)
    arrivals = data.draw(st.permutations(range(len(requests))))
    newest = -1
    arrived: tuple[Document | None, bytes] = (None, b"")
    for position in arrivals:
        if position > newest:
            newest, arrived = position, taken(*arrived, requests[position])
    assert arrived[0] is not None
    assert in_order[0] is not None
    assert sets_of_finalizers(arrived[0]) == sets_of_finalizers(in_order[0])
    assert arrived[1] == in_order[1]


@given(manifests(), manifests())
def test_the_same_manifest_twice_changes_nothing(first: Document, second: Document) -> None:
    before = taken(*taken(None, b"", first), second)
    assert taken(*before, second) == before


@given(st.lists(manifests(), min_size=2, max_size=4), TEXTS)
def test_what_others_set_elsewhere_stays(requests: list[Document], theirs: dict[str, str]) -> None:
    stored, last = taken(None, b"", requests[0])
    stored |= {"theirs": theirs, "status": {"x": 1}}
    metadata: Document = stored["metadata"]
    annotations: dict[str, str] = metadata.get("annotations") or {}
    stored["metadata"] = {**metadata, "annotations": {**annotations, "theirs": "1"}}
    for manifest in requests[1:]:
        stored, last = taken(stored, last, manifest)
    assert (stored["theirs"], stored["status"], stored["metadata"]["annotations"]["theirs"]) == (theirs, {"x": 1}, "1")


@given(MAPPINGS, MAPPINGS)
def test_a_patch_taken_twice_is_a_patch_taken_once(document: Document, patch: Document) -> None:
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once
