"""Flows as graphs of named steps, with readiness and progress."""

from collections.abc import Collection, Mapping
from typing import NamedTuple


class FlowStep(NamedTuple):
    """One step. `task` is its display name, `after` the steps that it depends on."""

    name: str
    task: str
    after: tuple[str, ...] = ()


class Flow:
    """A graph of steps in definition order. Raises ValueError for a cycle or an unknown dependency."""

    def __init__(self, name: str, steps: tuple[FlowStep, ...]) -> None:
        self.name = name
        self.steps: Mapping[str, FlowStep] = {step.name: step for step in steps}
        if len(self.steps) != len(steps):
            raise ValueError(f"{name}: a step's name is used twice")
        loose = sorted({name for step in steps for name in step.after} - self.steps.keys())
        if loose:
            raise ValueError(f"{name}: steps wait for unknown ones: {', '.join(loose)}")
        self._reject_cycles()

    def ready(self, done: Collection[str], running: Collection[str] = ()) -> tuple[FlowStep, ...]:
        """Steps that are neither done nor running and whose dependencies are done."""
        return tuple(
            step
            for step in self.steps.values()
            if step.name not in done and step.name not in running and all(name in done for name in step.after)
        )

    def is_complete(self, done: Collection[str]) -> bool:
        """True if every step is done."""
        return all(name in done for name in self.steps)

    def progress(self, done: Collection[str]) -> int:
        """Done steps in percent, rounded down; 100 only when complete."""
        return 100 * sum(name in done for name in self.steps) // len(self.steps)

    def without(self, *names: str) -> "Flow":
        """The flow without some steps; their dependents inherit their dependencies."""
        steps = dict(self.steps)
        for name in names:
            dropped = steps.pop(name)
            for step in tuple(steps.values()):
                if name in step.after:
                    kept = tuple(each for each in step.after if each != name)
                    inherited = tuple(each for each in dropped.after if each not in kept)
                    steps[step.name] = step._replace(after=kept + inherited)
        return Flow(self.name, tuple(steps.values()))

    def extended(self, more: tuple[FlowStep, ...], order: Mapping[str, tuple[str, ...]]) -> "Flow":
        """The flow with more steps, and with more that its own steps wait for."""
        own = tuple(step._replace(after=step.after + order.get(step.name, ())) for step in self.steps.values())
        return Flow(self.name, own + more)

    def _reject_cycles(self) -> None:
        done: set[str] = set()
        while ready := self.ready(done):
            done.update(step.name for step in ready)
        if not self.is_complete(done):
            raise ValueError(f"{self.name}: steps wait for each other: {', '.join(sorted(self.steps.keys() - done))}")
