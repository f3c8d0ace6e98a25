"""What `doctor` makes of what it found."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast
from unittest.mock import AsyncMock

import pytest

from gardenbus.apiserver.domain.responses import error_response
from gardenbus.cli.client.api import ApiClient
from gardenbus.cli.diagnostics.local import assess_processes, disks
from gardenbus.cli.local.directory import LandscapeDirectory, LandscapeFile, ServiceStatus, socket_url
from gardenbus.common.adapters.nats.streams import MAX_BYTES
from gardenbus.common.api.identity.accounts import AUTH_CALLOUT, COMES_IN_BY
from gardenbus.common.api.keys import Subjects
from gardenbus.common.errors import GardenbusError, NotFound, Unavailable
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.stream_history import StreamLoss
from gardenbus.diagnostics.admin import AdminClient, ServerInfo
from gardenbus.diagnostics.findings import DiagnosticFinding, graded, some_of, worst
from gardenbus.diagnostics.queues import assess_listeners, assess_progress, assess_size
from gardenbus.diagnostics.servers import (
    assess_clock,
    assess_functions,
    assess_nats,
    assess_redis,
    assess_storage,
    assess_writes,
)
from gardenbus.diagnostics.services import (
    RecoveryHere,
    SeedHeartbeat,
    UnknownHere,
    assess_certificates,
    assess_heartbeats,
    assess_identity,
    assess_losses,
    assess_profiles,
    assess_recovery,
    assess_reverted,
    assess_unknown,
    assess_versions,
    recovery,
    service_name,
)
from gardenbus.diagnostics.stream_states import ConsumerState, StoredMessage, StreamState
from gardenbus.diagnostics.target import ClockReading, DiagnosticsTarget, info_of, version_of

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TARGET = DiagnosticsTarget(ApiClient(cast("Bus", None), Subjects()), cast("AdminClient", None), None)
WELL = {"redis_version": "8.2.3", "used_memory": "1048576", "maxmemory": "104857600", "role": "master"}
KEPT = {"maxmemory-policy": "noeviction", "appendonly": "yes", "appendfsync": "always"}


def a_consumer(name: str = "migration", stream: str = "QUEUES", **changes: int) -> ConsumerState:
    consumer = ConsumerState(stream, name, {"durable_name": name}, 0, 0, 0, 1, 0, None, None)
    return consumer._replace(**changes)


def states(findings: list[DiagnosticFinding]) -> dict[str, str]:
    return {finding.check: finding.state for finding in findings}


def test_the_worst_finding_counts() -> None:
    assert (
        worst(
            [
                DiagnosticFinding("a", "ok", ""),
                DiagnosticFinding("b", "warning", ""),
                DiagnosticFinding("c", "skipped", ""),
            ]
        )
        == "warning"
    )
    assert worst([]) == "ok"
    assert [graded(value, warning=1, failed=2) for value in (0, 1, 2)] == ["ok", "warning", "failed"]
    assert some_of("abcdefg") == "a, b, c, d, e and 2 more"


def test_versions_are_compared_as_numbers() -> None:
    assert version_of("2.15.1-beta") == (2, 15, 1)
    assert version_of("") < (2, 12)


@pytest.mark.parametrize(
    ("version", "state"),
    [
        *(("2.12.11", "failed"), ("2.12.12", "ok"), ("2.13.9", "failed")),
        *(("2.14.2", "failed"), ("2.14.3", "ok"), ("2.15", "ok"), ("3.0", "ok")),
    ],
)
def test_a_nats_with_known_vulnerabilities_is_found(version: str, state: str) -> None:
    found = states(assess_nats(ServerInfo("a", version, has_jetstream=True, max_payload=2**23)))
    assert found == {"nats version": state}


def test_an_old_nats_without_jetstream_and_with_small_messages_is_found() -> None:
    found = states(assess_nats(ServerInfo("a", "2.9.1", has_jetstream=False, max_payload=1_048_576)))
    assert found == {"nats version": "failed", "nats jetstream": "failed", "nats payload": "warning"}
    assert states(assess_nats(ServerInfo("a", "2.15.1", has_jetstream=True, max_payload=2**23))) == {
        "nats version": "ok"
    }


@pytest.mark.parametrize(("used", "state"), [(10, "ok"), (85, "warning"), (99, "failed")])
def test_storage_that_runs_out_is_found(used: int, state: str) -> None:
    assert states(assess_storage({"storage": used, "limits": {"max_storage": 100}})) == {"nats storage": state}


@pytest.mark.parametrize(("used", "state"), [(79, None), (80, "warning"), (95, "failed")])
@pytest.mark.parametrize("name", ["REQUESTS", "REPORTS"])
def test_a_stream_is_named_at_80_percent_of_what_it_may_hold(name: str, used: int, state: str | None) -> None:
    config = {"max_bytes": MAX_BYTES[name], "discard": "new"}
    stream = StreamState(name, config, 1, MAX_BYTES[name] * used // 100 + 1, 1, 0, None, "")
    assert states(assess_size(stream)) == ({f"stream {name}": state} if state else {})
    assert not assess_size(stream._replace(config={**config, "discard": "old"})), "its oldest messages go"


def test_redis_is_judged_by_what_it_keeps() -> None:
    assert set(states(assess_redis(WELL, KEPT)).values()) == {"ok"}
    replica = states(assess_redis({**WELL, "role": "slave", "aof_last_write_status": "err"}, KEPT))
    assert (replica["redis role"], replica["redis persistence"]) == ("failed", "failed")
    assert states(assess_redis({**WELL, "used_memory": "99000000"}, KEPT))["redis memory"] == "warning"
    assert states(assess_redis({**WELL, "redis_version": "6.2"}, {}))["redis version"] == "failed"
    assert states(assess_redis(WELL, {}))["redis persistence"] == "skipped"
    assert info_of(b"# Server\r\nredis_version:8.2.3\r\n") == {"redis_version": "8.2.3"}


def test_functions_of_another_version_are_found_and_several_may_stand_side_by_side() -> None:
    assert assess_functions(["own", "old"], "own")[0].state == "ok"
    assert assess_functions(["old"], "own")[0].state == "warning"
    assert assess_functions([], "own")[0].state == "failed"


def test_a_clock_is_compared_with_both_looks_at_our_own() -> None:
    def ahead(seconds: float) -> DiagnosticFinding:
        return assess_clock("nats", ClockReading(NOW + timedelta(seconds=seconds), NOW, NOW + timedelta(seconds=1)))

    assert ahead(0.5).found == "as this machine's"
    assert brief(ahead(3)) == ("warning", "2.000 s ahead of this machine")
    assert brief(ahead(-60)) == ("failed", "60.000 s behind this machine")


def brief(finding: DiagnosticFinding) -> tuple[str, str]:
    return finding.state, finding.found


def test_nobody_listening_at_two_looks_is_found_and_one_who_is_busy_is_not() -> None:
    requests = a_consumer("apiserver", "REQUESTS")
    silent = a_consumer(listening=0)

    def assessed(first: ConsumerState, second: ConsumerState) -> dict[str, str]:
        return states(assess_listeners(TARGET, [requests, first], [requests, second]))

    assert assessed(silent, silent) == {"queue migration": "warning"}
    assert assessed(silent, silent._replace(pending=3)) == {"queue migration": "failed"}
    assert assessed(a_consumer(), silent) == {"listeners": "ok"}
    assert assessed(silent, silent._replace(in_flight=1)) == {"listeners": "ok"}
    assert states(assess_listeners(TARGET, [], [])) == {"queue requests": "failed"}


def test_work_is_stuck_when_its_oldest_is_old() -> None:
    def assessed(age_seconds: float, redelivered: int = 0) -> list[str]:
        message = StoredMessage("garden.queue.migration.a.b", 1, NOW - timedelta(seconds=age_seconds), {}, b"")
        found = assess_progress(TARGET, [a_consumer(redelivered=redelivered)], {"QUEUES migration": message}, NOW)
        return [finding.state for finding in found]

    assert assessed(5) == ["ok"]
    assert assessed(90) == ["warning"]
    assert assessed(900, redelivered=4) == ["failed", "failed"]


def test_heartbeats_are_late_after_half_their_life() -> None:
    beats = {"a": SeedHeartbeat("a", 3, 0.01), "b": SeedHeartbeat("b", 25, -4)}
    found = {finding.check: finding for finding in assess_heartbeats(TARGET, ["a", "b"], beats, 40)}
    assert brief(found["heartbeats"]) == ("warning", "late: b (25 s)")
    assert brief(found["clocks of gardenlets"]) == ("warning", "b -4.0 s")
    reasons = {"b": "Gardenlet stopped posting status updates. Its credentials were revoked at T."}
    silent = assess_heartbeats(TARGET, ["b"], {}, 40, reasons)[0]
    assert silent.found == f"no heartbeat from b ({reasons['b'][:-1]})"
    assert states(assess_heartbeats(TARGET, [], {}, 40)) == {"heartbeats": "ok"}


def test_the_last_heartbeats_of_a_seed_that_was_removed_are_no_finding() -> None:
    beats = {"a": SeedHeartbeat("a", 1.0, 0.0), "removed": SeedHeartbeat("removed", 39.0, 60.0)}
    findings = assess_heartbeats(TARGET, ["a"], beats, 40)
    assert states(findings) == {"heartbeats": "ok", "clocks of gardenlets": "ok"}
    assert findings[0].found == "1 seeds, the oldest 1 s ago"


def test_processes_that_are_down_or_died_are_found() -> None:
    rows = [
        ServiceStatus("relay", "down", None),
        ServiceStatus("scheduler", "ready", 7, 3),
        ServiceStatus("nats", "external", None),
    ]
    assert states(assess_processes(TARGET, rows)) == {"process relay": "failed", "process scheduler": "warning"}
    assert states(assess_processes(TARGET, rows[2:])) == {"processes": "ok"}


def test_a_profile_without_a_score_of_usage_is_warned_of_once() -> None:
    metadata = {"schedulerName": "cheap", "profile-warning": "no score depends on usage"}
    info = {"endpoints": [{"metadata": metadata}, {"metadata": metadata}]}
    (finding,) = assess_profiles([info, info, {"endpoints": [{"metadata": {"schedulerName": "mine"}}]}])
    assert (finding.state, finding.found) == ("warning", "cheap: no score depends on usage")


def test_replicas_are_counted_with_their_version() -> None:
    assert assess_versions([("scheduler", "1.0.0"), ("scheduler", "1.0.0")])[0].found == "1.0.0: 2 scheduler"
    assert assess_versions([])[0].state == "failed"


def test_a_scheduler_is_called_by_the_name_that_its_shoots_ask_for() -> None:
    def info(scheduler_name: str) -> dict[str, object]:
        return {"name": "scheduler", "endpoints": [{"metadata": {"schedulerName": scheduler_name}}]}

    assert [service_name(info(name)) for name in ("default-scheduler", "mine")] == ["scheduler", "scheduler@mine"]
    assert service_name({"name": "relay", "endpoints": None}) == "relay"


def test_what_runs_and_is_neither_stored_nor_remembered_is_named_with_both_commands() -> None:
    assert states(assess_unknown(TARGET, [])) == {"unknown": "ok"}
    (finding,) = assess_unknown(
        TARGET,
        [
            UnknownHere("shoot", "garden-dev", "apollo", "aws-eu1", adoptable=True),
            UnknownHere("shoot", "garden-dev", "b", "aws-eu1"),
        ],
    )
    assert finding.state == "warning"
    assert "shoot garden-dev/apollo on aws-eu1, shoot garden-dev/b on aws-eu1" in finding.found
    for verb in ("adopt", "forget"):
        assert f"gardenbus {verb} shoot garden-dev/apollo --seed aws-eu1" in finding.suggestion


def test_a_recovery_names_silent_seeds_and_the_command_that_goes_on_without_one() -> None:
    assert states(assess_recovery(TARGET, None)) == {"recovery": "ok"}
    (finding,) = assess_recovery(TARGET, RecoveryHere("the store went back", ["aws-eu1", "aws-eu2"]))
    assert (finding.check, finding.state) == ("recovery", "warning")
    assert "the store went back; silent: aws-eu1, aws-eu2" in finding.found
    assert "gardenbus recovery --without aws-eu1" in finding.suggestion
    (finding,) = assess_recovery(TARGET, RecoveryHere("the store went back", []))
    assert finding.suggestion == "wait: it ends by itself"


@pytest.mark.parametrize(
    ("error", "state", "found"),
    [
        (Unavailable("the store is fenced"), "failed", "the store is fenced"),
        (NotFound("no such request"), "skipped", "no apiserver reports whether the store recovers"),
    ],
)
async def test_a_store_that_no_relay_has_opened_yet_is_no_recovery_and_not_well(
    error: GardenbusError, state: str, found: str
) -> None:
    bus = AsyncMock(request=AsyncMock(return_value=error_response(error).encoded()))
    (finding,) = await recovery(DiagnosticsTarget(ApiClient(bus, Subjects()), cast("AdminClient", None), None))
    assert finding[:3] == ("recovery", state, found)


def test_ended_certificates_are_named_with_the_token_that_is_needed() -> None:
    assert assess_certificates(TARGET, []) == []
    (finding,) = assess_certificates(TARGET, ["aws-eu1", "aws-eu2"])
    assert (finding.state, finding.found) == (
        "failed",
        "the certificates of these gardenlets have ended: aws-eu1, aws-eu2",
    )
    assert "gardenbus token create --seed aws-eu1" in finding.suggestion


def test_of_many_unknown_objects_the_first_twenty_are_named_and_the_others_counted() -> None:
    (finding,) = assess_unknown(TARGET, [UnknownHere("shoot", "garden-dev", f"s{n}", "aws-eu1") for n in range(25)])
    assert finding.found.count("shoot garden-dev/s") == 20
    assert finding.found.endswith("shoot garden-dev/s19 on aws-eu1 and 5 more")


def test_what_was_lost_is_named_for_a_week() -> None:
    now = datetime(2026, 1, 8, tzinfo=UTC)
    assert states(assess_losses([], now)) == {"lost": "ok"}
    loss = StreamLoss("REQUESTS", 5, 9, 3, "", "", "2026-01-07T00:00:00Z", of_store=False)
    (finding,) = assess_losses([loss], now)
    assert finding.state == "warning"
    assert "REQUESTS has lost messages 5 to 9" in finding.found
    assert "send them again" in finding.suggestion
    assert states(assess_losses([loss], now + timedelta(days=7))) == {"lost": "ok"}


def test_shoots_that_a_restore_has_reverted_are_named_once_each() -> None:
    assert assess_reverted([]) == []
    events = [{"involvedObject": {"namespace": "garden-dev", "name": name}} for name in ("b", "apollo", "b")]
    (finding,) = assess_reverted(events)
    assert (finding.check, finding.state) == ("lost", "warning")
    assert finding.found.endswith(": shoot garden-dev/apollo, garden-dev/b")
    assert "apply them again" in finding.suggestion


def test_heartbeats_of_ten_thousand_seeds_are_looked_through_once():
    class Counted(list[str]):
        iterated = 0

        def __iter__(self) -> Iterator[str]:
            self.iterated += 1
            return super().__iter__()

    seeds = Counted(f"seed-{number}" for number in range(10_000))
    beats = {seed: SeedHeartbeat(seed, 1.0, 0.0) for seed in list(seeds)} | {"gone": SeedHeartbeat("gone", 99.0, 0.0)}
    seeds.iterated = 0
    assert states(assess_heartbeats(TARGET, seeds, beats, 40))["heartbeats"] == "ok"
    assert seeds.iterated < 5


def test_what_services_find_when_they_publish_is_told() -> None:
    trouble = "NATS cannot write OBJECTS: its disk is full, or was: make room, then restart it"
    assert assess_writes([]).state == assess_writes([{}, {"write-trouble": ""}]).state == "ok"
    finding = assess_writes([{}, {"write-trouble": trouble}, {"write-trouble": trouble}])
    assert (finding.state, finding.found) == ("failed", trouble)
    assert "restart nats-server" in finding.suggestion


def test_a_redis_that_holds_writes_back_is_warned_of() -> None:
    found = assess_redis(WELL, {**KEPT, "appendfsync": "everysec"})
    assert states(found)["redis persistence"] == "warning"
    assert states(assess_redis(WELL, {**KEPT, "appendfsync": "no"}))["redis persistence"] == "ok"


def test_a_redis_that_cannot_write_is_told_with_the_place_of_its_file() -> None:
    found = assess_redis({**WELL, "aof_last_write_status": "err"}, {**KEPT, "dir": "/var/redis"})
    [finding] = [each for each in found if each.check == "redis persistence"]
    assert finding.state == "failed"
    assert "/var/redis" in finding.suggestion


def test_disks_are_measured_where_the_servers_of_the_landscape_write(tmp_path: Path) -> None:
    place = LandscapeDirectory(tmp_path)
    place.prepare()
    (place.nats / "jetstream").mkdir()
    ports = {"nats": 4222, "redis": 6379}
    landscape = LandscapeFile(nats_url="nats://127.0.0.1:4222", redis_url="redis://127.0.0.1:6379/0", ports=ports)
    nats, redis = disks(landscape, tmp_path)
    assert (nats.check, redis.check) == ("disk of nats", "disk of redis")
    assert nats.found.endswith(f"where {place.nats / 'jetstream'} lies")
    assert redis.found.endswith(f"where {place.redis} lies")
    elsewhere = LandscapeFile(nats_url="nats://127.0.0.1:4222", redis_url="redis://127.0.0.1:6380/0", ports=ports)
    assert [each.check for each in disks(elsewhere, tmp_path)] == ["disk of nats"]
    on_socket = LandscapeFile(nats_url="nats://n:1", redis_url=socket_url(place.redis_socket))
    assert [each.check for each in disks(on_socket, tmp_path)] == ["disk of redis"]
    assert disks(None, tmp_path) == []


def a_service(name: str, prefix: str = "garden", **about: str) -> dict[str, object]:
    return {"name": name, "metadata": {"prefix": prefix}, "endpoints": [{"name": "api", "metadata": about}]}


def test_an_identity_service_that_is_away_has_failed_where_people_need_it() -> None:
    needing = a_service("apiserver", **{COMES_IN_BY: AUTH_CALLOUT})

    (away,) = assess_identity(TARGET, [needing, a_service("relay"), a_service("identity", prefix="other")])
    (there,) = assess_identity(TARGET, [needing, a_service("identity"), a_service("identity")])

    assert away.state == "failed"
    assert "no new connections from outside are accepted" in away.found
    assert away.suggestion.startswith("start it")
    assert (there.state, there.found) == ("ok", "2 replicas run")
    assert assess_identity(TARGET, [a_service("apiserver"), a_service("relay")]) == []
    assert assess_identity(TARGET, [a_service("apiserver", prefix="other", **{COMES_IN_BY: AUTH_CALLOUT})]) == []
