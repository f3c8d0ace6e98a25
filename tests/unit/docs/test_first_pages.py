"""The pages that a newcomer opens first are short, and the numbers in CONTRIBUTING.md are those of the code."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SOURCE = ("libs", "services", "cli", "tools")
KIB = 1024


def changelog() -> dict[str, str]:
    """The entries of the change log, by their versions."""
    parts = re.split(r"^## \[(.+?)\]$", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def stated(what: str) -> int:
    """The number of files that CONTRIBUTING.md states for something new."""
    found = re.search(rf"^\| {what} \| (\d+) \|", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1])


def files_with(pattern: str, *folders: str) -> Iterator[Path]:
    """Files of source whose text a pattern matches."""
    for folder in folders:
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in {".py", ".lua"} and re.search(pattern, file.read_text()):
                yield file.relative_to(ROOT)


def test_the_readme_has_at_most_120_lines():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_architecture_has_at_most_16_kib():
    assert len((ROOT / "ARCHITECTURE.md").read_bytes()) <= 16 * KIB


def test_the_change_log_has_one_short_entry_for_the_first_version_and_what_is_unreleased_above_it():
    entries = changelog()

    assert list(entries) == ["Unreleased", "0.1.0"]
    assert len(entries["0.1.0"].encode()) <= 8 * KIB


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`([a-z_/<>]+\.(?:py|lua))`", (ROOT / "CONTRIBUTING.md").read_text())))
)
def test_every_file_that_the_steps_name_exists(path: str):
    pattern = re.sub(r"<\w+>", "*", path).replace("common/", "gardenbus/common/", 1)
    assert any(True for folder in (*SOURCE, "") for _ in (ROOT / folder).glob(f"{'**/' if folder else ''}{pattern}")), (
        path
    )


def test_a_function_of_the_store_takes_as_many_files_as_are_stated():
    defined = r"def names_with\(|register\('names_with'"

    assert len(list(files_with(defined, *SOURCE, "tests/support"))) == stated("function of the store")
