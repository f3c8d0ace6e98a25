"""What pages plot of the history. The dashboard reads it from the bus, so a NATS server makes a landscape."""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from gardenbus.common.api.history import HistoryChange, HistoryPoint, SeedUse, SetSize
from gardenbus.common.api.history import encode as encode_history
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.clock import timestamp
from tests.support.announced import announced_landscape, announcement
from tests.support.builders import a_seed
from tests.support.page_checks import NAMELESS

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(400)]

SUBJECTS = Subjects()
POINTS = 30

Open = Callable[..., Page]


def _history(now: datetime) -> Iterator[Message]:
    for number in range(POINTS):
        at = timestamp(now - timedelta(minutes=10 * (POINTS - 1 - number)))
        is_silent = number >= POINTS // 2
        if number == POINTS // 2:
            change = HistoryChange(at, "seed", "aws-eu1", "its gardenlet is silent")
            yield Message(SUBJECTS.history_change, encode_history(change))
        point = HistoryPoint(
            at=at,
            level=1,
            waiting={"full": number} if is_silent else {},
            seeds={"aws-eu1": SeedUse(number, 40, "unknown" if is_silent else "ready", "aws", "eu-west-1")},
            sets={"garden/grove": SetSize(3, 2, 2)},
            totals={"placed.1": 5 * number, "rejected": number},
        )
        yield Message(SUBJECTS.history_point, encode_history(point))


def _landscape(directory: Path, history: Iterable[Message], *, lacks: str = "") -> Iterator[str]:
    seed = [announcement(a_seed("aws-eu1", shoots="40")), Message(SUBJECTS.lease("aws-eu1"), b"{}")]
    with announced_landscape(directory, [*seed, *history], lacks=lacks) as url:
        yield url


@pytest.fixture(scope="module")
def landscape(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from _landscape(tmp_path_factory.mktemp("history"), _history(datetime.now(UTC)))


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from _landscape(tmp_path_factory.mktemp("no-history"), (), lacks="HISTORY")


def test_the_landscape_shows_what_changed_and_when(landscape: str, open_page: Open, keep: Callable[[Page, str], None]):
    page = open_page(landscape)
    expect(page.locator(".history [data-chart]")).to_have_count(5)
    expect(page.get_by_role("img", name=re.compile("Shoots without a seed, by cause: all 29"))).to_be_visible()
    expect(page.locator("[data-chart=waiting] line.happened")).to_have_count(1)
    expect(page.locator(".happened li")).to_contain_text("Seed aws-eu1 its gardenlet is silent")
    assert page.evaluate(NAMELESS) == []
    keep(page, "history-landscape")


def test_another_time_is_chosen_by_keyboard_alone(landscape: str, open_page: Open):
    page = open_page(landscape)
    page.get_by_role("button", name="6 hours").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="6 hours")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".history [data-chart]")).to_have_count(5)
    page.get_by_role("button", name="24 hours").click()


def test_region_and_seed_have_their_own(landscape: str, open_page: Open, keep: Callable[[Page, str], None]):
    page = open_page(landscape, dark=True)
    page.get_by_role("link", name="eu-west-1").click()
    expect(page.locator("h1")).to_have_text("eu-west-1")
    expect(page.locator("[data-history=region] [data-chart]")).to_have_count(2)
    keep(page, "history-region")
    page.get_by_role("link", name="Seed aws-eu1").click()
    expect(page).to_have_url(re.compile("object/seed/_/aws-eu1"))


def test_a_phone_needs_no_sideways_scrolling(landscape: str, open_page: Open, keep: Callable[[Page, str], None]):
    page = open_page(f"{landscape}/#/region/aws/eu-west-1", phone=True)
    expect(page.locator("[data-chart]")).to_have_count(2)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    keep(page, "history-phone")


def test_a_landscape_without_the_stream_says_so(without: str, open_page: Open):
    page = open_page(without)
    expect(page.locator(".history-note")).to_contain_text("keeps no history")
    expect(page.locator("[data-seed=aws-eu1]")).to_be_visible()
