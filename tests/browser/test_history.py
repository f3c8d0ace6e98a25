"""What pages plot of the history. The dashboard reads it from the bus, so a NATS server makes a landscape."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from gardenbus.common.adapters.nats.jetstream import connect
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.history import HistoryChange, HistoryPoint, SeedUse, SetSize
from gardenbus.common.api.history import encode as encode_history
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.clock import timestamp
from tests.support.builders import a_seed
from tests.support.dashboard_process import running_dashboard
from tests.support.page_checks import NAMELESS
from tests.support.servers import start_nats

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(400)]

SUBJECTS = Subjects()
POINTS = 30

Open = Callable[..., Page]


def _announcement(document: Document) -> Message:
    metadata = document["metadata"]
    key = ObjectKey(document["kind"].lower(), metadata.get("namespace") or "", metadata["name"])
    return Message(
        SUBJECTS.changed(key), encode(document), {Header.VERSION: "1", Header.UID: "u", Header.VERB: "modified"}
    )


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


async def _publish(nats_url: str, *, with_history: bool) -> None:
    messages = [_announcement(a_seed("aws-eu1", shoots="40")), Message(SUBJECTS.lease("aws-eu1"), b"{}")]
    async with connect(nats_url, "landscape") as bus:
        await bus.ensure_streams()
        await bus.publish_many(messages)
        if with_history:
            for message in _history(datetime.now(UTC)):
                await bus.publish(message)
        else:
            await bus.request("$JS.API.STREAM.DELETE.HISTORY", b"")


@pytest.fixture(scope="module")
def landscape(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from _running(tmp_path_factory.mktemp("history"), with_history=True)


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from _running(tmp_path_factory.mktemp("no-history"), with_history=False)


def _running(directory: Path, *, with_history: bool) -> Iterator[str]:
    server = start_nats(directory / "nats", sync_interval="10s")
    publishing = threading.Thread(target=lambda: asyncio.run(_publish(server.url, with_history=with_history)))
    publishing.start()
    publishing.join()
    try:
        with running_dashboard(server.url, directory / "dashboard.log") as url:
            yield url
    finally:
        server.stop()


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
