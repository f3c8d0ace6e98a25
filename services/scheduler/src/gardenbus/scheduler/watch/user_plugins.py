"""A plug-in of users in a profile, and how it has done so far: failures in a row leave it alone for a while."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gardenbus.common.api.garden.scheduling_profiles import InstalledPlugin, RemotePlugin, WeightedScore
from gardenbus.common.controller.repeated_lines import RepeatedLines
from gardenbus.common.ports.clock import Clock
from gardenbus.scheduler.metrics import SchedulerMetrics
from gardenbus.scheduler.watch.installed_plugins import MOST_HUNG, PluginCalls, SeedPlugin

LONGEST_REPLY_SECONDS = 5.0
"""Wait for a reply that is late: nobody waits for it, but it counts."""

MOST_FAILURES = 5
PAUSE_SECONDS = 10.0
MOST_BYTES = 8 * 1024 * 1024


@dataclass(slots=True, eq=False)
class UserPlugin:
    """A plug-in of a profile. `calls` are those of one that is installed; None over NATS."""

    name: str
    args: RemotePlugin
    calls: PluginCalls | None
    clock: Clock
    metrics: SchedulerMetrics
    lines: RepeatedLines
    failures: int = 0
    paused_until: float = 0.0
    problem: str = ""
    changed: Callable[[], None] = lambda: None
    """Called after each reply and each failure."""

    @property
    def short_name(self) -> str:
        """The name of the instance."""
        return self.name.partition("/")[2]

    @property
    def missing(self) -> str:
        """The reason for which shoots wait where it is required."""
        problem = self.problem or "none has come in time"
        return f"the plug-in {self.short_name} is required, and there is no valid reply of it: {problem}"

    @property
    def is_left_alone(self) -> bool:
        """True for a while after failures in a row."""
        return self.clock.monotonic() < self.paused_until

    @property
    def is_given_up(self) -> bool:
        """True while too many of its calls have not returned."""
        return self.calls is not None and self.calls.hung >= MOST_HUNG

    def replied(self, took_seconds: float) -> None:
        """Count a reply that can be meant; one that is late is a problem, and no failure."""
        self.metrics.plugin_seconds.labels(self.short_name).observe(took_seconds)
        deadline = self.args.deadline_seconds
        self.problem, self.failures = "", 0
        if took_seconds > deadline:
            self.metrics.plugin_errors.labels(self.short_name, "late").inc()
            self.problem = f"its reply took {took_seconds * 1000:.0f} ms, {deadline * 1000:.0f} ms are allowed"
        self.changed()

    def failed(self, reason: str, problem: str) -> None:
        """Count a request without a reply that can be meant."""
        self.failures += 1
        self.problem = problem
        self.metrics.plugin_errors.labels(self.short_name, reason).inc()
        self.lines.warn(self.name, problem, plugin=self.short_name, reason=problem, failures=self.failures)
        if self.failures >= MOST_FAILURES:
            self.paused_until = self.clock.monotonic() + PAUSE_SECONDS
        self.changed()


def user_plugin(
    score: WeightedScore,
    installed: Mapping[str, SeedPlugin],
    *,
    clock: Clock,
    metrics: SchedulerMetrics,
    lines: RepeatedLines,
) -> UserPlugin:
    """The plug-in of a row of a profile."""
    args = score.args
    assert isinstance(args, RemotePlugin), "the profile has chosen by its arguments"
    is_installed = isinstance(args, InstalledPlugin)
    calls = PluginCalls(score.instance, installed[score.instance]) if is_installed else None
    if calls is not None:
        metrics.plugin_hung_calls.labels(score.instance).set_function(lambda: calls.hung)
    return UserPlugin(score.name, args, calls, clock, metrics, lines)
