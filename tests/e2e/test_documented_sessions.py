"""Every command that README and documentation show in a session does what they say it does."""

import os
from pathlib import Path

import pytest

from tests.support.sessions import PAGES, Reader, reading_order, steps_of

NATS_MISSING = "no nats command is on PATH nor in .tools/bin: .ci/nats brings one"


def test_every_session_is_on_a_page_that_a_reader_meets():
    assert {page for page in PAGES if steps_of(page)} <= set(reading_order())


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_the_sessions_go_as_they_are_written_in_the_order_in_which_they_are_read(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    if reader.lacks_nats and os.environ.get("CI"):
        pytest.fail(NATS_MISSING)
    left_out: list[str] = []
    try:
        for step in (step for page in reading_order() for step in steps_of(page)):
            if reader.lacks_nats and step.needs_nats:
                left_out.append(step.command)
            else:
                await reader.type(step)
    finally:
        await reader.leave()
    if left_out:
        pytest.skip(f"{NATS_MISSING}; {len(left_out)} commands were left out")
