"""Counters of processes, on their way to the history: sent by who counts, kept by who writes the points.

They are sent when they have changed, twice a minute at the most, and always as sums since the process started: one that
is lost is made up for by the next.
"""

import secrets
from collections.abc import Callable, Mapping
from typing import NoReturn

from prometheus_client.metrics import MetricWrapperBase

from gardenbus.common.api.history import ProcessCounts, decode_counts, encode
from gardenbus.common.api.keys import Subjects
from gardenbus.common.controller.wait import forever
from gardenbus.common.ports.bus import Bus
from gardenbus.common.ports.clock import Clock

REPORT_SECONDS = 30.0

MOST_PROCESSES = 50
"""Processes whose counters are kept: those that were heard of last. A point of the history remembers twice as many, so
that none is forgotten there while it counts here, and would count anew."""


class CountReporter:
    """Sends the counters of this process."""

    def __init__(self, bus: Bus, subjects: Subjects, process: str, read: Callable[[], Mapping[str, int]]) -> None:
        self._bus = bus
        self._subject = subjects.counts
        self._process = f"{process}-{secrets.token_hex(4)}"  # another after a restart: its counters begin anew
        self._read = read
        self._sent: Mapping[str, int] = {}

    async def run(self, clock: Clock) -> NoReturn:
        """Send what has changed, for ever."""
        await forever(self.report, period_seconds=REPORT_SECONDS, sleep=clock.sleep, is_immediate=False)

    def report(self) -> None:
        """Send the counters if they have changed."""
        counts = {name: count for name, count in self._read().items() if count}
        if counts != self._sent and self._bus.connected:
            self._sent = counts
            self._bus.notify(self._subject, encode(ProcessCounts(self._process, counts)))


class ReceivedCounts:
    """The last counters of each process that were heard of."""

    def __init__(self) -> None:
        self.by_process: dict[str, Mapping[str, int]] = {}

    async def subscribe(self, bus: Bus, subjects: Subjects, instance: str) -> None:
        """Receive them from now on; each `instance` gets all. Raises Unavailable."""
        await bus.subscribe(subjects.counts, f"history-{instance}", self.take)

    def take(self, body: bytes) -> None:
        """Keep the counters of a message; one that has none is ignored."""
        received = decode_counts(body)
        if received is None:
            return
        self.by_process.pop(received.process, None)
        self.by_process[received.process] = received.counts
        while len(self.by_process) > MOST_PROCESSES:
            del self.by_process[next(iter(self.by_process))]


def counted(metric: MetricWrapperBase, *, is_counted: Callable[[Mapping[str, str]], bool]) -> float:
    """The sum of a counter, or the count of a histogram, over the labels that count."""
    return sum(
        sample.value
        for family in metric.collect()
        for sample in family.samples
        if sample.name.endswith(("_total", "_count")) and is_counted(sample.labels)
    )
