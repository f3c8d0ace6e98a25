"""The watchdog ends a process that computes without returning to its event loop, and no other."""

import asyncio
import os
import subprocess
import sys
import textwrap

import pytest

from gardenbus.common.runtime.watchdog import EXIT_CODE

SERVICE = """
import asyncio, os, re, time
from gardenbus.common.side_thread import LARGE_BYTES, beside_loop
from gardenbus.common.runtime.service import ServiceContext, run_service
from gardenbus.common.runtime.settings import CommonSettings, load

BUDGET = load(CommonSettings).watchdog_seconds

def compute(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass

async def build(context):
    context.spawn("work", work())

async def end():
    print("survived", flush=True)
    os._exit(0)

{work}

run_service("sample", lambda: load(CommonSettings), build)
"""


async def run(work: str, seconds: str = "0.5") -> tuple[int | None, str, str]:
    """Exit code and output of a service that does some work."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SERVICE.replace("{work}", textwrap.dedent(work)),
        env={**os.environ, "GARDENBUS_WATCHDOG_SECONDS": seconds},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    output, errors = await process.communicate()
    return process.returncode, output.decode(), errors.decode()


@pytest.mark.parametrize(
    "statement",
    ["re.compile('(a+)+b').match('a' * 64)", "compute(1000)"],
    ids=["an expression that holds the interpreter", "a loop"],
)
async def test_a_process_that_computes_for_too_long_is_ended_with_its_stack(statement: str) -> None:
    code, output, errors = await run(f"async def work():\n    {statement}\n    await end()")
    assert code == EXIT_CODE
    assert "survived" not in output
    assert "in work" in errors


async def test_work_in_the_side_thread_counts_though_the_loop_goes_on() -> None:
    code, output, errors = await run(
        "async def work():\n    await beside_loop(LARGE_BYTES, lambda: compute(1000))\n    await end()"
    )
    assert code == EXIT_CODE
    assert "survived" not in output
    assert "in compute" in errors


@pytest.mark.parametrize(
    ("statement", "seconds"),
    [
        ("time.sleep(3 * BUDGET)", "0.5"),
        ("for _ in range(40): compute(BUDGET / 10); await asyncio.sleep(0)", "1"),
        ("for _ in range(4): await beside_loop(LARGE_BYTES, lambda: compute(BUDGET / 2))", "1"),
        ("compute(2)", "0"),
    ],
    ids=["that waits", "that returns to its loop", "with short work in the side thread", "without a watchdog"],
)
async def test_a_process_is_left_alone(statement: str, seconds: str) -> None:
    code, output, errors = await run(f"async def work():\n    {statement}\n    await end()", seconds)
    assert "survived" in output, errors
    assert code != EXIT_CODE
