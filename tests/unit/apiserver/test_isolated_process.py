"""A service's process for messages that may kill it: a real one, with a handler that dies in several ways."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gardenbus.apiserver.isolated_process import IsolatedProcess
from gardenbus.common.controller.isolation import IsolatedResult
from gardenbus.common.errors import Unavailable
from gardenbus.common.ports.bus import StreamMessage

SERVICE = """
import asyncio, os, re, signal
from gardenbus.common.errors import Unavailable
from gardenbus.common.runtime.service import run_service
from gardenbus.common.runtime.settings import CommonSettings, load

handled = []

async def handle(messages):
    (message,) = messages
    word, _, then = message.message.body.decode().partition(" ")
    handled.append(word)
    match word:
        case "compute": re.compile("(a+)+b").match("a" * 64)
        case "kill": os.kill(os.getpid(), getattr(signal, then))
        case "stop":
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        case "exit": os._exit(3)
        case "leave": os._exit(0)
        case "second": len(handled) == 2 and os._exit(4)
        case "raise": raise ValueError(then)
        case "away": raise Unavailable(then)
        case "release": await message.release()
        case "keep": pass
        case _: await message.ack()

async def build(context):
    assert "GARDENBUS_HEALTH_FILE" not in os.environ
    context.spawn("isolated", context.isolated.serve({"work": handle}))

run_service("sample", lambda: load(CommonSettings), build)
"""


class Queued:
    """A message to handle."""

    deliveries = 2
    queued_ms = 1.5
    is_held_over = True

    def __init__(self, body: str) -> None:
        self.message = StreamMessage("garden.apply", body.encode(), {"a": "b"}, 7, datetime(2026, 1, 1, tzinfo=UTC))

    async def ack(self) -> None: ...

    async def release(self) -> None: ...

    async def in_progress(self) -> None: ...


@pytest.fixture
async def isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[IsolatedProcess]:
    (tmp_path / "dying_service.py").write_text(SERVICE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("GARDENBUS_WATCHDOG_SECONDS", "0.5")
    monkeypatch.setenv("GARDENBUS_HEALTH_FILE", str(tmp_path / "health"))
    process = IsolatedProcess("dying_service", instance="a", watchdog_seconds=0.5, stopping=asyncio.Event())
    yield process
    await process.close()


async def test_a_message_is_handled_in_one_process_and_its_end_is_told(isolated: IsolatedProcess) -> None:
    results = {word: await isolated.handle("work", Queued(word)) for word in ("ack", "release", "keep", "x" * 10**6)}
    assert [result.ended for result in results.values()] == ["acknowledged", "released", "kept", "acknowledged"]
    assert await isolated.handle("work", Queued("raise it")) == IsolatedResult(error="ValueError('it')")
    assert await isolated.handle("work", Queued("away now")) == IsolatedResult(transient="now")


@pytest.mark.parametrize(
    ("word", "death"),
    [
        ("compute", "it used more than 0.5 s of processor time without a pause"),
        ("kill SIGKILL", "its process was ended by SIGKILL, as where memory runs out"),
        ("kill SIGSEGV", "its process was ended by SIGSEGV"),
        ("exit", "its process ended with exit code 3"),
    ],
)
async def test_the_way_in_which_a_message_killed_its_process_is_told_and_the_next_has_another(
    isolated: IsolatedProcess, word: str, death: str
) -> None:
    assert await isolated.handle("work", Queued(word)) == IsolatedResult(death=death)
    assert await isolated.handle("work", Queued("ack")) == IsolatedResult(ended="acknowledged")


async def test_what_the_messages_before_left_behind_does_not_count(isolated: IsolatedProcess) -> None:
    await isolated.handle("work", Queued("ack"))
    assert await isolated.handle("work", Queued("second")) == IsolatedResult(ended="kept")


async def test_a_process_that_is_ended_from_outside_says_nothing_of_its_message(isolated: IsolatedProcess) -> None:
    with pytest.raises(Unavailable):
        await isolated.handle("work", Queued("stop"))


@pytest.mark.parametrize("word", ["leave", "stop"])
async def test_a_message_whose_process_ends_so_again_is_the_cause_of_it(isolated: IsolatedProcess, word: str) -> None:
    death = "its process ended with exit code 0"
    with pytest.raises(Unavailable):
        await isolated.handle("work", Queued(word))
    assert await isolated.handle("work", Queued(word)) == IsolatedResult(death=death)
    with pytest.raises(Unavailable):  # another message of that number has not ended any
        await isolated.handle("work", Queued(word))


async def test_a_process_that_cannot_be_started_is_unavailable() -> None:
    process = IsolatedProcess("no.such.module", instance="a", watchdog_seconds=1, stopping=asyncio.Event())
    with pytest.raises(Unavailable, match="exit code 1"):
        await process.handle("work", Queued("ack"))


async def test_at_the_stop_the_process_is_ended(isolated: IsolatedProcess) -> None:
    await isolated.handle("work", Queued("ack"))
    child = isolated._child  # pyright: ignore[reportPrivateUsage]
    assert child is not None
    await isolated.close()
    assert child.process.returncode == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(child.process.pid, 0)
