"""Headless Chromium for tests of the page; without one they are skipped, or fail with GARDENBUS_REQUIRE_BROWSER."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, StorageState, ViewportSize, expect, sync_playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PHONE = ViewportSize(width=390, height=844)
DESK = ViewportSize(width=1360, height=860)

TIMEOUT_MS = 45_000
"""For what is to come. Nothing waits longer than it has to, so only a failing test is slow."""

expect.set_options(timeout=TIMEOUT_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for each module: while it is there its own event loop is the thread's, and tests of asyncio need theirs."""
    if CHROMIUM is None:
        if os.environ.get("GARDENBUS_REQUIRE_BROWSER") == "true":
            pytest.fail("there is no Chromium on PATH, and GARDENBUS_REQUIRE_BROWSER says that there must be one")
        pytest.skip("there is no Chromium on PATH (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        # Containers give /dev/shm 64 MB, and let root have no sandbox of its own.
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=2 * TIMEOUT_MS)
        yield browser
        browser.close()


Open = Callable[..., Page]


@pytest.fixture(scope="module")
def logged_in() -> StorageState | None:
    """Cookies of somebody whom the dashboard knows; a module whose dashboard lets nobody else in has its own."""
    return None


@pytest.fixture
def open_page(browser: Browser, logged_in: StorageState | None) -> Iterator[Open]:
    """Opens pages; whatever a script complained about fails the test in the end."""
    complaints: list[str] = []
    pages: list[Page] = []

    def open_one(url: str, *, phone: bool = False, dark: bool = False) -> Page:
        context = browser.new_context(
            viewport=PHONE if phone else DESK,
            color_scheme="dark" if dark else "light",
            locale="en-GB",
            storage_state=logged_in,
        )
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "console",
            lambda reported: complaints.append(reported.text) if "Content Security" in reported.text else None,
        )
        page.goto(url)
        pages.append(page)
        return page

    yield open_one
    for page in pages:
        page.context.close()
    assert complaints == []


@pytest.fixture
def keep() -> Callable[[Page, str], None]:
    """Keeps a screenshot where GARDENBUS_SCREENSHOTS says."""

    def keep_one(page: Page, name: str) -> None:
        if directory := os.environ.get("GARDENBUS_SCREENSHOTS"):
            Path(directory).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=Path(directory) / f"{name}.png")

    return keep_one
