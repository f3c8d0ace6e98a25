"""What is shown of a deployment whose test has failed."""

from tests.docker.conftest import LINES, last_of_each


def line(container: str, number: int, level: str) -> str:
    return f'{container}-1  | 2026-01-01T00:00:00Z {{"level": "{level}", "event": "e{number}"}}'


def test_warnings_and_the_last_lines_of_each_container_are_shown():
    scheduler = [line("scheduler", number, "warning" if number == 3 else "info") for number in range(50)]
    relay = [line("relay", number, "info") for number in range(50)]
    mixed = [each for pair in zip(scheduler, relay, strict=True) for each in pair]

    shown = last_of_each("\n".join(mixed)).splitlines()

    assert shown == [scheduler[3], *scheduler[-LINES:], *relay[-LINES:]]


def test_what_is_no_record_is_calm_and_cut():
    lines = ["redis-1  | " + "x" * 1000, *(f"redis-1  | {number}" for number in range(LINES)), "redis-1  | {half"]

    shown = last_of_each("\n".join(lines)).splitlines()

    assert shown == lines[-LINES:]
