"""Bars against a shoot on every seed: the store was restored, and the shoot may run somewhere already. Pure."""

from gardenbus.common.ports.recovery import Recovery
from gardenbus.scheduling.results import Unschedulable

RECOVERING = "recovery"
RUNS_ELSEWHERE = "runs-elsewhere"


def recovering(recovery: Recovery) -> Unschedulable:
    """The shoot was ordered before the store was restored."""
    message = f"it was ordered before, and is placed once it is known that it runs nowhere: {recovery.text}"
    return Unschedulable(RECOVERING, message)


def runs_elsewhere(seed: str = "") -> Unschedulable:
    """A seed runs it, where the store has lost it."""
    where = f"seed {seed}" if seed else "a seed"
    message = f"{where} runs it, and the store has lost that: adopt it, or forget it, there first (gardenbus doctor)"
    return Unschedulable(RUNS_ELSEWHERE, message)
