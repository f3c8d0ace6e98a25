import json
from datetime import UTC, datetime
from typing import Any, cast

from gardenbus.cli.commands.news import change_line
from gardenbus.cli.mirror import Mirror
from gardenbus.cli.output import Format
from gardenbus.common.ports.bus import Bus, Delivered, FollowRestarted, ReplayDone
from gardenbus.common.resources.keys import Header, ObjectKey, Subjects
from tests.support.builders import a_seed, a_shoot

APOLLO = ObjectKey("shoot", "garden-dev", "apollo")
AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def news(key: ObjectKey, document: dict[str, Any] | None, verb: str = "modified") -> Delivered:
    return Delivered(
        subject=Subjects().changed(key),
        body=json.dumps(document).encode() if document else b"",
        headers={Header.VERB: verb, Header.VERSION: "7"},
        sequence=1,
        at=AT,
    )


def a_mirror() -> Mirror:
    return Mirror(cast("Bus", None), Subjects())


async def test_a_mirror_holds_the_last_news_of_each_object():
    mirror = a_mirror()
    mirror.take(news(APOLLO, a_shoot(spec={"region": "old"})))
    mirror.take(news(APOLLO, a_shoot(spec={"region": "new"})))
    mirror.take(news(ObjectKey("seed", "", "aws"), a_seed("aws")))
    assert not mirror.current.is_set()

    mirror.take(ReplayDone(3))

    assert mirror.current.is_set()
    assert [row.region for row in mirror.shoots.values()] == ["new"]
    assert [row.name for row in mirror.seeds.values()] == ["aws"]


async def test_a_mirror_forgets_what_is_deleted_and_all_when_the_stream_starts_anew():
    mirror = a_mirror()
    mirror.take(news(APOLLO, a_shoot()))
    mirror.take(news(APOLLO, None, verb="deleted"))
    assert mirror.shoots == {}

    mirror.take(news(APOLLO, a_shoot()))
    mirror.take(ReplayDone(2))
    mirror.take(FollowRestarted("another incarnation"))
    assert mirror.shoots == {}
    assert not mirror.current.is_set()


def test_a_change_is_one_line():
    operation = {"type": "Create", "state": "Processing", "progress": 30}
    change = news(APOLLO, a_shoot(spec={"seedName": "aws"}, status={"lastOperation": operation}))

    line = change_line(APOLLO, change, Format.TABLE)

    assert "modified  shoot garden-dev/apollo" in line
    assert line.endswith("7  seed aws  Create Processing 30%")
    assert change_line(APOLLO, change, Format.NAME) == "shoot/apollo"
    told = json.loads(change_line(APOLLO, change, Format.JSON))
    assert (told["verb"], told["object"]["spec"]["seedName"]) == ("modified", "aws")
    gone = json.loads(change_line(APOLLO, news(APOLLO, None, verb="deleted"), Format.JSON))
    assert gone["object"] is None
