"""Pictures of simulations, drawn by matplotlib without a display."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gardenbus.cli.simulate.autoscaling.report import AutoscalerScenario
    from gardenbus.cli.simulate.autoscaling.simulator import SimulationTrace

DAY = 86_400
_INCHES = (12, 7)


def draw_trace(file: Path, scenario: "AutoscalerScenario", trace: "SimulationTrace") -> None:
    """Draw shoots and seeds over the days into a file whose name says its format. Raises OSError, ValueError."""
    import matplotlib as mpl  # noqa: PLC0415  a second that other commands need not pay

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415  only after the choice above

    draw: Any = plt
    days = [moment.at / DAY for moment in trace.samples]
    figure, (upper, lower) = draw.subplots(2, 1, sharex=True, figsize=_INCHES, layout="constrained")
    try:
        capacity = scenario.seeds.capacity
        upper.step(days, [moment.wanted for moment in trace.samples], where="post", label="shoots", linewidth=0.8)
        places = [moment.ready * capacity for moment in trace.samples]
        upper.step(days, places, where="post", label="places", linewidth=0.8)
        upper.fill_between(
            days, [moment.waiting for moment in trace.samples], step="post", label="waiting", color="tab:red", alpha=0.7
        )
        upper.set_ylabel("shoots")
        lower.step(days, [moment.paid for moment in trace.samples], where="post", label="paid", linewidth=0.8)
        needed = [-(-step.number // capacity) for step in trace.hosted]
        lower.step([step.at / DAY for step in trace.hosted], needed, where="post", label="needed", linewidth=0.8)
        lower.axhline(scenario.most, linestyle=":", color="tab:gray", label="maxReplicas")
        lower.set_ylabel("seeds")
        lower.set_xlabel("days")
        for axes in (upper, lower):
            axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)
            axes.grid(visible=True, alpha=0.3)
            axes.set_xlim(0, trace.end / DAY)
            axes.set_ylim(bottom=0)
        figure.savefig(file, dpi=100)
    finally:
        draw.close(figure)
