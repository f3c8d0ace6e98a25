"""Whatever is sent: it is refused with a reason, or it can be read by everything that reads it."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gardenbus.apiserver.domain.bind_admission import admit_binding
from gardenbus.apiserver.domain.merging import apply_three_way, without_system_fields
from gardenbus.apiserver.domain.related_objects import RelatedObjects
from gardenbus.apiserver.domain.report_admission import reported_status
from gardenbus.apiserver.domain.report_stamps import merge_report
from gardenbus.apiserver.domain.validation.manifest import key_of_applied, validate, validate_status
from gardenbus.apiserver.domain.validation.metadata import key_of, reference_of
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.common.api.manifests.parser import parse
from gardenbus.common.errors import Terminal
from tests.support.admissions import admit, mutate, related_queries
from tests.support.full_manifests import (
    FULL_CLASS,
    FULL_MANIFESTS,
    FULL_PROFILE,
    FULL_PROJECT,
    FULL_SEED,
    FULL_SHOOT,
    read_by_everybody,
)
from tests.support.valid_manifests import VALID

PLAIN = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(st.text(), below, max_size=3)),
    max_leaves=10,
)
JUNK: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(
        [
            None,
            True,
            0,
            -1,
            1.5,
            2**63 - 1,
            "",
            "x",
            "a.b*>",
            "10.0.0.0/8",
            "1Ki",
            [],
            {},
            [None],
            [[]],
            [{}],
            ["x"],
            {"a": 1},
        ]
    ),
    PLAIN,
)


def parts_of(value: Any) -> list[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return list(cast("dict[str | int, Any]", value).items())
    return list(enumerate(cast("list[Any]", value))) if isinstance(value, list) else []


def places_in(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    below = [place for name, part in parts_of(value) for place in places_in(part, (*path, name))]
    return [path, *below] if path else below


def replaced(value: Any, path: tuple[str | int, ...], junk: Any) -> Any:
    if not path:
        return junk
    parts = [(name, replaced(part, path[1:], junk) if name == path[0] else part) for name, part in parts_of(value)]
    return dict(parts) if isinstance(value, dict) else [part for _, part in parts]


@st.composite
def spoiled(draw: st.DrawFn, manifests: Sequence[Document] = FULL_MANIFESTS) -> Document:
    document = draw(st.sampled_from(manifests))
    for _ in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(places_in(document)))
        document = replaced(document, path, draw(JUNK))
    return document


FACTS = RelatedObjects(
    objects={
        ObjectKey("seed", "", "aws-eu1"): FULL_SEED,
        ObjectKey("cloudprofile", "", "aws"): FULL_PROFILE,
        ObjectKey("exposureclass", "", "internet"): FULL_CLASS,
    },
    projects={"garden-dev": FULL_PROJECT},
)


def rejection_of(work: Callable[[], object]) -> str | None:
    """The sentence that something was refused with; any other exception than a refusal is a failure of the test."""
    try:
        work()
    except Terminal as rejected:
        return rejected.message
    return None


def taken(document: Document, old: Document | None) -> Document:
    key_of(document)
    merged = apply_three_way(old, old, document)
    related_queries(merged, old)
    mutated = mutate(merged, old, FACTS, user="ann").document
    validate(mutated, old)
    without_system_fields(document)
    read_by_everybody(mutated)
    admit(mutated, old, FACTS)
    return mutated


@pytest.mark.parametrize("document", FULL_MANIFESTS, ids=lambda document: document["kind"])
def test_what_is_spoiled_below_is_taken_as_it_is(document: Document) -> None:
    stored = taken(document, None)
    assert taken(document, document) is not None
    read_by_everybody(stored)


@given(spoiled())
def test_a_manifest_with_anything_in_it_is_refused_or_can_be_read_by_everybody(document: Document) -> None:
    assert rejection_of(lambda: taken(document, None)) != ""


@given(spoiled())
def test_a_change_to_anything_is_refused_or_can_be_read_by_everybody(document: Document) -> None:
    old = next((one for one in FULL_MANIFESTS if one["kind"] == document.get("kind")), None)
    assert rejection_of(lambda: taken(document, old)) != ""


@given(spoiled(VALID))
@settings(max_examples=500)
def test_what_breaks_a_rule_of_its_kind_breaks_no_other(document: Document) -> None:
    old = next((one for one in VALID if one["kind"] == document.get("kind")), None)
    for before in (None, old):
        assert rejection_of(partial(checked, document, before)) != ""


def checked(document: Document, old: Document | None) -> None:
    key_of_applied(document)
    validate(document, old)


@given(st.sampled_from([FULL_SHOOT, FULL_SEED]), st.data())
def test_a_report_of_anything_is_refused_or_can_be_read_by_everybody(old: Document, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(places_in(old["status"])))
    reported = replaced(old["status"], path, data.draw(JUNK))

    def taken_report() -> None:
        status = reported_status({"status": reported})
        merged = merge_report(old["status"], b"", report=status, incarnation=1, sequence=1).status
        document = {**old, "status": merged}
        validate_status(document, old)
        read_by_everybody(document)

    assert rejection_of(taken_report) != ""


@given(spoiled())
def test_a_binding_of_anything_that_was_taken_is_admitted_or_refused(document: Document) -> None:
    if rejection_of(lambda: taken(document, None)) is not None:
        return
    shoot, seed, profile_spec = FULL_SHOOT, FULL_SEED, FULL_PROFILE["spec"]
    match document["kind"]:
        case "Shoot":
            shoot = document
        case "Seed":
            seed = document
        case "CloudProfile":
            profile_spec = document["spec"]
        case _:
            return
    work = partial(admit_binding, shoot, seed, project=FULL_PROJECT, profile_spec=profile_spec)
    assert rejection_of(work) != ""


@given(st.dictionaries(st.text(), PLAIN, max_size=2), PLAIN)
def test_a_delete_request_of_anything_names_an_object_or_is_refused(request: Document, value: Any) -> None:
    for one in (request, {"kind": value, "name": "a"}, {"kind": "seed", "name": value}, {"metadata": value}):
        assert rejection_of(partial(reference_of, one)) != ""


@given(st.one_of(st.binary(), st.text().map(str.encode)))
@example(b"{")
@example(b"&a *a")
@example(b"? ? ?")
@example(b"%TAG ! !!\n---\n!a b")
@example(b"'\x00'")
@example(b'{"a": "\\u0000"}')
def test_any_bytes_are_manifests_or_refused(body: bytes) -> None:
    assert rejection_of(lambda: json.dumps(parse(body))) != ""


def is_all_encodable(value: Any) -> bool:
    return is_encodable(value) and all(is_encodable(name) and is_all_encodable(part) for name, part in parts_of(value))


def is_encodable(value: Any) -> bool:
    return not isinstance(value, str) or value.encode(errors="replace").decode() == value


@given(st.dictionaries(st.text(), PLAIN, max_size=4).filter(is_all_encodable))
def test_json_and_yaml_of_the_same_values_are_read_alike(document: Document) -> None:
    as_json = json.dumps(document).encode()
    if not (str(document.get("kind")).endswith("List") and isinstance(document.get("items"), list)):
        assert parse(as_json) == [document]
    as_yaml = yaml.safe_dump(document, default_style='"').encode()
    assert parse(as_yaml) == [document]
