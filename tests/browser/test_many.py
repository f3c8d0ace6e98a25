"""5,000 shoots on 200 seeds stay smooth. The dashboard speaks to the bus only, so a NATS server makes a landscape."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Page, expect

from gardenbus.common.adapters.jetstream import connect
from gardenbus.common.ports.bus import Message
from gardenbus.common.resources.document import Document, encode
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects
from tests.support.builders import a_condition, a_seed, a_shoot, merged
from tests.support.servers import free_port, start_nats

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SEEDS = 200
SHOOTS = 5_000
REGIONS = [(provider, f"{provider}-{place}-1") for provider in ("aws", "gcp", "azure") for place in ("eu", "us", "ap")]

LONG_TASK_MS = 200
LONG_TASKS = 2
"""Of a scroll through the whole table; none is seen on a machine with nothing else to do."""

MOST_ELEMENTS = 2_500
MOST_ROWS = 60

SCROLL = """async () => {
  const tasks = [];
  const observer = new PerformanceObserver((list) => tasks.push(...list.getEntries().map((entry) => entry.duration)));
  observer.observe({ type: 'longtask' });
  const scroll = document.querySelector('.grid-scroll');
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  let frames = 0;
  const began = performance.now();
  for (let step = 0; step <= 150; step++) {
    scroll.scrollTop = (scroll.scrollHeight - scroll.clientHeight) * (step / 150);
    await frame();
    frames++;
  }
  const took = performance.now() - began;
  await new Promise((done) => setTimeout(done, 300));
  observer.disconnect();
  return { tasks, frames, took };
}"""

Open = Callable[..., Page]
Publishing = Callable[[str, list[Message]], Coroutine[None, None, None]]


class Many(NamedTuple):
    url: str
    nats_url: str


def shoot(number: int, progress: int = 100) -> Document:
    provider, region = REGIONS[number % len(REGIONS)]
    is_done = progress == 100
    return a_shoot(
        f"shoot-{number:05}",
        f"garden-team-{number % 40:02}",
        metadata={"creationTimestamp": "2026-01-02T03:04:05Z", "resourceVersion": str(number + progress)},
        spec={"region": region, "provider": {"type": provider}, "seedName": f"seed-{number % SEEDS:03}"},
        status={
            "seedName": f"seed-{number % SEEDS:03}",
            "lastOperation": {
                "type": "Create" if is_done else "Reconcile",
                "state": "Succeeded" if is_done else "Processing",
                "progress": progress,
                "description": "Deploying the control plane",
            },
            "conditions": [a_condition(kind) for kind in ("APIServerAvailable", "ControlPlaneHealthy")],
        },
    )


def seed(number: int) -> Document:
    provider, region = REGIONS[number % len(REGIONS)]
    document = a_seed(f"seed-{number:03}", shoots="40")
    return merged(document, {"spec": {"provider": {"type": provider, "region": region}}})


def announcement(document: Document, version: int) -> Message:
    metadata = document["metadata"]
    key = ObjectKey(document["kind"].lower(), metadata.get("namespace") or "", metadata["name"])
    headers = {Header.VERSION: str(version), Header.UID: "u", Header.VERB: "modified"}
    return Message(Subjects().changed(key), encode(document), headers)


async def publish(nats_url: str, messages: list[Message]) -> None:
    async with connect(nats_url, "landscape", "garden") as bus:
        await bus.ensure_streams()
        for start in range(0, len(messages), 500):
            await bus.publish_many(messages[start : start + 500])


def _begin(publishing: Publishing, nats_url: str, messages: list[Message]) -> threading.Thread:
    """In a thread of its own: the browser's event loop is this one's."""
    thread = threading.Thread(target=lambda: asyncio.run(publishing(nats_url, messages)))
    thread.start()
    return thread


def _run(publishing: Publishing, nats_url: str, messages: list[Message]) -> None:
    _begin(publishing, nats_url, messages).join()


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Many]:
    directory = tmp_path_factory.mktemp("many")
    server = start_nats(directory / "nats", sync_interval="10s")
    documents = [*map(seed, range(SEEDS)), *map(shoot, range(SHOOTS))]
    messages = [announcement(document, version) for version, document in enumerate(documents, 1)]
    messages += [Message(Subjects().lease(f"seed-{number:03}"), b"{}") for number in range(SEEDS)]
    _run(publish, server.url, messages)
    port = free_port()
    environ = os.environ | {"GARDENBUS_NATS_URL": server.url, "GARDENBUS_DASHBOARD_PORT": str(port)}
    with (directory / "dashboard.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "gardenbus.dashboard"], env=environ, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_for(url, directory / "dashboard.log")
        yield Many(url, server.url)
    finally:
        process.terminate()
        process.wait(10)
        server.stop()


def _wait_for(url: str, log: Path) -> None:
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/api/landscape", timeout=5) as answer:
            summary = json.load(answer)["summary"]
            if summary["synced"] and summary["shoots"] == SHOOTS:
                return
        time.sleep(0.2)
    raise AssertionError(log.read_text())


def test_the_map_of_200_seeds_is_dense_and_whole(many: Many, open_page: Open, keep: Callable[[Page, str], None]):
    page = open_page(many.url)
    expect(page.locator(".dense .seed")).to_have_count(SEEDS)
    expect(page.locator("[data-seed=seed-007]")).to_contain_text("25/40")
    keep(page, "many-landscape")


def test_scrolling_through_5000_shoots_stays_smooth_while_they_change(
    many: Many, open_page: Open, keep: Callable[[Page, str], None]
):
    page = open_page(f"{many.url}/#/shoots")
    expect(page.locator(".tally")).to_have_text("5,000 shoots")
    changing = [announcement(shoot(number, 10 + number % 80), SEEDS + SHOOTS + number) for number in range(600)]
    publishing = _begin(_trickle, many.nats_url, changing)
    scrolled = page.evaluate(SCROLL)
    publishing.join()
    long_ones = [task for task in scrolled["tasks"] if task > LONG_TASK_MS]
    assert len(long_ones) <= LONG_TASKS, scrolled
    assert page.locator(".grid-row").count() <= MOST_ROWS
    assert page.evaluate("document.querySelectorAll('*').length") <= MOST_ELEMENTS
    expect(page.locator(".grid-row", has_text="shoot-04999")).to_be_visible()
    keep(page, "many-shoots")


async def _trickle(nats_url: str, messages: list[Message]) -> None:
    async with connect(nats_url, "trickle", "garden") as bus:
        for start in range(0, len(messages), 30):
            await bus.publish_many(messages[start : start + 30])
            await asyncio.sleep(0.1)


def test_what_changes_is_seen_without_a_reload(many: Many, open_page: Open):
    page = open_page(f"{many.url}/#/shoots?search=shoot-00700")
    expect(page.locator(".grid-row:visible")).to_contain_text("Create succeeded")
    _run(publish, many.nats_url, [announcement(shoot(700, 42), 900_000)])
    expect(page.locator(".grid-row:visible")).to_contain_text("42 %")
