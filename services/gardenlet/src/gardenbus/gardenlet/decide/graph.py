"""Flows as graphs of named steps: which may start now, and how far the whole is."""

from collections.abc import Collection, Mapping
from typing import NamedTuple


class Step(NamedTuple):
    """One step. `task` is what people read, `after` names the steps that must be done before."""

    name: str
    task: str
    after: tuple[str, ...] = ()


class Flow:
    """A graph of steps, in the order in which they were given. Raises ValueError when it has a cycle or a loose end."""

    def __init__(self, name: str, steps: tuple[Step, ...]) -> None:
        self.name = name
        self.steps: Mapping[str, Step] = {step.name: step for step in steps}
        if len(self.steps) != len(steps):
            raise ValueError(f"{name}: a step's name is used twice")
        loose = sorted({name for step in steps for name in step.after} - self.steps.keys())
        if loose:
            raise ValueError(f"{name}: steps wait for unknown ones: {', '.join(loose)}")
        self._refuse_cycles()

    def ready(self, done: Collection[str], running: Collection[str] = ()) -> tuple[Step, ...]:
        """Steps that are neither done nor running and wait for nothing any more."""
        return tuple(
            step
            for step in self.steps.values()
            if step.name not in done and step.name not in running and all(name in done for name in step.after)
        )

    def is_complete(self, done: Collection[str]) -> bool:
        """Whether every step is done."""
        return all(name in done for name in self.steps)

    def progress(self, done: Collection[str]) -> int:
        """Done steps in percent of all, rounded down; 100 only when complete."""
        return 100 * sum(name in done for name in self.steps) // len(self.steps)

    def without(self, *names: str) -> "Flow":
        """The same flow without some steps; what waited for them waits for what they waited for."""
        steps = dict(self.steps)
        for name in names:
            dropped = steps.pop(name)
            for step in tuple(steps.values()):
                if name in step.after:
                    kept = tuple(each for each in step.after if each != name)
                    inherited = tuple(each for each in dropped.after if each not in kept)
                    steps[step.name] = step._replace(after=kept + inherited)
        return Flow(self.name, tuple(steps.values()))

    def _refuse_cycles(self) -> None:
        done: set[str] = set()
        while ready := self.ready(done):
            done.update(step.name for step in ready)
        if not self.is_complete(done):
            raise ValueError(f"{self.name}: steps wait for each other: {', '.join(sorted(self.steps.keys() - done))}")
