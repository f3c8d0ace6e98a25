"""Actor: a process that may die at any choice point and be started again, with what it kept on its own disk."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any

from tests.simulation.event_loop import SimulationLoop

_CURRENT: ContextVar["Actor | None"] = ContextVar("actor", default=None)

Main = Callable[["Actor"], Coroutine[Any, Any, None]]


class ActorDied(Exception):
    """An actor ended by itself: none ever should."""


class Actor:
    """One life of a process. `main` is awaited with it; a new life is a new Actor."""

    def __init__(self, name: str, main: Main, loop: SimulationLoop, life: int = 1) -> None:
        self.name = name
        self.main = main
        self.life = life
        self.loop = loop
        self.is_alive = True
        self.on_death: Callable[[ActorDied], None] = lambda _death: None
        self.when_reconnected: list[Callable[[], Coroutine[Any, Any, None]]] = []
        self._tasks: list[asyncio.Task[Any]] = []

    def start(self) -> None:
        """Begin to run."""
        self.spawn(self.main(self)).add_done_callback(self._on_end)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run something as a task of this actor."""
        context = copy_context()
        context.run(_CURRENT.set, self)
        return self.loop.create_task(coroutine, context=context)

    def own(self, task: asyncio.Task[Any]) -> None:
        """A task that ends with the actor."""
        self._tasks.append(task)

    def reconnect(self) -> None:
        """The bus came back: run what waits for that."""
        for callback in self.when_reconnected:
            self.spawn(callback())

    def _on_end(self, main: asyncio.Task[None]) -> None:
        if self.is_alive:
            cause = None if main.cancelled() else main.exception()
            self.on_death(ActorDied(f"{self.name} ended by itself: {cause!r}"))

    def kill(self) -> None:
        """End without another word to anybody."""
        self.is_alive = False
        for _ in range(20):
            self._tasks = [task for task in self._tasks if not task.done()]
            if not self._tasks:
                return
            for task in self._tasks:
                task.cancel()
            self.loop.run_ready()
        raise ActorDied(f"{self.name} cannot be ended: {self._tasks}")


def note_task(task: asyncio.Task[Any], context: Context | None) -> None:
    """Give a new task to the actor in whose context it runs."""
    actor = _CURRENT.get() if context is None else context.get(_CURRENT)
    if actor is not None:
        actor.own(task)
