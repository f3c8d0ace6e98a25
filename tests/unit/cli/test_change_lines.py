import json
from datetime import UTC, datetime
from typing import Any, cast

from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.client.cache import LandscapeCache
from gardenbus.cli.commands.events import change_line
from gardenbus.cli.output.console import Format
from gardenbus.common.api.keys import Header, ObjectKey, Subjects
from gardenbus.common.ports.bus import Bus, FollowRestarted, ReplayDone, StreamMessage
from tests.support.builders import a_seed, a_shoot

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def a_change(key: ObjectKey, document: dict[str, Any] | None, verb: str = "modified") -> StreamMessage:
    return StreamMessage(
        subject=Subjects().changed(key),
        body=json.dumps(document).encode() if document else b"",
        headers={Header.VERB: verb, Header.VERSION: "7"},
        sequence=1,
        at=AT,
    )


def a_cache() -> LandscapeCache:
    return LandscapeCache(ApiClient(cast("Bus", None), Subjects()))


async def test_a_mirror_holds_the_last_news_of_each_object():
    cache = a_cache()
    cache.on_event(a_change(APOLLO, a_shoot(spec={"region": "old"})))
    cache.on_event(a_change(APOLLO, a_shoot(spec={"region": "new"})))
    cache.on_event(a_change(ObjectKey("seed", "", "aws"), a_seed("aws")))
    assert not cache.current.is_set()

    cache.on_event(ReplayDone(3))

    assert cache.current.is_set()
    assert [row.region for row in cache.shoots.values()] == ["new"]
    assert [row.name for row in cache.seeds.values()] == ["aws"]


async def test_a_mirror_forgets_what_is_deleted_and_all_when_the_stream_starts_anew():
    cache = a_cache()
    cache.on_event(a_change(APOLLO, a_shoot()))
    cache.on_event(a_change(APOLLO, None, verb="deleted"))
    assert cache.shoots == {}

    cache.on_event(a_change(APOLLO, a_shoot()))
    cache.on_event(ReplayDone(2))
    cache.on_event(FollowRestarted("another incarnation"))
    assert cache.shoots == {}
    assert not cache.current.is_set()


def test_a_change_is_one_line():
    operation = {"type": "Create", "state": "Processing", "progress": 30}
    change = a_change(APOLLO, a_shoot(spec={"seedName": "aws"}, status={"lastOperation": operation}))

    line = change_line(APOLLO, change, Format.TABLE)

    assert "modified  shoot garden-dev/apollo" in line
    assert line.endswith("7  seed aws  Create Processing 30%")
    assert change_line(APOLLO, change, Format.NAME) == "shoot.core.gardener.cloud/apollo"
    parsed = json.loads(change_line(APOLLO, change, Format.JSON))
    assert (parsed["verb"], parsed["object"]["spec"]["seedName"]) == ("modified", "aws")
    gone = json.loads(change_line(APOLLO, a_change(APOLLO, None, verb="deleted"), Format.JSON))
    assert gone["object"] is None
