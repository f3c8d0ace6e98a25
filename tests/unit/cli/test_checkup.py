"""What `doctor` makes of what it found."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from gardenbus.cli.checkup.findings import Finding, graded, some_of, worst
from gardenbus.cli.checkup.patient import ClockReading, Patient, info_of, version_of
from gardenbus.cli.checkup.queues import judge_listeners, judge_progress
from gardenbus.cli.checkup.servers import judge_clock, judge_functions, judge_nats, judge_redis, judge_storage
from gardenbus.cli.checkup.services import Heartbeat, judge_heartbeats, judge_processes, judge_versions
from gardenbus.cli.client import ApiClient
from gardenbus.cli.streams import ConsumerState, StoredMessage
from gardenbus.cli.supervisor.picture import ServiceRow
from gardenbus.common.adapters.jetstream_inquiry import Inquiry, ServerTold
from gardenbus.common.ports.bus import Bus
from gardenbus.common.resources.keys import Subjects

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PATIENT = Patient(ApiClient(cast("Bus", None), Subjects()), cast("Inquiry", None), None, None)
WELL = {"redis_version": "8.2.3", "used_memory": "1048576", "maxmemory": "104857600", "role": "master"}
KEPT = {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "always"}


def a_consumer(name: str = "migration", stream: str = "QUEUES", **changes: int) -> ConsumerState:
    consumer = ConsumerState(stream, name, {"durable_name": name}, 0, 0, 0, 1, 0, None, None)
    return consumer._replace(**changes)


def states(findings: list[Finding]) -> dict[str, str]:
    return {finding.check: finding.state for finding in findings}


def test_the_worst_finding_counts() -> None:
    assert worst([Finding("a", "ok", ""), Finding("b", "warning", ""), Finding("c", "skipped", "")]) == "warning"
    assert worst([]) == "ok"
    assert [graded(value, warning=1, failed=2) for value in (0, 1, 2)] == ["ok", "warning", "failed"]
    assert some_of("abcdefg") == "a, b, c, d, e and 2 more"


def test_versions_are_compared_as_numbers() -> None:
    assert version_of("2.15.1-beta") == (2, 15, 1)
    assert version_of("") < (2, 12)


def test_an_old_nats_without_jetstream_and_with_small_messages_is_found() -> None:
    found = states(judge_nats(ServerTold("a", "2.9.1", has_jetstream=False, max_payload=1_048_576)))
    assert found == {"nats version": "failed", "nats jetstream": "failed", "nats payload": "warning"}
    assert states(judge_nats(ServerTold("a", "2.15.1", has_jetstream=True, max_payload=2**23))) == {
        "nats version": "ok"
    }


@pytest.mark.parametrize(("used", "state"), [(10, "ok"), (85, "warning"), (99, "failed")])
def test_storage_that_runs_out_is_found(used: int, state: str) -> None:
    assert states(judge_storage({"storage": used, "limits": {"max_storage": 100}})) == {"nats storage": state}


def test_redis_is_judged_by_what_it_keeps() -> None:
    assert set(states(judge_redis(WELL, KEPT)).values()) == {"ok"}
    replica = states(judge_redis({**WELL, "role": "slave", "aof_last_write_status": "err"}, KEPT))
    assert (replica["redis role"], replica["redis persistence"]) == ("failed", "failed")
    assert states(judge_redis({**WELL, "used_memory": "99000000"}, KEPT))["redis memory"] == "warning"
    assert states(judge_redis({**WELL, "redis_version": "6.2"}, {}))["redis version"] == "failed"
    assert states(judge_redis(WELL, {}))["redis persistence"] == "skipped"
    assert info_of(b"# Server\r\nredis_version:8.2.3\r\n") == {"redis_version": "8.2.3"}


def test_functions_of_another_version_are_found_and_several_may_stand_side_by_side() -> None:
    assert judge_functions(["own", "old"], "own")[0].state == "ok"
    assert judge_functions(["old"], "own")[0].state == "warning"
    assert judge_functions([], "own")[0].state == "failed"


def test_a_clock_is_compared_with_both_looks_at_our_own() -> None:
    def ahead(seconds: float) -> Finding:
        return judge_clock("nats", ClockReading(NOW + timedelta(seconds=seconds), NOW, NOW + timedelta(seconds=1)))

    assert ahead(0.5).found == "as this machine's"
    assert told(ahead(3)) == ("warning", "2.000 s ahead of this machine")
    assert told(ahead(-60)) == ("failed", "60.000 s behind this machine")


def told(finding: Finding) -> tuple[str, str]:
    return finding.state, finding.found


def test_nobody_listening_at_two_looks_is_found_and_one_who_is_busy_is_not() -> None:
    requests = a_consumer("apiserver", "REQUESTS")
    silent = a_consumer(listening=0)

    def judged(first: ConsumerState, second: ConsumerState) -> dict[str, str]:
        return states(judge_listeners(PATIENT, [requests, first], [requests, second]))

    assert judged(silent, silent) == {"queue migration": "warning"}
    assert judged(silent, silent._replace(pending=3)) == {"queue migration": "failed"}
    assert judged(a_consumer(), silent) == {"listeners": "ok"}
    assert judged(silent, silent._replace(in_flight=1)) == {"listeners": "ok"}
    assert states(judge_listeners(PATIENT, [], [])) == {"queue requests": "failed"}


def test_work_is_stuck_when_its_oldest_is_old() -> None:
    def judged(age_seconds: float, redelivered: int = 0) -> list[str]:
        message = StoredMessage("garden.queue.migration.a.b", 1, NOW - timedelta(seconds=age_seconds), {}, b"")
        found = judge_progress(PATIENT, [a_consumer(redelivered=redelivered)], {"QUEUES migration": message}, NOW)
        return [finding.state for finding in found]

    assert judged(5) == ["ok"]
    assert judged(90) == ["warning"]
    assert judged(900, redelivered=4) == ["failed", "failed"]


def test_heartbeats_are_late_after_half_their_life() -> None:
    beats = {"a": Heartbeat("a", 3, 0.01), "b": Heartbeat("b", 25, -4)}
    found = {finding.check: finding for finding in judge_heartbeats(PATIENT, ["a", "b"], beats, 40)}
    assert told(found["heartbeats"]) == ("warning", "late: b (25 s)")
    assert told(found["clocks of gardenlets"]) == ("warning", "b -4.0 s")
    assert states(judge_heartbeats(PATIENT, [], {}, 40)) == {"heartbeats": "ok"}


def test_processes_that_are_down_or_died_are_found() -> None:
    rows = [
        ServiceRow("relay", "down", None),
        ServiceRow("scheduler", "ready", 7, 3),
        ServiceRow("nats", "external", None),
    ]
    assert states(judge_processes(PATIENT, rows)) == {"process relay": "failed", "process scheduler": "warning"}
    assert states(judge_processes(PATIENT, rows[2:])) == {"processes": "ok"}


def test_replicas_are_counted_with_their_version() -> None:
    assert judge_versions([("scheduler", "1.0.0"), ("scheduler", "1.0.0")])[0].found == "1.0.0: 2 scheduler"
    assert judge_versions([])[0].state == "failed"
