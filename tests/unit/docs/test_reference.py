"""The pages that are written from the code."""

import re
from pathlib import Path

import pytest

from gardenbus.docs.pages import WRITERS

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize("name", WRITERS)
def test_the_committed_page_is_what_the_code_says(name: str):
    assert (REFERENCE / name).read_text() == WRITERS[name](), "run: make reference"


@pytest.mark.parametrize("name", sorted(WRITERS.keys() - {"texts.md"}))
def test_every_field_and_setting_has_a_meaning(name: str):
    rows = [line for line in WRITERS[name]().splitlines() if line.startswith("| `")]
    assert len(rows) > 10
    assert not [row for row in rows if re.search(r"\|\s*\|", row.replace("\\|", ""))], name
