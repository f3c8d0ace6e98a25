"""Guard on real servers: yardsticks are read, what dies is a failure, planted losses are found by their names.

The plants are long, and compare within one machine and day: figures of a run without the plant, then a run with it.
"""

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from gardenbus.bench.comparison import Measurement
from gardenbus.bench.guard.assessment import Lost, MeasuredNothing, NotMeasurable, assess
from gardenbus.bench.guard.baseline import Baseline, measured
from gardenbus.bench.guard.readings import ScenarioReading
from gardenbus.bench.guard.redis_functions import CallLog
from gardenbus.bench.guard.run import Group, measured_group
from gardenbus.bench.guard.run import measured as measured_groups
from gardenbus.bench.guard.turns import Turns
from gardenbus.bench.guard.yardsticks import yardsticks
from gardenbus.bench.harness.process_costs import cpu_seconds
from gardenbus.bench.harness.retries import BenchFailed
from gardenbus.bench.harness.rig import Rig, a_rig
from gardenbus.embedded.durability import Durability

PLANTS = Path(__file__).with_name("plants")
PLANTED = 0.25
"""Part of a process' CPU for one shoot that is planted."""
TRIAL_ROUNDS = 200_000


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
            called = [call.name for call in await log.calls() if call.name != "CLIENT"]  # a new connection names itself
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


async def with_plant(
    monkeypatch: pytest.MonkeyPatch, plant: str, group: str, *, rounds: int = 0
) -> Mapping[str, ScenarioReading]:
    with monkeypatch.context() as patched:
        patched.setenv("PYTHONPATH", str(PLANTS / plant))
        patched.setenv("PLANTED_ROUNDS", str(rounds))
        readings = {each.scenario: each for each in await measured_groups([group])}
    assert not [each.failure for each in readings.values() if each.failure]
    return readings


def found(result: object) -> Lost:
    if isinstance(result, NotMeasurable):
        pytest.skip(f"not measurable here: the yardstick varied by {result.varied:.0%} ({result.yardstick})")
    assert isinstance(result, Lost), result
    return result


def round_of_python_s() -> float:
    began = time.thread_time()
    sum(number % 7 for number in range(TRIAL_ROUNDS))
    return (time.thread_time() - began) / TRIAL_ROUNDS


async def round_of_lua_s() -> float:
    async with a_rig(Durability.PROCESS) as rig:
        pid = rig.processes["redis"].pid
        assert pid is not None
        before = cpu_seconds(pid)
        script = (
            "local planted = 0 for number = 1, tonumber(ARGV[1]) do planted = planted + number % 7 end return planted"
        )
        await rig.redis.command("EVAL", script, 0, 20 * TRIAL_ROUNDS)
        return (cpu_seconds(pid) - before) / TRIAL_ROUNDS / 20


@pytest.mark.long
@pytest.mark.timeout(3000)
async def test_a_loop_in_the_apiserver_is_found_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    good = {each.scenario: each for each in await measured_groups(["loads"])}
    rounds = int(PLANTED * good["intake"].cpu("apiserver").seconds / round_of_python_s())
    bad = await with_plant(monkeypatch, "loop_in_the_apiserver", "loads", rounds=rounds)
    result = found(assess(bad["intake"], baseline_of(good["intake"])))
    loss = next(loss for loss in result.losses if loss.measure == "cpu")
    assert loss.process == "apiserver"
    assert "loop_for_each_manifest" in loss.functions[0].name


@pytest.mark.long
@pytest.mark.timeout(3000)
async def test_a_loop_in_a_function_of_redis_is_found_by_the_functions_name(monkeypatch: pytest.MonkeyPatch) -> None:
    good = {each.scenario: each for each in await measured_groups(["loads"])}
    rounds = int(PLANTED * good["intake"].cpu("redis").seconds / await round_of_lua_s())
    bad = await with_plant(monkeypatch, "loop_in_redis", "loads", rounds=rounds)
    result = found(assess(bad["intake"], baseline_of(good["intake"])))
    loss = next(loss for loss in result.losses if loss.measure == "cpu")
    assert loss.process == "redis"
    assert loss.functions[0].name == "put_many"


@pytest.mark.long
@pytest.mark.timeout(1500)
async def test_a_poll_of_ten_milliseconds_is_found_by_its_service(monkeypatch: pytest.MonkeyPatch) -> None:
    good = {each.scenario: each for each in await measured_groups(["rest"])}
    bad = await with_plant(monkeypatch, "poll_in_an_idle_service", "rest")
    result = found(assess(bad["at rest"], baseline_of(good["at rest"])))
    losses = [loss for loss in result.losses if loss.process == "autoscaler"]
    assert losses, result
    assert any("poll_every_10_ms" in each.name for each in losses[0].functions[:3]), losses[0].functions
