"""The documentation's site: every page is in its navigation, and what is named there is there."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gardenbus.docs.pages import pages
from tests.support.eventually import HANG_SECONDS

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


def named(nav: Any) -> Iterator[str]:
    """Every page of a navigation, however deep."""
    if isinstance(nav, str):
        yield nav
    for child in nav if isinstance(nav, list) else nav.values() if isinstance(nav, dict) else ():  # pyright: ignore[reportUnknownVariableType]
        yield from named(child)


NAVIGATION = list(named(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))


def test_every_page_is_in_the_navigation_once():
    there = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))
    assert sorted(NAVIGATION) == there


def test_every_generated_page_is_committed_and_named():
    assert {f"reference/{name}" for name in pages()} <= {*NAVIGATION}


def test_the_site_is_built_without_a_warning(tmp_path: Path):
    shutil.copytree(DOCS, tmp_path / "docs")
    for name in ("mkdocs.yml", "ARCHITECTURE.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site" / "reference" / "commands.html").is_file()
    page = (tmp_path / "site" / "placement.html").read_text()
    assert 'src="assets/binding-life.svg"' in page
    assert "mermaid" not in page
    assert not re.findall(
        r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//[^"]+\.(?:js|css|woff2?|svg|png)"', page
    )
    assert "Where a change goes" in (tmp_path / "site" / "architecture.html").read_text()
    assert "Unreleased" in (tmp_path / "site" / "release-notes.html").read_text()


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md"])
def test_what_the_first_pages_refer_to_is_there(name: str):
    text = (ROOT / name).read_text()
    targets = re.findall(r"\]\(([^)#]+)", text) + re.findall(r"^\[\w+\]: ([^#\n]+)", text, re.MULTILINE)
    assert len(targets) >= 4
    assert [target for target in targets if "://" not in target and not (ROOT / target).exists()] == []
