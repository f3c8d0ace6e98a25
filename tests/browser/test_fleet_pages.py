"""The pages of placements and member clusters. The dashboard speaks to the bus only, so a NATS server makes a fleet."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from gardenbus.common.adapters.nats.jetstream import connect
from gardenbus.common.api.document import Document, encode
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.ports.bus import Message
from tests.support.dashboard_process import running_dashboard
from tests.support.fleet_pages import a_binding, a_member, a_placed, a_snapshot
from tests.support.page_checks import CUT_OFF, FOCUSED, NAMELESS
from tests.support.servers import start_nats

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(200)]

DONE = ("True",) * 5


def a_fleet() -> list[Document]:
    """Three clusters heard just now, and two placements."""
    return [
        a_member("east"),
        a_member("north", taint="maintenance"),
        a_member("west", healthy="False"),
        a_placed("logs", 1),
        a_placed("web", 3, fulfilled="False"),
        a_snapshot(
            "web",
            ("east", True, 20, -1, "picked by the scheduling policy"),
            ("north", True, 7, 0, "picked by the scheduling policy"),
            ("west", False, 0, 0, "it is unhealthy for more than 5 minutes"),
        ),
        a_snapshot("logs", ("east", True, 0, 0, "picked by the scheduling policy")),
        a_binding("logs", "east", "Bound", *DONE),
        a_binding("web", "east", "Bound", "True", "True", "True", "False", message="quota exceeded"),
        a_binding("web", "north", "Scheduled"),
    ]


Open = Callable[..., Page]
Keep = Callable[[Page, str], None]


class Fleet:
    """Announces documents and answers `garden.api.get.` for them, in a thread of its own."""

    def __init__(self, nats_url: str, documents: list[Document]) -> None:
        self._url = nats_url
        self._documents: dict[str, Document] = {}
        self._first = documents
        self._loop = asyncio.new_event_loop()
        self._ready, self._over = threading.Event(), asyncio.Event()
        self._version = 0
        self._bus: Any = None
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._run()))

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(60)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
        self._loop.close()

    def announce(self, *documents: Document) -> None:
        asyncio.run_coroutine_threadsafe(self._announce(documents), self._loop).result(30)

    async def _run(self) -> None:
        async with connect(self._url, "fleet", "garden") as self._bus:
            await self._bus.ensure_streams()
            await self._bus.serve("api", "1.0.0", {"garden.api.>": self._respond})
            await self._announce(self._first)
            self._ready.set()
            await self._over.wait()

    async def _announce(self, documents: Any) -> None:
        messages: list[Message] = []
        for document in documents:
            metadata = document["metadata"]
            key = ObjectKey(document["kind"].lower(), metadata.get("namespace") or "", metadata["name"])
            self._documents[f"get.{key.tail}"] = document
            self._version += 1
            headers = {Header.VERSION: str(self._version), Header.UID: "u", Header.VERB: "modified"}
            messages.append(Message(Subjects().changed(key), encode(document), headers))
        await self._bus.publish_many(messages)

    async def _respond(self, request: Any) -> bytes:
        tail = request.subject.removeprefix("garden.api.")
        if tail in self._documents:
            return json.dumps({"ok": True, "result": self._documents[tail]}).encode()
        error = {"code": 404, "reason": "NotFound", "message": f"{tail} not found"}
        return json.dumps({"ok": False, "error": error}).encode()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Fleet]]:
    directory: Path = tmp_path_factory.mktemp("fleet")
    server = start_nats(directory / "nats", sync_interval="10s")
    fleet = Fleet(server.url, a_fleet())
    fleet.start()
    try:
        with running_dashboard(server.url, directory / "dashboard.log") as url:
            yield url, fleet
    finally:
        fleet.stop()
        server.stop()


def test_a_placement_is_followed_from_the_list_to_its_clusters(fleet: tuple[str, Fleet], open_page: Open, keep: Keep):
    url, landscape = fleet
    page = open_page(url)
    expect(page.locator("#link-state")).to_contain_text("live")
    page.keyboard.press("g")
    page.keyboard.press("p")
    web = page.locator("[data-placement=web]")
    expect(web.locator("td").nth(1)).to_have_text("PickN")
    for column, number in ((2, "3"), (3, "2"), (4, "1"), (5, "0")):
        expect(web.locator("td").nth(column)).to_have_text(number)
    expect(web).to_contain_text("lacks clusters")
    expect(page.locator("[data-placement=logs]")).to_contain_text("fulfilled")
    keep(page, "placements")
    web.get_by_role("link").click()

    expect(page.get_by_role("heading", name="web", exact=True)).to_be_visible()
    expect(page.locator("[data-binding=east]")).to_contain_text("quota exceeded")
    expect(page.locator("[data-binding=east] .steps")).to_have_attribute("aria-label", "3 of 5 steps done")
    expect(page.locator("[data-binding=north]")).to_contain_text("waits for its turn")
    taken = page.get_by_role("table", name="Decisions")
    expect(taken.locator("[data-decision=east] td").nth(1)).to_have_text("20")
    expect(taken.locator("[data-decision=east] td").nth(2)).to_have_text("-1")
    expect(page.get_by_role("table", name="Not taken")).to_contain_text("unhealthy for more than 5 minutes")
    keep(page, "placement")

    landscape.announce(a_binding("web", "north", "Bound", *DONE))
    expect(page.locator("[data-binding=north]")).to_contain_text("available")
    page.locator("[data-binding=north]").get_by_role("link").click()
    expect(page.get_by_role("heading", name="north")).to_be_visible()
    expect(page.get_by_role("link", name="ClusterResourcePlacement web")).to_be_visible()
    page.goto(f"{url}/#/placement/clusterresourceplacement/_/nobody")
    expect(page.get_by_text("ClusterResourcePlacement nobody not found")).to_be_visible()


def test_a_landscape_of_clusters_alone_has_a_home_page_and_navigation_of_its_own(
    fleet: tuple[str, Fleet], open_page: Open, keep: Keep
):
    page = open_page(fleet[0])
    expect(page.get_by_role("heading", name="Fleet", exact=True)).to_be_visible()
    tiles = page.locator(".tile")
    expect(tiles.filter(has_text="Clusters well").locator(".value")).to_have_text("2 of 3")
    expect(tiles.filter(has_text="Placements fulfilled").locator(".value")).to_have_text("1 of 2")
    expect(page.get_by_role("main").get_by_role("link", name="west")).to_be_visible()
    keep(page, "fleet-home")
    pages = page.get_by_role("navigation", name="Pages")
    expect(pages.get_by_role("link")).to_have_text(["Fleet", "Tree", "Placements", "Clusters", "Events", "Operations"])
    pages.get_by_role("link", name="Clusters").click()
    expect(page.get_by_role("heading", name="Member clusters")).to_be_visible()
    expect(pages.get_by_role("link", name="Clusters")).to_have_attribute("aria-current", "page")


def test_member_clusters_show_how_they_are(fleet: tuple[str, Fleet], open_page: Open, keep: Keep):
    url, landscape = fleet
    page = open_page(f"{url}/#/placements")
    page.get_by_role("link", name="Clusters").click()
    expect(page.locator("[data-cluster=east]")).to_contain_text("well")
    expect(page.locator("[data-cluster=east] td").last).to_have_text("2")
    expect(page.locator("[data-cluster=north]")).to_contain_text("maintenance=x")
    expect(page.locator("[data-cluster=west]")).to_contain_text("unhealthy")
    keep(page, "clusters")
    page.get_by_label("State").select_option("unwell")
    expect(page.locator("[data-cluster]")).to_have_count(1)
    landscape.announce(a_member("north", seen_seconds_ago=600))
    expect(page.locator("[data-cluster=north]")).to_contain_text("silent")
    expect(page.locator("[data-cluster=north]")).to_contain_text("10 min ago")


@pytest.mark.parametrize(
    ("path", "sign"),
    [
        ("", ".fleet-home"),
        ("placements", "[data-placement=web]"),
        ("clusters", "[data-cluster=east]"),
        ("placement/clusterresourceplacement/_/web", "[data-decision=west]"),
    ],
)
def test_a_phone_is_wide_enough_and_everything_has_a_name(
    fleet: tuple[str, Fleet], open_page: Open, keep: Keep, path: str, sign: str
):
    page = open_page(f"{fleet[0]}/#/{path}", phone=True, dark=True)
    expect(page.locator(sign)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(CUT_OFF) == []
    assert page.evaluate(NAMELESS) == []
    assert page.locator("main h1").count() == 1
    keep(page, f"phone-{path.partition('/')[0] or 'fleet'}")


@pytest.mark.parametrize("phone", [True, False])
def test_the_keyboard_reaches_everything_in_sight_and_with_a_ring(
    fleet: tuple[str, Fleet], open_page: Open, *, phone: bool
):
    page = open_page(f"{fleet[0]}/#/placement/clusterresourceplacement/_/web", phone=phone)
    for height in range(380, 560, 30):  # so that different ones are at the lower edge
        page.set_viewport_size({"width": 390 if phone else 1360, "height": height})
        page.reload()
        expect(page.locator("[data-decision=west]")).to_be_visible()
        unreached: list[str] = []
        for _ in range(3):  # what is drawn anew while somebody tabs may take the focus with it
            reached = _tabbed_through(page)
            links = page.locator("main :is(a[href], button, summary)").all_text_contents()
            if not (unreached := [each for each in links if each not in " ".join(reached)]):
                break
            page.reload()
            expect(page.locator("[data-decision=west]")).to_be_visible()
        assert unreached == []


def _tabbed_through(page: Page) -> list[str]:
    """Names of what has the focus, one Tab after the other: each is in sight, and has a ring."""
    reached: list[str] = []
    while not (focused := _after_tab(page))["isEnd"] and focused["name"] not in reached[:1]:
        assert (focused["isSeen"], focused["hasRing"]) == (True, True), focused["name"]
        reached.append(str(focused["name"]))
    assert reached[0] == "A Skip to content"
    return reached


def _after_tab(page: Page) -> Document:
    page.keyboard.press("Tab")
    focused: Document = page.evaluate(FOCUSED)
    return focused


@pytest.mark.parametrize(
    ("path", "read", "sign"),
    [
        ("", "**/api/fleet", ".fleet-home"),
        ("placements", "**/api/placements?*", "[data-placement=web]"),
        ("clusters", "**/api/clusters?*", "[data-cluster=east]"),
        ("waiting", "**/api/waiting?*", "text=No pending shoots"),
    ],
)
def test_a_list_that_cannot_be_read_says_so_and_is_read_again(
    fleet: tuple[str, Fleet], open_page: Open, path: str, read: str, sign: str
):
    page = open_page("about:blank")
    is_away = [True]
    page.route(read, lambda route: route.abort() if is_away else route.continue_())
    page.goto(f"{fleet[0]}/#/{path}")
    expect(page.get_by_role("alert").filter(has_text="This could not be read")).to_be_visible()
    is_away.clear()
    expect(page.locator(sign)).to_be_visible()
    expect(page.get_by_text("This could not be read")).to_have_count(0)
