"""Turns of scenarios on a rig: a yardstick, the product, a yardstick; what they showed is collected until all end."""

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import aiohttp
import msgspec

from gardenbus.bench.comparison import Measurement
from gardenbus.bench.guard import sampler
from gardenbus.bench.guard.profiles import RedisCall, TimeSpan, by_calls, by_samples, sampled
from gardenbus.bench.guard.readings import ScenarioReading, TurnReading, Yardsticks
from gardenbus.bench.guard.redis_functions import CallLog
from gardenbus.bench.guard.yardsticks import YardstickRunner
from gardenbus.bench.harness.process_costs import core_use, memory_mb, share_of_others
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig
from gardenbus.bench.stats import latencies, medians
from gardenbus.embedded.ports import LOOPBACK

COUNTED_BY_NATS = ("in_msgs", "out_msgs", "in_bytes", "out_bytes")

MeasureOnce = Callable[[], Awaitable[Measurement]]


class _Scenario:
    def __init__(self) -> None:
        self.turns: list[TurnReading] = []
        self.bare: list[TurnReading] = []
        self.latencies: list[dict[str, float]] = []
        self.windows: dict[tuple[str, int], list[TimeSpan]] = {}
        """Spans that were measured, by name and id of each process."""
        self.calls: Sequence[RedisCall] = ()
        self.counts: Mapping[str, float] = {}


class Turns:
    """Collects readings; `samples` is the folder that sampled processes write to."""

    def __init__(self, samples: Path) -> None:
        self._samples = samples
        self._scenarios: dict[str, _Scenario] = {}

    async def take(self, scenario: str, rig: Rig, yardsticks: YardstickRunner, measure: MeasureOnce) -> None:
        """One turn that counts. Raises BenchFailed, also when a process has ended meanwhile."""
        reading = await self._measured(rig, yardsticks, measure)
        state = self._scenarios.setdefault(scenario, _Scenario())
        state.turns.append(reading.turn)
        if reading.moments:
            state.latencies.append(latencies(reading.moments))
        for process in rig.processes.values():
            if process.pid is not None:
                state.windows.setdefault((process.spec.name, process.pid), []).append(reading.window)

    async def take_bare(self, scenario: str, rig: Rig, yardsticks: YardstickRunner, measure: MeasureOnce) -> None:
        """One turn of the bare pipe."""
        reading = await self._measured(rig, yardsticks, measure)
        self._scenarios.setdefault(scenario, _Scenario()).bare.append(reading.turn)

    async def take_logged(self, scenario: str, rig: Rig, log: CallLog, measure: MeasureOnce) -> None:
        """One turn that does not count: each call of Redis is logged, and NATS' messages are counted."""
        started: dict[str, float] = {}

        async def begin() -> None:
            started.update(await _counted_by_nats(rig))
            await log.forget()

        usual, rig.begin_window = rig.begin_window, begin
        try:
            measurement = await measure()
        finally:
            rig.begin_window = usual
        ended = await _counted_by_nats(rig)
        state = self._scenarios.setdefault(scenario, _Scenario())
        state.calls = await log.calls()
        state.counts = {f"nats_{name}": (ended[name] - started[name]) / measurement.count for name in COUNTED_BY_NATS}

    def readings(self, units: Mapping[str, str]) -> list[ScenarioReading]:
        """All that was collected, functions included, once the processes have ended; `units` names each scenario's."""
        return [self._reading(name, state, units[name]) for name, state in self._scenarios.items()]

    def _reading(self, scenario: str, state: _Scenario, unit: str) -> ScenarioReading:
        reading = ScenarioReading(
            scenario=scenario,
            unit=unit,
            turns=state.turns,
            counts=state.counts,
            bare=_median_turn(state.bare),
            latency_ms=medians(state.latencies),
        )
        functions = {name: by_samples(each, reading.cpu(name).ratio) for name, each in self._counted(state)}
        functions["redis"] = by_calls(state.calls, reading.cpu("redis").ratio)
        return msgspec.structs.replace(reading, functions=functions)

    def _counted(self, state: _Scenario) -> list[tuple[str, Counter[str]]]:
        found: dict[str, Counter[str]] = {}
        for (name, pid), windows in state.windows.items():
            if (file := sampler.read(self._samples, pid)) is not None:
                found.setdefault(name, Counter()).update(sampled(file.functions, file.samples, windows))
        return [(name, counted) for name, counted in found.items() if counted]

    async def _measured(self, rig: Rig, yardsticks: YardstickRunner, measure: MeasureOnce) -> "_Measured":
        began = core_use([os.getpid()])
        before = await yardsticks.read()
        measurement = await measure()
        rig.check_running()
        memory = {name: memory_mb(process.pid) for name, process in rig.processes.items() if process.pid is not None}
        after = await yardsticks.read()
        others = share_of_others(began, core_use([os.getpid()]))
        return _Measured(measurement, memory, yardsticks=(before, after), others=others)


class _Measured:
    def __init__(
        self,
        measurement: Measurement,
        memory: Mapping[str, float],
        *,
        yardsticks: tuple[Yardsticks, Yardsticks],
        others: float,
    ) -> None:
        if measurement.count <= 0 or measurement.seconds <= 0:
            raise BenchFailed("no unit of work was measured")
        self.turn = TurnReading(
            units=measurement.count,
            seconds=measurement.seconds,
            cpu_s=measurement.product_cpu_s,
            before=yardsticks[0],
            after=yardsticks[1],
            memory_mb=memory,
            others=others,
        )
        self.moments = measurement.moments
        self.window = TimeSpan(measurement.began_at, measurement.ended_at)


def _median_turn(turns: Sequence[TurnReading]) -> TurnReading | None:
    """The turn in the middle by CPU of all processes."""
    return sorted(turns, key=lambda turn: sum(turn.cpu_s.values()))[(len(turns) - 1) // 2] if turns else None


async def _counted_by_nats(rig: Rig) -> dict[str, float]:
    """Messages and bytes that NATS has handled so far."""
    url = f"http://{LOOPBACK}:{rig.processes['nats'].spec.port}/varz"
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30.0)) as session,
        session.get(url) as response,
    ):
        counted = await response.json()
    return {name: float(counted[name]) for name in COUNTED_BY_NATS}
