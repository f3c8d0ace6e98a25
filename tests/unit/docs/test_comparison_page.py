"""The page that compares: whatever is accepted and does nothing is named there."""

from pathlib import Path

import pytest

from gardenbus.apiserver.domain.fields.unused import ANNOTATIONS, UNUSED, FieldNote

PAGE = (Path(__file__).parents[3] / "docs" / "comparison.md").read_text()
REMOVED = "Gardener has removed it"
_ABSENT = [note for note in UNUSED if not note.why.startswith(REMOVED)]
_ANNOTATED = [(name, start) for notes in ANNOTATIONS.values() for name, starts, _ in notes for start in starts]


@pytest.mark.parametrize("note", _ABSENT, ids=lambda note: note.path)
def test_a_field_that_nothing_acts_on_is_named(note: FieldNote) -> None:
    path = note.path.replace("[]", "").removeprefix("spec.resources.").removeprefix("spec.")
    assert path.removeprefix("settings.").removeprefix("gardenlet.") in PAGE


@pytest.mark.parametrize(("annotation", "start"), _ANNOTATED)
def test_an_annotation_that_nothing_acts_on_is_named(annotation: str, start: str) -> None:
    assert annotation in PAGE
    assert start in PAGE or start == "true"
