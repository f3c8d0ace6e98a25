"""The life of a service, watched from outside: a real process, real signals."""

import asyncio
import json
import os
import re
import signal
import sys
import textwrap
from asyncio.subprocess import Process
from pathlib import Path

import aiohttp

from tests.support.eventually import HANG_SECONDS

PREAMBLE = """
import asyncio, time
from gardenbus.common.errors import Unavailable
from gardenbus.common.runtime.service import ServiceContext, run_service
from gardenbus.common.runtime.settings import CommonSettings, load

def run(build):
    run_service("sample", lambda: load(CommonSettings), build)
"""


async def start(source: str, **environ: str) -> Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PREAMBLE + textwrap.dedent(source),
        env={**os.environ, **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def until(process: Process, event: str) -> list[dict[str, object]]:
    assert process.stdout is not None
    lines: list[dict[str, object]] = []
    async with asyncio.timeout(HANG_SECONDS):
        while line := await process.stdout.readline():
            lines.append(json.loads(line))
            if lines[-1]["event"] == event:
                return lines
    raise AssertionError(f"no {event} in {lines}")


async def test_sigterm_drains_closes_and_ends_with_0():
    process = await start("""
        async def build(context):
            context.stack.callback(print, '{"event": "closed"}', flush=True)
            context.spawn("forever", asyncio.Event().wait())
            async def drain():
                await asyncio.sleep(0.05)
                print('{"event": "drained"}', flush=True)
            context.on_stop("work", drain)
        run(build)
    """)
    await until(process, "service.started")

    process.send_signal(signal.SIGTERM)

    stopped = [line["event"] for line in await until(process, "service.stopped")]
    assert await process.wait() == 0
    assert stopped == ["service.stopping", "drained", "closed", "service.stopped"]


async def test_a_crashed_task_ends_the_process_with_1():
    process = await start("""
        async def build(context):
            async def crash():
                raise RuntimeError("boom")
            context.spawn("worker", crash())
        run(build)
    """)
    crashed = (await until(process, "task.crashed"))[-1]
    assert crashed["task"] == "worker"
    assert "boom" in str(crashed["exception"])
    assert crashed["service"] == "sample"
    assert await process.wait() == 1


async def test_invalid_settings_end_with_2_and_list_all_problems():
    process = await start(
        "async def build(context): ...\nrun(build)", GARDENBUS_LOG_LEVEL="loud", GARDENBUS_PREFIX="a.b"
    )
    _, stderr = await process.communicate()

    assert process.returncode == 2
    assert [line.split(": ")[1] for line in stderr.decode().splitlines()] == [
        "GARDENBUS_PREFIX",
        "GARDENBUS_LOG_LEVEL",
    ]


async def test_a_server_that_is_away_is_waited_for_and_the_log_says_so():
    process = await start("""
        async def build(context):
            tries = []
            async def connect():
                tries.append(1)
                if len(tries) < 3:
                    raise Unavailable("connection refused")
                return "connection"
            assert await context.wait_for("nats", connect) == "connection"
        run(build)
    """)
    events = [line["event"] for line in await until(process, "service.started")]
    process.terminate()
    await process.communicate()

    assert events == ["service.starting", "server.awaited", "server.reached", "service.started"]


async def test_readyz_names_what_a_start_waits_for_and_livez_is_well():
    process = await start("""
        async def build(context):
            async def connect():
                raise Unavailable("connection refused")
            await context.wait_for("redis", connect)
        run(build)
    """)
    lines = await until(process, "server.awaited")
    async with aiohttp.ClientSession() as session:

        async def page(path: str) -> tuple[int, dict[str, str]]:
            async with session.get(f"{lines[0]['health_url']}{path}") as response:
                return response.status, (await response.json())["checks"]

        assert await page("/livez") == (200, {})
        status, checks = await page("/readyz")
    process.terminate()
    await process.communicate()

    assert status == 503
    assert re.fullmatch(r"starting: waits for redis since \d+ s \(connection refused\)", checks["process"])


async def test_the_health_file_tells_pid_and_url(tmp_path: Path):
    file = tmp_path / "health" / "sample.json"
    process = await start("async def build(context): ...\nrun(build)", GARDENBUS_HEALTH_FILE=str(file))
    started = await until(process, "service.started")
    process.terminate()
    await process.communicate()

    announced = json.loads(file.read_text())
    assert announced == {"pid": process.pid, "health_url": started[0]["health_url"]}


async def test_a_stop_during_the_start_is_obeyed():
    process = await start("""
        async def build(context):
            async def connect():
                raise Unavailable("never")
            await context.wait_for("redis", connect)
        run(build)
    """)
    await until(process, "server.awaited")
    process.send_signal(signal.SIGINT)
    await process.communicate()

    assert process.returncode == 0


async def test_a_thread_that_hangs_does_not_keep_the_process():
    process = await start(
        """
        async def build(context):
            context.spawn("disk", asyncio.to_thread(time.sleep, 60))
        run(build)
        """,
        GARDENBUS_DRAIN_SECONDS="0.2",
    )
    await until(process, "service.started")
    process.terminate()
    await until(process, "service.stopped")
    await until(process, "service.cut")
    await process.communicate()

    assert process.returncode == 1


async def test_a_drain_that_hangs_is_cut_short():
    process = await start(
        """
        async def build(context):
            async def drain():
                await asyncio.sleep(60)
            context.on_stop("hanging", drain)
        run(build)
        """,
        GARDENBUS_DRAIN_SECONDS="0.2",
    )
    await until(process, "service.started")
    process.terminate()
    exceeded = (await until(process, "service.drain_exceeded"))[-1]
    assert exceeded["waits_for"] == "the drain hanging"
    await process.communicate()

    assert process.returncode == 0
