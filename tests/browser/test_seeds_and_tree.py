"""The table of seeds, and the tree of what belongs to what."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import Subjects
from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.clock import timestamp
from tests.support.announced import announced_landscape, announcement
from tests.support.builders import a_condition, a_seed, a_shoot, merged
from tests.support.page_checks import NAMELESS

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(400)]

SEEDS = 230
PLACES = [("aws", "eu-west-1"), ("aws", "us-east-1"), ("gcp", "europe-west4")]
MOST_ELEMENTS = 2_500

Open = Callable[..., Page]
Keep = Callable[[Page, str], None]


def a_seed_of(number: int) -> Document:
    provider, region = PLACES[number % len(PLACES)]
    seed = merged(
        a_seed(f"seed-{number:03}", shoots="40"), {"spec": {"provider": {"type": provider, "region": region}}}
    )
    if number == 7:
        silent = a_condition("GardenletReady", status="Unknown", lastHeartbeatTime="2026-01-02T03:04:05Z")
        seed["status"]["conditions"] = [silent]
    if number in (8, 9):
        ends = datetime.now(UTC) + timedelta(days=3 if number == 8 else 30)
        seed["status"]["clientCertificateExpirationTimestamp"] = timestamp(ends)
    return seed


def a_shoot_on(seed: str, name: str, state: str) -> Document:
    status = {"seedName": seed, "lastOperation": {"type": "Create", "state": state, "progress": 100}}
    return a_shoot(name, spec={"seedName": seed}, status=status)


def _set_of_seeds() -> list[Document]:
    owner = {"kind": "ManagedSeedSet", "name": "grove", "controller": True}
    hosting = a_shoot_on("seed-001", "grove-0", "Succeeded")
    hosting["metadata"] |= {"name": "grove-0", "namespace": "garden"}
    return [
        {
            "kind": "ManagedSeedSet",
            "metadata": {"name": "grove", "namespace": "garden"},
            "spec": {"replicas": 1},
            "status": {"replicas": 1, "readyReplicas": 1},
        },
        {"kind": "ManagedSeed", "metadata": {"name": "grove-0", "namespace": "garden", "ownerReferences": [owner]}},
        hosting,
        merged(a_seed("grove-0", shoots="40"), {"spec": {"provider": {"type": "aws", "region": "eu-west-1"}}}),
        a_shoot_on("grove-0", "tantalus", "Failed"),
        a_shoot_on("grove-0", "apollo", "Succeeded"),
    ]


@pytest.fixture(scope="module")
def landscape(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    documents = [*map(a_seed_of, range(SEEDS)), *_set_of_seeds()]
    leases = [Message(Subjects().lease(f"seed-{number:03}"), b"{}") for number in range(SEEDS)]
    messages = [*map(announcement, documents), *leases]
    messages.append(Message(Subjects().queue("migration", "garden-dev", "apollo")))
    with announced_landscape(tmp_path_factory.mktemp("tree"), messages, stalled="migration") as url:
        yield url


def test_seeds_begin_with_what_is_not_well_and_are_sorted_by_any_column(landscape: str, open_page: Open, keep: Keep):
    page = open_page(f"{landscape}/#/seeds")
    rows = page.locator(".seeds-table tbody tr")
    expect(rows).to_have_count(100)
    expect(rows.first).to_contain_text("seed-007")
    expect(rows.first).to_contain_text("gardenlet is silent")
    page.get_by_role("button", name="Shoots").click()
    page.get_by_role("button", name="Shoots").click()
    expect(rows.first).to_contain_text("grove-0")
    expect(page).to_have_url(re.compile("sort=-shoots"))
    expect(page.get_by_role("columnheader", name="Shoots").first).to_have_attribute("aria-sort", "descending")
    assert page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
    assert page.evaluate(NAMELESS) == []
    keep(page, "seeds")


def test_what_needs_somebody_stands_above_every_page_until_it_is_over(landscape: str, open_page: Open, keep: Keep):
    page = open_page(f"{landscape}/#/shoots")
    banner = page.locator(".notices")
    expect(banner).to_contain_text(
        "1 seed is silent, and no shoot is placed there: seed-007 (last heartbeat 2 Jan 03:04)"
    )
    expect(banner).to_contain_text("1 certificate of a gardenlet ends within a week: seed-008 (ends")
    expect(banner).not_to_contain_text("seed-009")
    keep(page, "notices")
    banner.get_by_role("link", name="seed-007").click()
    expect(page).to_have_url(re.compile("object/seed/_/seed-007"))
    expect(banner).to_be_visible()
    phone = open_page(f"{landscape}/#/seeds?search=seed-00", phone=True, dark=True)
    expect(phone.locator(".notices")).to_be_visible()
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_queue_that_stands_still_is_named_above_every_page_and_leads_to_operations(
    landscape: str, open_page: Open, keep: Keep
):
    page = open_page(f"{landscape}/#/shoots")
    line = page.locator(".notices li", has_text="queue migration")
    expect(line).to_have_text("queue migration stands still: no consumer, 1 message pending")
    keep(page, "notices-queue")
    line.get_by_role("link").focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/operations"))
    expect(line).to_be_visible()


def test_totals_follow_the_filter(landscape: str, open_page: Open):
    page = open_page(f"{landscape}/#/seeds")
    everything = page.locator("[data-total='/']")
    expect(everything).to_contain_text(str(SEEDS + 1))
    page.get_by_role("searchbox", name="Filter seeds").fill("gcp")
    expect(page.locator("[data-total='gcp/europe-west4']")).to_contain_text("76")
    expect(page.locator("[data-total]")).to_have_count(1)


def test_a_phone_shows_the_seeds_as_blocks(landscape: str, open_page: Open, keep: Keep):
    page = open_page(f"{landscape}/#/seeds?search=seed-00", phone=True)
    expect(page.locator(".seeds-table tbody tr")).to_have_count(10)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    keep(page, "seeds-phone")


def test_the_tree_opens_at_what_is_not_well(landscape: str, open_page: Open, keep: Keep):
    page = open_page(f"{landscape}/#/tree")
    failed = page.get_by_role("treeitem", name=re.compile("^Shoot tantalus: failed"))
    expect(failed).to_be_visible()
    expect(page.get_by_role("treeitem", name=re.compile("^ManagedSeedSet grove"))).to_have_attribute(
        "aria-expanded", "true"
    )
    expect(page.get_by_role("treeitem", name=re.compile("^Seed seed-007: its gardenlet is silent"))).to_be_visible()
    assert page.evaluate("document.querySelectorAll('*').length") < MOST_ELEMENTS
    assert page.evaluate(NAMELESS) == []
    keep(page, "tree")


def test_the_tree_is_opened_and_closed_by_keyboard_alone(landscape: str, open_page: Open):
    page = open_page(f"{landscape}/#/tree", dark=True)
    grove = page.get_by_role("treeitem", name=re.compile("^ManagedSeedSet grove"))
    page.locator("[data-node='managedseedset.garden.grove']").focus()
    page.keyboard.press("ArrowLeft")
    expect(grove).to_have_attribute("aria-expanded", "false")
    page.keyboard.press("ArrowRight")
    expect(grove).to_have_attribute("aria-expanded", "true")
    expect(page.locator("[data-node='managedseedset.garden.grove']")).to_be_focused()


def test_escape_leaves_the_search_and_the_next_key_is_one_of_the_page(landscape: str, open_page: Open):
    page = open_page(f"{landscape}/#/tree")
    expect(page.get_by_role("treeitem").first).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("grove")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("d")
    expect(page.locator("h1")).to_have_text("Seeds")
