"""Cancels a coroutine at each of its awaits, one after the other.

At each it is tried twice: while what is awaited is under way, and in the moment in which it is done. In that moment
Python 3.11's `asyncio.wait_for` returns, and the cancellation is lost for whoever does not ask for it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from tests.support.eventually import HANG_SECONDS, eventually

Moment = Literal["under way", "done"]
MOMENTS: tuple[Moment, ...] = ("under way", "done")

MOST_AWAITS = 200
END_SECONDS = HANG_SECONDS
"""Longest wait for the end of what is cancelled: an ordinary one takes a few turns of the loop."""


@dataclass
class Cancelled:
    """How a coroutine took a cancellation. `was_tried`: it got as far as that await."""

    number: int
    moment: Moment
    was_tried: bool = False
    left: set[str] = field(default_factory=set[str])
    """Tasks that outlived it."""
    outcome: str = ""
    """`cancelled`, `returned`, `hangs`, or the error that it raised."""


async def cancelled_at_each_await(
    work: Callable[[], Coroutine[Any, Any, object]], *, moments: tuple[Moment, ...] = MOMENTS, most: int = MOST_AWAITS
) -> AsyncIterator[Cancelled]:
    """Run `work` anew for each await up to `most`, until it ends before it is cancelled; yields what came of each."""
    for moment in moments:
        for number in range(most):
            result = await _cancelled_at(work, Cancelled(number, moment))
            if not result.was_tried:
                break
            yield result


async def assert_cancellable(
    work: Callable[[], Coroutine[Any, Any, object]], *, most: int = MOST_AWAITS, outcomes: tuple[str, ...] = ()
) -> int:
    """Fail where a cancelled `work` does not end as cancelled, or leaves a task; returns the number of awaits tried.

    `outcomes` are others that it may have.
    """
    tried = 0
    wrong: list[Cancelled] = []
    async for result in cancelled_at_each_await(work, most=most):
        tried += 1
        if result.outcome not in ("cancelled", *outcomes) or result.left:
            wrong.append(result)
    assert not wrong, "\n".join(map(str, wrong))
    assert tried, "it never waits"
    return tried


async def _cancelled_at(work: Callable[[], Coroutine[Any, Any, object]], result: Cancelled) -> Cancelled:
    before = asyncio.all_tasks()
    task = asyncio.create_task(_driven(work(), result), name="cancelled")
    ended, _ = await asyncio.wait((task,), timeout=END_SECONDS)
    result.outcome = _outcome(task) if ended else "hangs"
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=0.1)
    result.left = await _left(before)
    return result


async def _left(before: "set[asyncio.Task[Any]]") -> set[str]:
    """Names of new tasks that do not end by themselves; they are ended."""
    pending = asyncio.all_tasks() - before
    if pending:
        _, pending = await asyncio.wait(pending, timeout=END_SECONDS)
    names = {task.get_name() + repr(task.get_coro()) for task in pending}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=0.1)
    return names


def _outcome(task: "asyncio.Task[object]") -> str:
    if task.cancelled():
        return "cancelled"
    error = task.exception()
    return "returned" if error is None else repr(error)


class _Driven:
    """Drives a coroutine, and has its task cancelled at one of its awaits."""

    def __init__(self, coroutine: Coroutine[Any, Any, object], result: Cancelled) -> None:
        self._coroutine = coroutine
        self._result = result
        self._awaits = 0

    def __await__(self) -> Generator[Any, None, object]:
        step: Callable[[], Any] = lambda: self._coroutine.send(None)  # noqa: E731 - what the next step is
        while True:
            try:
                awaited = step()
            except StopIteration as end:
                return end.value
            if self._awaits == self._result.number:
                self._cancel_at(awaited)
            self._awaits += 1
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001 - it is the coroutine's
                step = lambda error=error: self._coroutine.throw(error)  # noqa: E731
            else:
                step = lambda: self._coroutine.send(None)  # noqa: E731

    def _cancel_at(self, awaited: object) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._result.was_tried = True
        if isinstance(awaited, asyncio.Future) and self._result.moment == "done":
            future = cast("asyncio.Future[object]", awaited)
            future.add_done_callback(lambda _: task.cancel())
        else:
            asyncio.get_running_loop().call_soon(task.cancel)


async def _driven(coroutine: Coroutine[Any, Any, object], result: Cancelled) -> object:
    return await _Driven(coroutine, result)


def sockets() -> int:
    """Open sockets of this process."""
    links = (_target(entry) for entry in Path("/proc/self/fd").iterdir())
    return sum(link.startswith("socket:") for link in links)


def _target(entry: Path) -> str:
    try:
        return str(entry.readlink())
    except OSError:
        return ""


async def closed_sockets(before: int) -> None:
    """Wait until there are no more than before: the loop closes a transport a turn later."""

    async def check() -> None:
        assert sockets() <= before

    await eventually(check)
