"""The documentation is read where there is no network: nothing of it is fetched from elsewhere."""

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

DOCS = Path(__file__).parents[3] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
PICTURES = sorted((DOCS / "assets").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_has_no_pictures_that_a_browser_draws_or_fetches(page: Path) -> None:
    text = page.read_text()
    assert "```mermaid" not in text
    assert not re.findall(r"!\[[^\]]*\]\(https?:|<(?:script|img|link)[^>]+https?:", text)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_described_is_for_light_and_dark_and_stands_alone(picture: Path) -> None:
    text = picture.read_text()
    root = ET.fromstring(text)
    assert (root.findtext(f"{SVG}title") or "").strip()
    assert (root.findtext(f"{SVG}desc") or "").strip()
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert any(picture.name in page.read_text() for page in PAGES)
