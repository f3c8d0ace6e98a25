"""Rules that a stored object breaks: each that a new one would break, but none that is for new ones alone."""

import re
from typing import Any

import pytest

from gardenbus.apiserver.domain.validation.stored_objects import rules_broken_by
from gardenbus.common.api.document import Document
from tests.support.builders import a_managed_seed, a_shoot, merged
from tests.support.valid_manifests import SHOOT, VALID
from tests.unit.api.test_rules_by_kind import CASES, changed

STORED = {
    "resourceVersion": "7",
    "uid": "11111111-2222-3333-4444-555555555555",
    "creationTimestamp": "2026-01-02T03:04:05Z",
    "generation": 2,
    "finalizers": ["gardener", "gardener.cloud/reference-protection"],
    "annotations": {"gardener.cloud/operation": "retry"},
}


def stored(document: Document) -> Document:
    return merged(document, {"metadata": STORED})


@pytest.mark.parametrize("document", VALID, ids=lambda document: document["kind"])
def test_what_keeps_the_rules_breaks_none_when_it_is_stored(document: Document) -> None:
    assert rules_broken_by(stored(document)) == {}
    assert rules_broken_by(stored(a_managed_seed())) == {}


OPERATION = "metadata.annotations[gardener.cloud/operation]"
"""A field that is a request, which is accepted or rejected once."""


@pytest.mark.parametrize(("document", "path", "value", "field"), [case for case in CASES if case[3] != OPERATION])
def test_what_breaks_a_rule_is_found_when_it_is_stored(document: Document, path: str, value: Any, field: str) -> None:
    wrong = changed(document, path, value)
    found = rules_broken_by(wrong if path.startswith("metadata.") else stored(wrong))
    assert re.sub(r"\[[0-9]+\]", "[]", field) in found


def test_the_first_problem_of_a_field_is_that_of_its_rule() -> None:
    wrong = changed(SHOOT, "spec.tolerations", [{"key": ""}, {"key": "a b"}])
    assert list(rules_broken_by(stored(wrong)).items()) == [("spec.tolerations[].key", "is needed and is empty")]


def test_metadata_is_checked_too() -> None:
    assert list(rules_broken_by(a_shoot(metadata={"labels": {"a b": "c"}}))) == ["metadata.labels"]
