"""What browsers are told, and who is told it."""

import asyncio
import json

import msgspec

from gardenbus.common.api.document import Document
from gardenbus.dashboard.web.change_feed import KEPT_BATCHES, MANY_SHOOTS, QUEUE_BATCHES, ChangeBatch
from gardenbus.dashboard.web.streaming import framed
from tests.support.builders import a_seed, a_shoot
from tests.support.dashboards import Dashboard, key_of, scope_of
from tests.support.eventually import HANG_SECONDS


def content(batch: ChangeBatch) -> Document:
    return msgspec.json.decode(batch.body)


async def test_a_burst_of_changes_is_one_batch():
    dashboard = Dashboard()
    listener = dashboard.changes.listen()
    for number in range(20):
        dashboard.put(a_shoot("apollo", status={"lastOperation": {"progress": number, "state": "Processing"}}))
    dashboard.changes.publish()
    assert listener.batches.qsize() == 1
    [shoot] = content(listener.batches.get_nowait())["shoot"]
    assert (shoot["name"], shoot["progress"]) == ("apollo", 19)


async def test_a_placed_shoot_changes_its_seed_too():
    dashboard = Dashboard()
    dashboard.put(a_seed("aws-eu1"))
    dashboard.changes.publish()
    listener = dashboard.changes.listen()
    dashboard.put(a_shoot(spec={"seedName": "aws-eu1"}))
    dashboard.changes.publish()
    sent = content(listener.batches.get_nowait())
    assert [(seed["name"], seed["used"]) for seed in sent["seed"]] == [("aws-eu1", 1)]
    assert sent["summary"]["shoots"] == 1


async def test_what_is_gone_is_told():
    dashboard = Dashboard()
    dashboard.put(a_shoot())
    listener = dashboard.changes.listen()
    dashboard.cache.remove(key_of(a_shoot()))
    dashboard.changes.publish()
    assert content(listener.batches.get_nowait())["gone"] == [["shoot", "garden-dev", "apollo"]]


async def test_of_very_many_shoots_only_that_is_told():
    dashboard = Dashboard()
    listener = dashboard.changes.listen()
    dashboard.put(*(a_shoot(f"s{number}") for number in range(MANY_SHOOTS + 1)))
    dashboard.changes.publish()
    sent = content(listener.batches.get_nowait())
    assert sent["manyShoots"]
    assert "shoot" not in sent


async def test_a_browser_goes_on_where_it_was():
    dashboard = Dashboard()
    for name in ("a", "b", "c"):
        dashboard.put(a_shoot(name))
        dashboard.changes.publish()
    listener = dashboard.changes.listen("epoch-1")
    assert listener.resumed
    assert [batch.number for batch in listener.backlog] == [2, 3]


async def test_a_browser_that_was_away_too_long_or_elsewhere_reloads():
    dashboard = Dashboard()
    for number in range(KEPT_BATCHES + 5):
        dashboard.put(a_shoot(f"s{number}"))
        dashboard.changes.publish()
    for last in ("epoch-1", "another-3", "nonsense", "", "epoch-99999"):
        assert not dashboard.changes.listen(last).resumed, last


async def test_a_browser_that_does_not_read_is_cut_off_and_others_are_not():
    dashboard = Dashboard()
    slow, quick = dashboard.changes.listen(), dashboard.changes.listen()
    for number in range(QUEUE_BATCHES + 2):
        dashboard.put(a_shoot(f"s{number}"))
        dashboard.changes.publish()
        quick.batches.get_nowait()
    assert slow.cut.is_set()
    assert not quick.cut.is_set()
    assert dashboard.changes.listeners == 1


async def test_a_browser_that_goes_leaves_nothing_behind():
    dashboard = Dashboard()
    gone = asyncio.Event()
    sent: list[bytes] = []

    async def receive() -> dict[str, str]:
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, object]) -> None:
        sent.append(bytes(message.get("body", b"")))  # pyright: ignore[reportArgumentType]

    serving = asyncio.create_task(dashboard.app(scope_of("/api/changes"), receive, send))  # pyright: ignore[reportArgumentType]
    async with asyncio.timeout(HANG_SECONDS):
        while dashboard.changes.listeners == 0 or len(sent) < 2:
            await asyncio.sleep(0.01)
        dashboard.put(a_shoot())
        dashboard.changes.publish()
        while len(sent) < 3:
            await asyncio.sleep(0.01)
        gone.set()
        await serving
    assert dashboard.changes.listeners == 0
    assert b"event: hello" in sent[1]
    assert sent[2].startswith(b"event: changes\nid: epoch-1\ndata: {")


def test_a_sign_of_life_has_no_number_to_go_on_from():
    assert framed(ChangeBatch("beat", 0, b"{}"), "epoch") == b"event: beat\ndata: {}\n\n"


async def test_heartbeats_are_told_once():
    dashboard = Dashboard()
    listener = dashboard.changes.listen()
    dashboard.cache.record_heartbeat("aws-eu1", dashboard.clock.now())
    dashboard.changes.publish_heartbeats()
    dashboard.changes.publish_heartbeats()
    sent = [json.loads(listener.batches.get_nowait().body)["heartbeats"] for _ in range(2)]
    assert list(sent[0]) == ["aws-eu1"]
    assert sent[1] == {}
