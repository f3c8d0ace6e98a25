"""Headless Chromium for tests of the page. Without one they are skipped, unless CI says that there must be one."""

import os
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IS_REQUIRED = os.environ.get("CI") == "true" and os.environ.get("GARDENBUS_REQUIRE_BROWSER") == "true"
HAS_PLAYWRIGHT = find_spec("playwright") is not None
collect_ignore_glob = [] if HAS_PLAYWRIGHT or IS_REQUIRED else ["test_*.py"]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1360, "height": 860}


def _without(what: str) -> NoReturn:
    if IS_REQUIRED:
        pytest.fail(f"{what}, and GARDENBUS_REQUIRE_BROWSER says that there must be one")
    pytest.skip(f"{what}: apt-get install chromium")


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """One for each module: while it is there its own event loop is the thread's, and tests of asyncio need theirs."""
    if CHROMIUM is None:
        _without("there is no Chromium here")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - nobody else needs it

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


Open = Callable[..., "Page"]


@pytest.fixture
def open_page(browser: "Browser") -> Iterator[Open]:
    """Opens pages; whatever a script complained about fails the test in the end."""
    complaints: list[str] = []
    pages: list[Page] = []

    def open_one(url: str, *, phone: bool = False, dark: bool = False) -> "Page":
        context = browser.new_context(
            viewport=PHONE if phone else DESK,  # pyright: ignore[reportArgumentType]
            color_scheme="dark" if dark else "light",
            locale="en-GB",
        )
        page = context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda said: complaints.append(said.text) if "Content Security" in said.text else None)
        page.goto(url)
        pages.append(page)
        return page

    yield open_one
    for page in pages:
        page.context.close()
    assert complaints == []


@pytest.fixture
def keep() -> "Callable[[Page, str], None]":
    """Keeps a screenshot where GARDENBUS_SCREENSHOTS says."""

    def keep_one(page: "Page", name: str) -> None:
        if directory := os.environ.get("GARDENBUS_SCREENSHOTS"):
            Path(directory).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(directory) / f"{name}.png")

    return keep_one
