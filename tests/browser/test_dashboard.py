"""The dashboard of the example landscape, as somebody sees it in a browser."""

import asyncio
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import resources
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, StorageState, expect

from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS
from gardenbus.common.adapters.nats.jetstream import connect
from gardenbus.common.api.document import Document
from gardenbus.common.ports.bus import Message
from tests.support.commands import gardenbus_program
from tests.support.dashboard_process import running_dashboard
from tests.support.landscape import address_of, authorities_of
from tests.support.page_checks import CUT_OFF, NAMELESS

POINTS_MS = 250_000
"""Ends a hang: a point of the history is written each minute, and read each minute by a page."""

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(400)]

EXAMPLE = Path(__file__).parents[2] / "examples/landscape"
EXAMPLE_SEEDS = (
    *("aws-dublin", "aws-cork", "aws-frankfurt", "aws-virginia", "aws-lab"),
    *("gcp-eemshaven", "gcp-iowa", "gcp-vault", "stack-berlin"),
)
SEEDS = ("aws-dublin", "aws-frankfurt", "gcp-iowa", "stack-berlin")

SHOOT = """
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: NAME, namespace: garden-dev}
spec:
  cloudProfile: {kind: CloudProfile, name: aws}
  region: eu-west-1
  purpose: evaluation
  kubernetes: {version: 1.34.4}
  seedSelector: {matchLabels: {environment: ENVIRONMENT}}
  provider:
    type: aws
    workers:
    - {name: pool, machine: {type: small, image: {name: gardenlinux, version: 1877.4.0}}, minimum: 1, maximum: 3,
       zones: [eu-west-1a]}
  networking: {type: calico, nodes: 172.28.0.0/16}
"""

PAGES = {
    "": "[data-seed=aws-dublin]",
    "shoots": ".grid-row",
    "waiting": "[data-shoot='garden-dev/tantalus']",
    "growth": "svg.chart",
    "events": ".event",
    "operations": "[data-queue=requests]",
    "there/is/none": "main .ways",
    "object/shoot/garden-dev/ixion": ".funnel [data-rule]",
    "object/seed/_/aws-dublin": ".seed-shoots .grid-row",
}
"""Addresses, and what is there when they are."""


IS_WHOLE = "(selector) => ((found) => found.scrollWidth <= found.clientWidth)(document.querySelector(selector))"
"""Whether nothing of what is found is cut off at its right."""

UNTIL_LOST = """async () => {
  while (document.querySelector('.lost').hidden) await new Promise((done) => requestAnimationFrame(done));
}"""
"""Looks at each frame, because the connection may come back at once."""

Open = Callable[..., Page]
Keep = Callable[[Page, str], None]


def gardenbus(*arguments: str) -> str:
    ended = subprocess.run([gardenbus_program(), *arguments], capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode == 0, (arguments, ended.stdout, ended.stderr)
    return ended.stdout


def named(files: Sequence[Path]) -> list[str]:
    """Files as arguments."""
    return [argument for file in files for argument in ("-f", str(file))]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("landscape") / "state"
    at = ("--dir", str(directory))
    shoots = sorted(EXAMPLE.glob("shoots-*.yaml"))
    others = sorted(set(EXAMPLE.glob("*.yaml")) - set(shoots))
    gardenbus("up", *at, *named(others), "--detach")
    # While only some seeds are ready all shoots are placed on these: which of them then find no room differs.
    for goal in ("create", "condition=GardenletReady", "condition=BackupBucketsReady"):
        gardenbus("wait", "seeds", *EXAMPLE_SEEDS, "--for", goal, "--timeout", "1m", *at)
    gardenbus("apply", *named(shoots), *at)
    yield directory
    gardenbus("down", "--dir", str(directory))


@pytest.fixture(scope="module")
def url(directory: Path) -> str:
    services = json.loads((directory / "landscape.json").read_text())["services"]
    return next(service["url"] for service in services if service["name"] == "dashboard")


@pytest.fixture(scope="module")
def logged_in(browser: Browser, directory: Path) -> StorageState:
    context = browser.new_context()
    page = context.new_page()
    page.goto(gardenbus("dashboard", "--dir", str(directory)).strip())
    expect(page.locator("#link-state")).to_contain_text("live", timeout=45_000)
    found = context.storage_state()
    context.close()
    return found


@pytest.fixture(scope="module")
def writable(directory: Path) -> Iterator[str]:
    """A second dashboard of the same landscape, with which things can be changed."""
    nats_url = address_of(directory)
    ca = authorities_of(directory)
    with running_dashboard(nats_url, directory.parent / "writable.log", "--allow-writes", ca=ca) as url:
        yield url


def pid_of_dashboard(directory: Path) -> int:
    services = json.loads((directory / "landscape.json").read_text())["services"]
    return next(service["pid"] for service in services if service["name"] == "dashboard")


def name_of(path: str) -> str:
    """For a picture's file: the page, or the kind of the object."""
    return path.removeprefix("object/").partition("/")[0] or "landscape"


def order(directory: Path, name: str, environment: str) -> None:
    manifest = directory.parent / f"{name}.yaml"
    manifest.write_text(SHOOT.replace("NAME", name).replace("ENVIRONMENT", environment))
    gardenbus("apply", "-f", str(manifest), "--dir", str(directory))


def reject(directory: Path, name: str) -> None:
    """Send a manifest that cannot be taken, and wait until it is kept."""
    nats_url, trust = address_of(directory), NO_CREDENTIALS._replace(ca=authorities_of(directory))
    manifest: Document = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "spec": {}}
    body = json.dumps({**manifest, "metadata": {"name": name, "namespace": "garden-dev"}}).encode()

    async def publish() -> None:
        async with connect(nats_url, "reject", credentials=trust, manages_streams=False) as bus:
            await bus.publish(Message("garden.apply", body))

    publishing = threading.Thread(target=lambda: asyncio.run(publish()))  # the browser's event loop is this thread's
    publishing.start()
    publishing.join()
    deadline = time.monotonic() + 60
    while name not in gardenbus("rejected", "--dir", str(directory)):
        assert time.monotonic() < deadline


def test_the_map_shows_the_landscape(url: str, open_page: Open, keep: Keep):
    page = open_page(url)
    for seed in SEEDS:
        expect(page.locator(f"[data-seed={seed}]")).to_contain_text("beat")
    expect(page.get_by_role("heading", name="eu-west-1")).to_be_visible()
    expect(page.locator("#link-state")).to_contain_text("live")
    expect(page.locator(".lost")).to_be_hidden()
    expect(page.locator(".tile .value").first).to_have_text(re.compile(r"^[5-9]\d"))
    keep(page, "landscape-light")


def test_a_new_shoot_appears_and_gets_its_seed(url: str, directory: Path, open_page: Open, keep: Keep):
    page = open_page(f"{url}/#/shoots?search=newcomer")
    expect(page.get_by_text("No matching shoots")).to_be_visible()
    order(directory, "newcomer", "lab")  # nobody tolerates the lab
    order(directory, "newcomer-too", "live")
    row = page.locator(".grid-row", has_text="newcomer-too")
    expect(row).to_contain_text("aws-")
    expect(row).to_contain_text("succeeded")
    expect(page.locator(".grid-row", has_text="waits for a seed")).to_have_count(1)
    row.click()
    expect(page.get_by_role("heading", name="newcomer-too")).to_be_visible()
    expect(page.get_by_text("It is on")).to_be_visible()
    expect(page.get_by_text("Chosen")).to_contain_text("fitted")
    keep(page, "placed-light")


def test_the_funnel_of_a_shoot_that_fits_nowhere_names_the_rule(url: str, open_page: Open, keep: Keep):
    page = open_page(f"{url}/#/object/shoot/garden-dev/tantalus")
    expect(page.locator(".funnel [data-rule=taints]")).to_contain_text("0")
    expect(page.locator(".funnel [data-rule=shoot-selector]")).to_be_visible()
    expect(page.locator(".against")).to_contain_text("does not tolerate")
    expect(page.locator(".event", has_text="SchedulingFailed").first).to_be_visible()
    keep(page, "decision-light")
    page.get_by_text("Manifest").click()
    expect(page.locator(".yaml")).to_contain_text("kind: Shoot")


RANKED = """async () => {
  const { decision } = await import("./static/decision.js");
  const scores = [
    { name: "SeedResourcesFit", weight: 3, requested: true },
    { name: "SeedZoneFit", weight: 1, requested: false },
  ];
  const ranking = [
    { seed: "aws-cork", rank: 1, used: 2, sum: 250, scores: [50, 100] },
    { seed: "aws-lab", rank: 2, used: 9, sum: 0, scores: [0, 0] },
  ];
  const considered = { scores, ranking, ranked: 2, funnel: [], rejected: [] };
  document.body.append(decision({ shoot: "garden-dev/a", considered }));
}"""


def test_the_scores_of_a_profile_are_one_bar_for_each_seed(url: str, open_page: Open):
    page = open_page(f"{url}/#/")
    page.evaluate(RANKED)
    bars = page.locator(".meter.stacked")
    expect(bars).to_have_count(2)
    expect(bars.first).to_have_attribute("aria-label", "SeedResourcesFit 3*50, SeedZoneFit 1*100")
    parts = bars.first.locator("i")
    assert [each.evaluate("element => element.style.width") for each in parts.all()] == ["37.5%", "25%"]
    expect(bars.last.locator("i")).to_have_count(0)
    expect(page.locator(".points-legend")).to_contain_text("SeedZoneFit*1 (not requested by this shoot)")


def test_who_waits_is_grouped_by_cause_in_short_words(url: str, open_page: Open, keep: Keep):
    page = open_page(f"{url}/#/waiting")
    full = page.locator("[data-cause=full]")
    expect(full.locator("[data-shoot]")).to_have_count(2)
    expect(full.locator("[data-shoot]").first).to_contain_text(re.compile(r"0/\d+ seeds: .*\d+ full"))
    waits = page.locator("[data-shoot='garden-dev/tantalus']")
    expect(waits).to_contain_text(re.compile(r"again|when something|looked at"))
    keep(page, "waiting-light")
    page.get_by_label("Filter shoots that wait").fill("tantalus")
    expect(page.locator("[data-cause]")).to_have_count(1)
    expect(page.locator("[data-cause='with taints that it does not tolerate']")).to_contain_text("tantalus")
    assert "search=tantalus" in page.url


def test_growth_is_a_chart_with_the_reason(url: str, open_page: Open, keep: Keep):
    page = open_page(f"{url}/#/growth")
    expect(page.get_by_role("link", name="grove", exact=True).first).to_be_visible()
    expect(page.locator("svg.chart path.desired")).to_have_count(1)
    expect(page.locator("svg.chart")).to_have_attribute("aria-label", re.compile("between 1 and 3"))
    expect(page.locator(".facts")).to_contain_text(re.compile(r"utilization of shoots \d+ %, \w+ the target of 80 %"))
    keep(page, "growth-light")


def test_a_set_shows_its_replicas_its_rollout_and_why_it_scales(url: str, open_page: Open, keep: Keep):
    page = open_page(f"{url}/#/object/managedseedset/garden/grove")
    facts = page.locator(".scaling")
    expect(facts).to_contain_text(re.compile("wants [123], between 1 and 3"))
    expect(facts).to_contain_text(re.compile("have the (new )?template"))
    expect(page.locator("[data-replica]").first).to_contain_text("Shoot grove-")
    chart = page.locator("[data-history=managedseedset] [data-chart=sets]")
    expect(chart).to_be_visible(timeout=POINTS_MS)
    keep(page, "set")


def test_a_seed_shows_its_state_its_shoots_and_its_fill_on_the_first_screen(url: str, open_page: Open, keep: Keep):
    page = open_page(f"{url}/#/object/seed/_/aws-dublin")
    expect(page.locator(".titled .chip")).to_have_text("ready")
    expect(page.locator(".seed-shoots .grid-row:visible").first).to_be_in_viewport()
    expect(page.locator("svg.chart.fill")).to_be_in_viewport()
    expect(page.locator("svg.chart.fill")).to_have_attribute("aria-label", re.compile(r"\d+ now, of 20 places"))
    page.wait_for_function(IS_WHOLE, arg=".seed-shoots .grid-head")
    keep(page, "seed-light")


def test_a_shoot_that_was_moved_shows_the_move(url: str, directory: Path, open_page: Open, keep: Keep):
    before, to = "aws-cork", "aws-dublin"  # of one region and domain; the former fills up first, the latter has room
    at = ("--dir", str(directory))
    built = f"spec.seedName={before},status.lastOperation.state=Succeeded"
    query = ("get", "shoots", "-n", "garden-dev", "--field-selector", built, "-o", "jsonpath={.items[0].metadata.name}")
    end = time.monotonic() + 60
    while not (name := gardenbus(*query, *at).strip()):
        assert time.monotonic() < end, f"no shoot was built on {before}"
        time.sleep(0.5)
    page = open_page(f"{url}/#/object/shoot/garden-dev/{name}")
    expect(page.get_by_role("heading", name=name)).to_be_visible()
    expect(page.get_by_role("heading", name="Moved")).to_have_count(0)
    expect(page.locator(".facts a").first).to_have_text(before)
    gardenbus("bind", f"garden-dev/{name}", to, *at)
    expect(page.locator(".moves li")).to_contain_text(f"{before} → {to}")
    expect(page.locator(".moves .chip")).to_have_text("done")
    expect(page.locator(".facts a").first).to_have_text(to)
    keep(page, "moved-light")


def test_an_unknown_address_says_so_and_leads_on(url: str, open_page: Open, keep: Keep):
    page = open_page(f"{url}/#/landscapes/one")
    expect(page.get_by_text("There is no page at this address")).to_be_visible()
    keep(page, "unknown-light")
    page.locator(".ways").get_by_role("link", name="Growth").click()
    expect(page.get_by_role("heading", name="Growth")).to_be_visible()
    page.goto(f"{url}/landscapes")
    page.get_by_role("link", name="To the landscape").click()
    expect(page.get_by_role("heading", name="Landscape")).to_be_visible()


def test_operations_shows_checks_queues_and_services(url: str, open_page: Open, keep: Keep):
    page = open_page(f"{url}/#/operations")
    expect(page.locator("[data-check=streams]")).to_contain_text("all 9 are there")
    expect(page.locator("[data-check=redis]")).to_contain_text("skipped")
    expect(page.locator("[data-check=lost]")).to_contain_text("no stream has lost messages")
    expect(page.locator("[data-queue=scheduling-default-scheduler]")).to_contain_text(re.compile(r"\d\.\d"))
    expect(page.locator("[data-service=scheduler] td").nth(2)).to_have_text("1")
    expect(page.locator("[data-service=apiserver] td").nth(1)).to_have_text(re.compile(r"\d+\.\d+\.\d+"))
    page.wait_for_function(IS_WHOLE, arg="[data-part=queues] .scrolls")
    keep(page, "operations-light")


def test_a_rejected_message_is_replayed_where_changes_are_allowed(
    writable: str, url: str, directory: Path, open_page: Open, keep: Keep
):
    reject(directory, "late-comer")
    looking = open_page(f"{url}/#/operations")
    expect(looking.locator("[data-rejected]")).to_contain_text("spec.region")
    expect(looking.get_by_role("button", name="Replay")).to_have_count(0)
    page = open_page(f"{writable}/#/operations")
    page.get_by_role("button", name="Show message 1").click()
    expect(page.locator("[data-rejected] pre")).to_contain_text("late-comer")
    keep(page, "rejected-light")
    page.get_by_role("button", name="Replay message 1").click()
    expect(page.locator(".toast")).to_contain_text("was rejected again, as 2")
    page.get_by_role("button", name="Show message 1").click()
    expect(page.locator("[data-rejected='2']")).to_contain_text("late-comer")


def test_filters_narrow_the_table_down_and_stay_in_the_address(url: str, open_page: Open):
    page = open_page(f"{url}/#/shoots")
    expect(page.locator(".grid-row:visible").first).to_be_visible()
    page.get_by_label("State").select_option("waiting")
    expect(page.locator(".count-text")).to_have_text(re.compile(r"^\d+ shoots$"))
    expect(page.locator(".grid-row:visible", has_text="succeeded")).to_have_count(0)
    page.keyboard.press("f")
    page.get_by_label("Filter shoots").fill("tantalus")
    expect(page.locator(".grid-row:visible")).to_have_count(1)
    assert "state=waiting" in page.url
    assert "search=tantalus" in page.url


def test_search_and_keys_lead_everywhere(url: str, open_page: Open):
    page = open_page(url)
    expect(page.locator("#link-state")).to_contain_text("live")
    page.keyboard.press("/")
    page.keyboard.type("dublin")
    expect(page.get_by_role("option").first).to_contain_text("aws-dublin")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="aws-dublin")).to_be_visible()
    expect(page.get_by_role("heading", name="Shoots here")).to_be_visible()
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.get_by_role("heading", name="Shoots", exact=True)).to_be_visible()
    expect(page.locator(".grid-row:visible").first).to_be_visible()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".grid-row.active")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/object/shoot/"))
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_an_address_of_an_object_can_be_kept(url: str, open_page: Open):
    page = open_page(f"{url}/#/object/managedseedset/garden/grove")
    expect(page.get_by_role("heading", name="grove")).to_be_visible()
    expect(page.get_by_role("link", name="SeedAutoscaler grove")).to_be_visible()
    missing = open_page(f"{url}/#/object/shoot/garden-dev/nobody")
    expect(missing.get_by_text("Shoot nobody not found")).to_be_visible()


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_is_wide_enough(url: str, open_page: Open, keep: Keep, path: str):
    page = open_page(f"{url}/#/{path}", phone=True)
    expect(page.locator(PAGES[path]).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(CUT_OFF) == []
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    keep(page, f"phone-{name_of(path)}")


@pytest.mark.parametrize("path", PAGES)
def test_everything_that_can_be_pressed_has_a_name(url: str, open_page: Open, keep: Keep, path: str):
    page = open_page(f"{url}/#/{path}", dark=True)
    expect(page.locator(PAGES[path]).first).to_be_visible()
    assert page.evaluate(NAMELESS) == []
    assert page.locator("main h1").count() == 1
    keep(page, f"dark-{name_of(path)}")


def test_dark_is_the_systems_choice_or_ones_own(url: str, open_page: Open, keep: Keep):
    page = open_page(url, dark=True)
    expect(page.locator("[data-seed=aws-dublin]")).to_contain_text("ready")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    keep(page, "landscape-dark")
    page.keyboard.press("t")
    assert page.evaluate(ground) != dark
    page.reload()
    assert page.evaluate(ground) != dark
    page.goto(f"{url}/#/object/shoot/garden-dev/tantalus")
    page.keyboard.press("t")
    expect(page.locator(".funnel")).to_be_visible()
    keep(page, "decision-dark")


def test_a_page_that_may_only_look_offers_nothing_to_change(url: str, open_page: Open):
    page = open_page(f"{url}/#/object/seed/_/gcp-iowa")
    expect(page.get_by_role("heading", name="gcp-iowa")).to_be_visible()
    expect(page.get_by_text("read-only")).to_be_visible()
    expect(page.get_by_role("button", name="Cordon")).to_have_count(0)
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)


def test_the_page_of_a_shoot_that_waits_follows_its_seeds(writable: str, open_page: Open):
    """Its own object stays as it is: a seed that it does not fit anyway gives it no other chance."""
    against = open_page(f"{writable}/#/object/shoot/garden-dev/tantalus").locator(".against")
    expect(against).to_contain_text("does not tolerate")
    seed = open_page(f"{writable}/#/object/seed/_/aws-lab")
    seed.get_by_role("button", name="Cordon…", exact=True).click()
    seed.get_by_role("button", name="Do it").click()
    expect(against).not_to_contain_text("does not tolerate")
    seed.get_by_role("button", name="Uncordon…").click()
    seed.get_by_role("button", name="Do it").click()
    expect(against).to_contain_text("does not tolerate")


def test_a_seed_is_cordoned_where_changes_are_allowed(writable: str, url: str, open_page: Open):
    page = open_page(f"{writable}/#/object/seed/_/gcp-iowa")
    looking = open_page(url)
    expect(looking.locator("[data-seed=gcp-iowa]")).to_contain_text("ready")
    page.get_by_role("button", name="Cordon…", exact=True).click()
    expect(page.get_by_role("dialog")).to_contain_text("it takes no new shoots")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Uncordon")).to_be_visible()
    expect(looking.locator("[data-seed=gcp-iowa]")).to_contain_text("cordoned")
    page.get_by_role("button", name="Uncordon…").click()
    page.get_by_role("button", name="Do it").click()
    expect(page.get_by_role("button", name="Cordon…", exact=True)).to_be_visible()
    expect(looking.locator("[data-seed=gcp-iowa]")).to_contain_text("ready")
    expect(page.locator(".event", has_text="Uncordoned").first).to_contain_text("uncordons it, on the dashboard")


def test_a_seed_is_drained_once_its_plan_has_been_shown(writable: str, open_page: Open, keep: Keep):
    page, second = (open_page(f"{writable}/#/object/seed/_/aws-virginia") for _ in range(2))
    dialog = page.get_by_role("dialog", name="Drain seed aws-virginia?")
    for each in (page, second):
        each.get_by_role("button", name="Drain…").click()
        what = each.get_by_role("dialog", name="Drain seed aws-virginia?").get_by_role("list", name="What it does")
        expect(what).to_contain_text("it takes no new shoots")
        expect(what).to_contain_text(re.compile(r"as the scheduler would place them now: \d+ to aws-lab"))
        expect(what).to_contain_text("stays: ")
    keep(page, "drain")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.locator("#toasts")).to_contain_text("on the way to other seeds")
    second.get_by_role("button", name="Do it").click()
    expect(second.locator("#toasts")).to_contain_text("dashboard drains it")
    drained = page.locator(".event", has_text="Draining")
    expect(drained.first).to_contain_text("drains it: ")
    expect(drained).to_have_count(1)
    page.get_by_role("button", name="Uncordon…").click()
    page.get_by_role("button", name="Do it").click()
    expect(page.get_by_role("button", name="Cordon…", exact=True)).to_be_visible()


def test_a_stream_counts_as_frozen_after_five_seconds_at_the_latest_and_two_missed_beats():
    page = (resources.files("gardenbus.dashboard") / "static" / "live.js").read_text(encoding="utf-8")
    silent = re.search(r"SILENT_MS = (\d+); // a beat comes every (\d+) s", page)
    assert silent is not None
    assert 2 * 1000 * int(silent[2]) < int(silent[1]) <= 5000


def test_a_frozen_stream_is_noticed(url: str, directory: Path, open_page: Open, keep: Keep):
    page = open_page(url)
    expect(page.locator("#link-state")).to_contain_text("live")
    pid = pid_of_dashboard(directory)
    os.kill(pid, signal.SIGSTOP)
    try:
        page.evaluate(UNTIL_LOST)
        expect(page.locator(".lost")).to_contain_text("What you see is old")
        expect(page.locator("#link-state")).to_contain_text("old")
        keep(page, "frozen")
    finally:
        os.kill(pid, signal.SIGCONT)
    expect(page.locator("#link-state")).to_contain_text("live")
    expect(page.locator(".lost")).to_be_hidden()


def test_a_lost_connection_is_said_and_mends_itself(url: str, directory: Path, open_page: Open, keep: Keep):
    page = open_page(url)
    expect(page.locator("#link-state")).to_contain_text("live")
    os.kill(pid_of_dashboard(directory), signal.SIGKILL)
    page.evaluate(UNTIL_LOST)
    keep(page, "connection-lost")
    expect(page.locator("#link-state")).to_contain_text("live")
    expect(page.locator(".lost")).to_be_hidden()
    expect(page.locator("[data-seed=aws-dublin]")).to_contain_text("ready")


def test_a_landscape_that_could_not_be_read_at_first_is_read_again(url: str, open_page: Open):
    page = open_page("about:blank")
    failures = iter((True, True))
    page.route("**/api/seeds", lambda route: route.abort() if next(failures, False) else route.continue_())
    page.goto(url)
    expect(page.locator("[data-seed=aws-dublin]")).to_contain_text("ready")
    expect(page.locator("#link-state")).to_contain_text("live")
