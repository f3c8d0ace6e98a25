"""The lines that services log."""

import json
import logging
from datetime import UTC, datetime, timedelta

import pytest
import structlog

from gardenbus.common.runtime.logs import configure_logging


@pytest.fixture(autouse=True)
def _as_before() -> object:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    root.handlers = handlers
    root.setLevel(level)


def test_each_line_says_when_it_was_in_utc_to_the_microsecond(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    before = datetime.now(UTC) - timedelta(microseconds=1)
    configure_logging("scheduler", log_format="json")
    log = structlog.get_logger()
    for number in range(3):
        log.info("shoot.scheduled", number=number)
    after = datetime.now(UTC)
    lines = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    moments = [datetime.fromisoformat(line["timestamp"]) for line in lines]
    assert [line["number"] for line in lines] == [0, 1, 2]
    assert before <= moments[0] <= moments[1] <= moments[2] <= after
    assert all(
        line["timestamp"].endswith("Z") and len(line["timestamp"]) == len("2026-01-02T03:04:05.123456Z")
        for line in lines
    )
