"""Lines of logs, as they are read, chosen, merged, followed and written."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gardenbus.cli.logs.files import LogTail, log_sources, merged_lines
from gardenbus.cli.logs.lines import LineFilter, LogLine, parse_duration, pretty, raw_json, read_line, shoot_pattern
from gardenbus.cli.main import app
from gardenbus.common.errors import BadRequest

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def written(event: str, *, seconds: float = 0, level: str = "info", **members: object) -> str:
    at = (AT + timedelta(seconds=seconds)).isoformat()
    return json.dumps({"event": event, "level": level, "timestamp": at, "service": "scheduler", **members})


def a_line(event: str = "shoot.scheduled", **members: Any) -> LogLine:
    return read_line(written(event, **members), "scheduler")


@pytest.fixture
def landscape(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    logs.mkdir()
    (logs / "scheduler-1.log").write_text(
        written("shoot.scheduled", shoot="shoot garden-dev/apollo", trace_id="abc123")
        + "\n"
        + written("reconcile.failed", seconds=3, level="error", exception="Traceback:\n  ValueError")
        + "\nleft by a library\n"
    )
    (logs / "gardenlet.log").write_text(
        written("report.sent", seconds=1, trace_id="abc123") + "\n" + written("lease.renewed", seconds=2) + "\n"
    )
    (logs / "nats.log").write_text("[7] 2026/01/02 03:04:06.500000 [WRN] slow consumer\n")
    (logs / "up.log").write_text("   0.0 s  seeds 0/0 ready\n")
    return tmp_path


def shown(landscape: Path, *arguments: str) -> list[str]:
    result = CliRunner(env={"TZ": "UTC"}).invoke(app, ["logs", *arguments, "--dir", str(landscape)])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_lines_of_all_services_are_merged_by_time(landscape: Path) -> None:
    assert shown(landscape) == [
        '2026-01-02T03:04:05.000Z scheduler-1 info    shoot.scheduled shoot="shoot garden-dev/apollo" trace=abc123',
        "2026-01-02T03:04:06.000Z gardenlet   info    report.sent trace=abc123",
        "2026-01-02T03:04:06.500Z nats        warning slow consumer",
        "2026-01-02T03:04:07.000Z gardenlet   info    lease.renewed",
        "2026-01-02T03:04:08.000Z scheduler-1 error   reconcile.failed",
        "    Traceback:",
        "      ValueError",
        "2026-01-02T03:04:08.000Z scheduler-1 info    left by a library",
    ]


def test_a_service_stands_for_all_its_replicas_and_what_has_no_log_is_refused(landscape: Path) -> None:
    assert [source.name for source in log_sources(landscape / "logs", ["scheduler"])] == ["scheduler-1"]
    assert len(shown(landscape, "scheduler-1", "nats", "--level", "warning")) == 4
    assert shown(landscape, "up") == [f"{'':24} up        info       0.0 s  seeds 0/0 ready"]
    with pytest.raises(BadRequest, match="there is gardenlet, nats, scheduler-1, up"):
        log_sources(landscape / "logs", ["relay"])
    assert CliRunner().invoke(app, ["logs", "relay", "--dir", str(landscape)]).exit_code == 2
    assert CliRunner().invoke(app, ["logs", "--dir", str(landscape / "nowhere")]).exit_code == 3


def test_a_trace_or_a_shoot_is_followed_through_all_services(landscape: Path) -> None:
    both = ["shoot.scheduled", "report.sent"]
    assert [line.split()[3] for line in shown(landscape, "--trace", "abc123")] == both
    assert [line.split()[3] for line in shown(landscape, "--shoot", "garden-dev/apollo")] == both


def test_that_nobody_said_anything_is_said(landscape: Path) -> None:
    result = CliRunner().invoke(app, ["logs", "--shoot", "garden-dev/nobody", "--dir", str(landscape)])
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "no line fits\n")


def test_json_is_passed_on_as_it_was_written_and_made_of_what_was_none(landscape: Path) -> None:
    first, *_ = shown(landscape, "scheduler", "-o", "json")
    assert first == written("shoot.scheduled", shoot="shoot garden-dev/apollo", trace_id="abc123")
    (nats,) = shown(landscape, "nats", "-o", "json")
    assert json.loads(nats)["level"] == "warning"


def test_only_the_last_lines_that_match_can_be_asked_for(landscape: Path) -> None:
    assert [line.split()[3] for line in shown(landscape, "gardenlet", "--tail", "1")] == ["lease.renewed"]
    assert len(shown(landscape, "--grep", "LEASE|slow")) == 2
    assert shown(landscape, "scheduler", "--since", "5m", "--grep", "shoot") == []


def test_containers_are_read_from_stdin() -> None:
    piped = f"scheduler-1  | {written('shoot.scheduled')}\nnats-1  | not JSON\n"

    result = CliRunner().invoke(app, ["logs", "-"], input=piped)

    scheduled, plain = result.stdout.splitlines()
    assert scheduled == "2026-01-02T03:04:05.000Z scheduler info    shoot.scheduled"
    assert plain.split() == ["nats", "info", "not", "JSON"]


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("shoot garden-dev/apollo", True),
        ("garden.queue.scheduling.default-scheduler.garden-dev.apollo", True),
        ("shoot:garden-dev:apollo", True),
        ("Bound garden-dev/apollo.", True),
        ("garden-dev/apollo-2", False),
        ("my-garden-dev/apollo", False),
        ("garden-dev/apollo.eu", False),
    ],
)
def test_a_shoot_is_found_however_it_is_written_and_no_other(text: str, matches: bool) -> None:
    assert bool(shoot_pattern("garden-dev/apollo").search(text)) is matches


@pytest.mark.parametrize(
    "word",
    ["garden-dev/apollo", "shoot/garden-dev/apollo", "shoots.core.gardener.cloud/garden-dev/apollo", "shoot/apollo"],
)
def test_the_kind_may_stand_before_the_shoot(word: str) -> None:
    piped = f"{written('one', shoot='garden-dev/apollo')}\n{written('two', shoot='garden-dev/zeus')}\n"

    result = CliRunner().invoke(app, ["logs", "-", "--shoot", word], input=piped)

    assert "one" in result.stdout
    assert "two" not in result.stdout


def test_what_would_steer_a_terminal_is_made_visible() -> None:
    line = a_line("shoot.refused", reason="\x1b[2J\nforged")
    assert pretty(line, width=9, is_coloured=False).endswith("shoot.refused reason=\\u001b[2J\\nforged")


def test_colours_are_for_terminals() -> None:
    assert "\x1b[" not in pretty(a_line(level="error"), width=9, is_coloured=False)
    assert "\x1b[31merror" in pretty(a_line(level="error"), width=9, is_coloured=True)


def test_redis_says_how_bad_it_is_by_a_sign() -> None:
    line = read_line("7:M 21 Nov 2026 12:11:39.568 # overcommit", "redis", local_offset=timedelta(hours=1))
    assert (line.level, line.event, line.at) == (
        "warning",
        "overcommit",
        datetime(2026, 11, 21, 11, 11, 39, 568_000, UTC),
    )
    assert json.loads(raw_json(line))["service"] == "redis"


@pytest.mark.parametrize("wrong", [{"level": "loud"}, {"grep": "("}, {"shoot": "/apollo"}])
def test_what_cannot_be_asked_for_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        LineFilter(**wrong)


def test_durations_are_read_with_their_unit() -> None:
    assert [parse_duration(text) for text in ("90s", "1.5m", "1d")] == [
        timedelta(seconds=90), timedelta(seconds=90), timedelta(days=1),
    ]  # fmt: skip
    with pytest.raises(BadRequest):
        parse_duration("5 minutes")


@pytest.mark.parametrize("text", ["9999999d", "36501d", "9" * 400 + "ms"])
def test_durations_of_more_than_a_century_are_refused(landscape: Path, text: str) -> None:
    with pytest.raises(BadRequest, match=r"more than 36500d \(100 years\)"):
        parse_duration(text)
    assert CliRunner().invoke(app, ["logs", "--dir", str(landscape), "--since", text]).exit_code == 2


def test_what_is_appended_is_followed_through_a_rotation(landscape: Path) -> None:
    logs = landscape / "logs"
    sources = log_sources(logs, ["gardenlet"])
    batches = LogTail(logs, ["gardenlet"], sources).batches()
    assert next(batches) == []
    file = logs / "gardenlet.log"
    with file.open("a") as log:
        log.write(written("first", seconds=5) + "\n" + written("half", seconds=6)[:10])
    assert [line.event for line in next(batches)] == ["first"]
    with file.open("a") as log:
        log.write(written("half", seconds=6)[10:] + "\n")
    assert [line.event for line in next(batches)] == ["half"]
    file.replace(logs / "gardenlet.log.1")
    file.write_text(written("after", seconds=7) + "\n")
    assert [line.event for line in next(batches)] == ["after"]
    assert [line.event for line in merged_lines(sources)][-1] == "after"


COMPOSE_2_26 = (
    '\x1b[2Kscheduler-1  | {"event": "shoot.scheduled", "level": "info", "timestamp": "2026-01-01T00:00:00Z"}\n'
    '\x1b[2K\x1b[36mapiserver-2  |\x1b[0m {"event": "server.awaited", "level": "warn", "timestamp": "2026-01-01"}\n'
    "\x1b[2Knats-1  | what is this\n"
)


def test_escapes_in_front_of_piped_lines_are_stripped():
    shown = CliRunner().invoke(app, ["logs", "-"], input=COMPOSE_2_26)

    assert [line.split()[1:4] for line in shown.stdout.splitlines()[:2]] == [
        ["scheduler", "info", "shoot.scheduled"],
        ["apiserver", "warning", "server.awaited"],
    ]
    assert "\x1b" not in shown.stdout
    assert shown.exit_code == 0


def test_lines_that_cannot_be_read_are_counted_and_said():
    shown = CliRunner().invoke(app, ["logs", "-", "--level", "warn"], input=COMPOSE_2_26)

    assert "server.awaited" in shown.stdout
    assert "shoot.scheduled" not in shown.stdout
    assert "1 line could not be read" in shown.stderr
    assert "no line fits" in CliRunner().invoke(app, ["logs", "-", "--level", "error"], input=COMPOSE_2_26).stderr


def test_timestamps_in_front_of_piped_lines_are_stripped():
    stamp = "2026-11-23T21:35:50.304029676Z "
    line = (
        '{"event": "shoot.scheduled", "level": "info", "timestamp": "2026-01-01T00:00:00Z", "service": "scheduler"}\n'
    )
    nats = "[1] 2026/01/01 00:00:01.000000 [INF] Server is ready\n"
    piped = f"scheduler-1  | {stamp}{line}{stamp}{line}nats-1  | {stamp}{nats}"

    shown = CliRunner().invoke(app, ["logs", "-"], input=piped)

    assert [each.split()[1:4] for each in shown.stdout.splitlines()] == [
        ["scheduler", "info", "shoot.scheduled"],
        ["scheduler", "info", "shoot.scheduled"],
        ["nats", "info", "Server"],
    ]
    assert shown.stderr == ""


def test_logs_of_one_scheduler_and_of_all(tmp_path: Path) -> None:
    for name in ("scheduler-1", "scheduler-2", "scheduler-1@mine", "scheduler-2@mine", "scheduler@yours", "relay"):
        (tmp_path / f"{name}.log").write_text("")

    def named(wanted: str) -> list[str]:
        return [source.name for source in log_sources(tmp_path, [wanted])]

    assert named("scheduler@mine") == ["scheduler-1@mine", "scheduler-2@mine"]
    assert named("scheduler-2@mine") == ["scheduler-2@mine"]
    assert len(named("scheduler")) == 5
    assert named("scheduler@yours") == ["scheduler@yours"]
