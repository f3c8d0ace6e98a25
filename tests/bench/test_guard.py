"""Guard on real servers: yardsticks are read, what dies is a failure, planted losses are found by their names.

The plants compare readings without and with one on a machine at rest: nothing else may run beside them.
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from gardenbus.bench.comparison import Measurement
from gardenbus.bench.guard.assessment import MOST_OTHERS, Loss, Lost, MeasuredNothing, NotMeasurable, assess
from gardenbus.bench.guard.baseline import Baseline, measured
from gardenbus.bench.guard.loads import APPLY, UNITS, measure_loads
from gardenbus.bench.guard.readings import ScenarioReading, pooled
from gardenbus.bench.guard.redis_functions import CallLog
from gardenbus.bench.guard.run import GROUPS, TURNS, Group, measured_group
from gardenbus.bench.guard.turns import Turns
from gardenbus.bench.guard.yardsticks import yardsticks
from gardenbus.bench.harness.retries import AnnouncedTwice, BenchFailed
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.embedded.durability import Durability

ATTEMPTS = 3
PLANTS = Path(__file__).with_name("plants")
PLANTED = 0.25
"""Part of a process' CPU for one shoot that is planted."""


async def work_of(rig: Rig, *, count: int = 100) -> Measurement:
    """Some commands of Redis, as a measurement."""
    measurement = Measurement(count)
    measurement.began_at = time.monotonic()
    before = {name: cost.cpu_seconds for name, cost in rig.costs().items()}
    for _ in range(count):
        await rig.redis.command("PING")
    measurement.ended_at = time.monotonic()
    measurement.seconds = measurement.ended_at - measurement.began_at
    measurement.cpu_s = {name: cost.cpu_seconds - before[name] for name, cost in rig.costs().items()}
    return measurement


@pytest.mark.slow
async def test_yardsticks_are_read_and_what_dies_or_does_nothing_is_a_failure(tmp_path: Path) -> None:
    turns = Turns(tmp_path)
    with pytest.raises(BenchFailed, match="redis"):  # noqa: PT012 - what is killed ends the rig, too
        async with a_rig(Durability.PROCESS) as rig, yardsticks(rig) as runner:
            read = await runner.read()
            assert set(read) == {"python", "redis", "nats"}
            assert all(seconds > 0 for seconds in read.values())

            await turns.take("work", rig, runner, lambda: work_of(rig))
            (reading,) = turns.readings({"work": "ping"})
            assert set(reading.processes) == {"nats", "redis"}
            assert reading.memory("redis")
            assert 0 <= reading.others <= 1

            log = CallLog(rig)
            await log.begin()
            await rig.redis.command("FUNCTION", "LOAD", "REPLACE", FUNCTION)
            await rig.redis.wait("FCALL", "twice", 0)
            called = [call.name for call in await log.calls() if call.name not in ("CLIENT", "PING")]  # of connections
            assert called == ["twice"], "neither our own calls nor what a function calls itself"
            await log.end()

            with pytest.raises(BenchFailed, match="no unit"):
                await turns.take("work", rig, runner, lambda: work_of(rig, count=0))
            pid = rig.processes["redis"].pid
            assert pid is not None

            async def killed() -> Measurement:
                measurement = await work_of(rig)
                os.kill(pid, signal.SIGKILL)
                while not rig.processes["redis"].restarts:
                    await asyncio.sleep(0.01)
                return measurement

            await turns.take("work", rig, runner, killed)


FUNCTION = """#!lua name=twice
redis.register_function('twice', function() redis.call('SET', 'a', '1') return redis.call('GET', 'a') end)
"""


async def test_a_group_that_fails_is_one_failure_for_each_scenario() -> None:
    async def fail(group: Group, folder: Path) -> list[ScenarioReading]:
        raise BenchFailed("redis exited with 1")

    async def forget(group: Group, folder: Path) -> list[ScenarioReading]:
        return []

    for measure in (fail, forget):
        readings = await measured_group(Group({"a": "shoot", "b": "shoot"}, measure))
        assert [each.scenario for each in readings] == ["a", "b"]
        assert all(isinstance(assess(each, baseline_of()), MeasuredNothing) for each in readings)


def baseline_of(*readings: ScenarioReading) -> Baseline:
    return Baseline("", "", {}, {}, {}, {each.scenario: measured(each) for each in readings})


Reader = Callable[[], Awaitable[ScenarioReading]]


async def applying_measured() -> ScenarioReading:
    async def measure(group: Group, folder: Path) -> list[ScenarioReading]:
        turns = Turns(folder / "samples")
        await measure_loads(turns, TURNS, [APPLY])
        return turns.readings(group.units)

    (reading,) = await measured_group(Group({APPLY: UNITS[APPLY]}, measure))
    assert not reading.failure, reading.failure
    return reading


async def at_rest_measured() -> ScenarioReading:
    (reading,) = await measured_group(GROUPS["rest"])
    assert not reading.failure, reading.failure
    return reading


async def found(monkeypatch: pytest.MonkeyPatch, plant: str, process: str, read: Reader) -> Loss:
    """What a process has lost with a plant of a quarter of its CPU, beside readings without it.

    Readings of a few seconds vary by some percent; so what is not found yet is measured again, and all are compared.
    """
    good, bad, result = await read(), None, None
    for _ in range(ATTEMPTS):
        with monkeypatch.context() as patched:
            patched.setenv("PYTHONPATH", str(PLANTS / plant))
            patched.setenv("PLANTED_SECONDS", f"{PLANTED * good.cpu(process).seconds:.9f}")
            again = await read()
        bad = pooled(bad, again) if bad else again
        result = assess(bad, baseline_of(good))
        losses = result.losses if isinstance(result, Lost) else ()
        for loss in losses:
            if loss.process == process and loss.functions:
                return loss
        good = pooled(good, await read())
    assert bad is not None
    if max(good.others, bad.others) > MOST_OTHERS or isinstance(result, NotMeasurable):
        pytest.skip(f"not measurable here: others took {good.others:.0%} and {bad.others:.0%} of the cores; {result}")
    raise AssertionError(f"{result}: {process} took {good.cpu(process)}, and {bad.cpu(process)} with the plant")


@pytest.mark.at_rest
@pytest.mark.timeout(3000)
async def test_a_loop_in_the_apiserver_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = await found(monkeypatch, "loop_in_the_apiserver", "apiserver", applying_measured)
    assert "loop_for_each_manifest" in loss.functions[0].name


@pytest.mark.at_rest
@pytest.mark.timeout(3000)
async def test_a_loop_in_a_function_of_redis_is_found_by_the_functions_name(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = await found(monkeypatch, "loop_in_redis", "redis", applying_measured)
    assert loss.functions[0].name == "put_many"


@pytest.mark.at_rest
@pytest.mark.timeout(1500)
async def test_a_poll_of_ten_milliseconds_is_found_by_its_service(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = await found(monkeypatch, "poll_in_an_idle_service", "autoscaler", at_rest_measured)
    assert any("poll_every_10_ms" in each.name for each in loss.functions[:3]), loss.functions


@pytest.mark.parametrize("times", [1, 2])
async def test_what_was_announced_twice_is_measured_once_more_and_then_a_failure(times: int) -> None:
    measured = 0

    async def measure(_group: Group, _folder: Path) -> list[ScenarioReading]:
        nonlocal measured
        measured += 1
        if measured <= times:
            raise AnnouncedTwice("100 messages too many on BINDINGS")
        return [ScenarioReading(scenario="a")]

    (reading,) = await measured_group(Group({"a": "shoot"}, measure))
    assert reading.failure == ("" if times == 1 else "100 messages too many on BINDINGS")
    assert measured == 2
