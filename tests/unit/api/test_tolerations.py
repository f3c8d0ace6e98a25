import pytest

from gardenbus.common.api.garden.tolerations import (
    UNCHECKED_TOLERATIONS,
    allowed_by,
    effective_tolerations,
    is_allowed,
    unchecked_annotation,
    unchecked_in,
)
from tests.support.builders import a_project

TOLERATIONS = (("a", None), ("a", "x"), ("b", "y"))


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [("a", None, True), ("a", "x", True), ("b", "y", True), ("b", None, False), ("b", "z", False), ("c", None, False)],
)
def test_an_entry_without_value_allows_its_key_and_one_with_a_value_exactly_that(
    key: str, value: str | None, allowed: bool
) -> None:
    assert is_allowed(key, value, [("a", None), ("b", "y")]) is allowed


def test_a_project_allows_what_it_whitelists_and_what_it_gives() -> None:
    project = a_project(spec={"tolerations": {"defaults": [{"key": "d"}], "whitelist": [{"key": "w", "value": "1"}]}})
    assert set(allowed_by(project)) == {("d", None), ("w", "1")}
    assert allowed_by(a_project()) == ()


def test_a_note_is_read_as_it_was_written() -> None:
    note = unchecked_annotation(TOLERATIONS[1:])
    assert unchecked_in({UNCHECKED_TOLERATIONS: note}, TOLERATIONS) == TOLERATIONS[1:]
    assert unchecked_in({UNCHECKED_TOLERATIONS: note}, TOLERATIONS[:2]) == TOLERATIONS[1:2]
    assert unchecked_in({}, TOLERATIONS) == ()
    assert unchecked_annotation(()) is None


@pytest.mark.parametrize("note", ["", "x", "{}", "5"])
def test_a_note_that_cannot_be_read_notes_all(note: str) -> None:
    assert unchecked_in({UNCHECKED_TOLERATIONS: note}, TOLERATIONS) == TOLERATIONS


def test_what_is_unchecked_counts_only_where_it_is_allowed() -> None:
    assert effective_tolerations(TOLERATIONS, (), ()) == TOLERATIONS
    assert effective_tolerations(TOLERATIONS, TOLERATIONS[1:], ()) == TOLERATIONS[:1]
    assert effective_tolerations(TOLERATIONS, TOLERATIONS, (("a", "x"),)) == TOLERATIONS[1:2]
