"""Sizes that CONTRIBUTING.md names are held: lines of a shipped file. Ruff holds those of functions."""

import re
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[3]
NUMBERS = {"six hundred": 600}


def most_lines() -> int:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.search(r"shipped\s+files\s+of\s+at\s+most\s+(\w+\s+\w+)\s+lines", text)
    assert found
    return NUMBERS[" ".join(found[1].split())]


def too_long(sizes: Mapping[str, int], most: int) -> Mapping[str, int]:
    return {name: lines for name, lines in sizes.items() if lines > most}


def test_no_shipped_file_has_more_lines_than_the_page_says() -> None:
    files = [path for member in ("cli", "libs", "services", "tools") for path in (ROOT / member).glob("**/src/**/*.py")]
    sizes = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert len(sizes) > 1_000
    assert too_long(sizes, most_lines()) == {}


def test_a_file_that_is_too_long_is_named() -> None:
    assert too_long({"a.py": 601, "b.py": 600}, most_lines()) == {"a.py": 601}
