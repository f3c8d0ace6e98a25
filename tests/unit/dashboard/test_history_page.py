"""The history, as browsers get it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from gardenbus.common.api.history import HistoryChange, HistoryPoint, SeedUse, encode
from gardenbus.common.api.identity.readable import Readable
from gardenbus.common.errors import Forbidden
from gardenbus.common.ports.bus import Message
from gardenbus.common.ports.clock import timestamp
from gardenbus.dashboard.web.history_handlers import HistoryHandlers
from tests.support.dashboards import Dashboard
from tests.support.eventually import eventually


@pytest.fixture
async def dashboard() -> AsyncIterator[Dashboard]:
    dashboard = Dashboard()
    following = asyncio.create_task(dashboard.history.run())
    yield dashboard
    following.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await following


async def write(dashboard: Dashboard, minutes_ago: float, used: int, *changes: str) -> None:
    at = timestamp(dashboard.clock.now() - timedelta(minutes=minutes_ago))
    for text in changes:
        change = HistoryChange(at, "seed", "s1", text)
        await dashboard.bus.publish(Message(dashboard.subjects.history_change, encode(change)))
    point = HistoryPoint(at=at, seeds={"s1": SeedUse(used, 10, "ready", "aws", "eu")})
    await dashboard.bus.publish(Message(dashboard.subjects.history_point, encode(point)))


async def test_a_seed_has_its_use_over_time_with_what_happened(dashboard: Dashboard):
    await write(dashboard, 5, 2)
    await write(dashboard, 1, 3, "its gardenlet is silent")
    view = (await dashboard.get("/api/history?of=seed&name=s1&for=6h")).json()
    assert view["note"] == ""
    [chart] = view["charts"]
    assert {line["name"]: line["values"][-1] for line in chart["lines"]} == {"used": 3, "capacity": 10}
    assert [change["text"] for change in view["changes"]] == ["its gardenlet is silent"]
    assert len(view["at"]) == len(chart["lines"][0]["values"])


async def test_points_that_come_while_it_is_open_are_in_it(dashboard: Dashboard):
    await write(dashboard, 5, 2)
    await dashboard.get("/api/history")
    await write(dashboard, 0, 7)

    async def shown() -> None:
        view = (await dashboard.get("/api/history?of=region&name=aws/eu")).json()
        assert view["charts"][0]["lines"][0]["values"][-1] == 7

    await eventually(shown)


async def test_a_page_without_history_says_why(dashboard: Dashboard):
    assert "no points yet" in (await dashboard.get("/api/history")).json()["note"]
    await write(dashboard, 60, 1)

    async def old() -> None:
        assert "the last point is of" in (await dashboard.get("/api/history")).json()["note"]

    await eventually(old)


async def test_a_landscape_without_the_stream_says_so():
    dashboard = Dashboard()
    dashboard.bus.server.remove("HISTORY")
    following = asyncio.create_task(dashboard.history.run())
    view = (await dashboard.get("/api/history")).json()
    following.cancel()
    assert "keeps no history" in view["note"]
    assert view["charts"] == []


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("of=planet&name=x", "of: there are"),
        ("of=seed", "name:"),
        ("name=x", "name:"),
        ("for=9y", "for: there are"),
        ("colour=red", "colour:"),
    ],
)
async def test_a_query_that_makes_no_sense_gets_what_would(dashboard: Dashboard, query: str, word: str):
    response = await dashboard.get(f"/api/history?{query}")
    assert response.status == 400
    assert word in response.json()["error"]["message"]


async def test_who_sees_a_part_of_the_landscape_sees_no_history(dashboard: Dashboard):
    part = HistoryHandlers(history=dashboard.history, clock=dashboard.clock, readable=Readable())
    with pytest.raises(Forbidden, match="takes a role in the landscape"):
        await part.charts(None)  # type: ignore[arg-type]  # it is rejected before it is read
