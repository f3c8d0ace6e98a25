"""Findings for copies of streams, and for replicas of Redis."""

from typing import Any

from gardenbus.common.adapters.redis.addresses import ServerAddress
from gardenbus.diagnostics.replication import assess_copies, assess_replicas, sentinel_facts
from gardenbus.diagnostics.stream_states import StreamState


def a_stream(name: str, copies: int = 3, **cluster: Any) -> StreamState:
    return StreamState(name, {"num_replicas": copies}, 0, 0, 0, 0, None, "", {"name": "c", **cluster})


CURRENT = [{"name": "b", "current": True}, {"name": "c", "current": True}]


def test_a_single_server_has_no_copies_to_assess() -> None:
    assert assess_copies([StreamState("OBJECTS", {"num_replicas": 1}, 0, 0, 0, 0, None, "")]) == []


def test_leaders_are_shown_where_all_copies_are_current() -> None:
    streams = [a_stream(name, leader=leader, replicas=CURRENT) for name, leader in (("A", "x"), ("B", "y"), ("C", "x"))]
    (finding,) = assess_copies(streams)
    assert (finding.state, finding.found) == ("ok", "all are current; x leads 2 streams, y leads 1 streams")


def test_a_stream_without_a_leader_has_failed() -> None:
    findings = assess_copies([a_stream("A", replicas=CURRENT)])
    assert [(finding.state, finding.found) for finding in findings] == [
        ("failed", "A: no leader, so that nothing is stored there")
    ]


def test_copies_that_are_behind_away_or_too_few_are_named() -> None:
    replicas = [{"name": "b", "current": False, "lag": 7}, {"name": "c", "current": False, "offline": True}]
    findings = assess_copies([a_stream("A", leader="x", replicas=replicas), a_stream("B", 1, leader="x")])
    assert [finding.state for finding in findings] == ["warning", "warning"]
    assert findings[0].found == "A: b is 7 behind, A: c is away"
    assert findings[1].found.startswith("B: fewer than 3 copies")


def info(**more: str) -> dict[str, str]:
    return {"role": "master", "connected_slaves": "1", "master_repl_offset": "1500", **more}


def test_a_redis_that_wants_no_replica_has_none_to_assess() -> None:
    assert assess_replicas(info()) == []
    assert assess_replicas({"role": "slave"}) == []


def test_a_redis_that_wants_replicas_and_has_none_has_failed() -> None:
    (finding,) = assess_replicas(info(min_slaves_good_slaves="0"))
    assert finding.state == "failed"


def test_a_redis_with_fewer_replicas_than_it_demands_has_failed_and_says_what_to_do() -> None:
    online = info(slave0="ip=h,port=7,state=online,offset=1500,lag=0", min_slaves_good_slaves="1")
    (finding,) = assess_replicas(online, demanded=2)
    assert (finding.state, finding.found.partition(":")[0]) == (
        "failed",
        "1 of 2 that min-replicas-to-write demands are connected",
    )
    assert "CONFIG SET min-replicas-to-write 1" in finding.suggestion
    assert [each.state for each in assess_replicas(online, demanded=1)] == ["ok"]


def test_replicas_are_shown_with_what_they_lack() -> None:
    (finding,) = assess_replicas(info(slave0="ip=h,port=7,state=online,offset=500,lag=0"))
    assert (finding.state, finding.found) == ("ok", "h:7 online, 1,000 bytes behind")


def test_a_replica_that_joins_or_stays_behind_is_a_warning() -> None:
    for slave in ("ip=h,port=7,state=wait_bgsave,offset=0,lag=0", "ip=h,port=7,state=online,offset=1500,lag=9"):
        (finding,) = assess_replicas(info(slave0=slave))
        assert finding.state == "warning"


def test_sentinels_that_do_not_respond_are_named_and_come_first() -> None:
    slave = "ip=h,port=7,state=online,offset=1500,lag=0"
    sentinels = {"sentinels": "3", "sentinels_away": "h:1"}
    first, second = assess_replicas(info(slave0=slave, **sentinels))
    assert (first.check, first.state, second.check) == ("redis sentinels", "warning", "redis replicas")
    first, _ = assess_replicas(info(slave0=slave, **sentinels | {"sentinels_away": "h:1, h:2"}))
    assert (first.state, first.found.startswith("2 of 3 do not respond (h:1, h:2)")) == ("failed", True)
    (only,) = assess_replicas(info(slave0=slave, sentinels="3", sentinels_away=""))
    assert only.check == "redis replicas"


def test_a_replica_that_sentinel_names_and_the_primary_does_not_is_a_warning() -> None:
    slave = "ip=h,port=7,state=online,offset=1500,lag=0"
    (finding,) = assess_replicas(
        info(slave0=slave, **sentinel_facts({}, [ServerAddress("h", 7), ServerAddress("h", 8)]))
    )
    assert finding.state == "warning"
    assert finding.found.startswith("h:8: not connected")
    of_other_names = sentinel_facts({}, [ServerAddress("one", 7), ServerAddress("two", 7)])
    (finding,) = assess_replicas(info(slave0=slave, **of_other_names))
    assert finding.found.startswith("1 of 2: not connected")
    (finding,) = assess_replicas(info(slave0=slave, **sentinel_facts({}, [ServerAddress("one", 7)])))
    assert finding.state == "ok"
