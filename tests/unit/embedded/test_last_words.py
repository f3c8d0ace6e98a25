"""A process that is killed at a stop is named with what it said last."""

from pathlib import Path

from gardenbus.embedded import processes


def last_line(tmp_path: Path, content: str) -> str:
    log = tmp_path / "relay.log"
    log.write_text(content)
    return processes._last_line(log)  # pyright: ignore[reportPrivateUsage]


def test_of_a_service_the_event_and_its_reason_are_named(tmp_path: Path):
    line = '{"event":"service.drain_exceeded","drain_seconds":3.5,"waits_for":"the drain http"}\n'
    assert last_line(tmp_path, f'{{"event":"x"}}\n{line}\n') == "service.drain_exceeded waits_for=the drain http"
    assert last_line(tmp_path, '{"event":"service.stopping"}\n') == "service.stopping"


def test_of_a_server_the_line_is_named_and_none_without_a_log(tmp_path: Path):
    assert last_line(tmp_path, "x" * 9000 + "\n[1] Saving the final RDB snapshot\n\n") == (
        "[1] Saving the final RDB snapshot"
    )
    assert last_line(tmp_path, "y" * 9000) == "y" * 200
    assert last_line(tmp_path, "") == ""
    assert processes._last_line(tmp_path / "none.log") == ""  # pyright: ignore[reportPrivateUsage]
