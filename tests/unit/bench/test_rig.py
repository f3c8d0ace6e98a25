"""Costs of the processes of a rig."""

import subprocess
import sys
import time
from pathlib import Path

from gardenbus.bench.comparison import MEASURER, MeasuredPair, Measurement, cpu_ratio
from gardenbus.bench.harness.rig import Rig
from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.embedded.process_specs import Addresses

BURN = "import time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\ninput()"


async def test_the_measurers_cost_is_its_own_and_not_that_of_its_processes(tmp_path: Path) -> None:
    rig = Rig(LandscapeDirectory(tmp_path), Addresses("nats://127.0.0.1:1", "redis://127.0.0.1:1/0", "garden"))
    before, began = rig.costs()[MEASURER].cpu_seconds, time.process_time()
    with subprocess.Popen([sys.executable, "-c", BURN], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        took = rig.costs()[MEASURER].cpu_seconds - before
        own = time.process_time() - began
        process.communicate(b"\n")
    assert took < own + 0.25
    assert rig.costs()[MEASURER].rss_mb > 1


def a_measurement(**cpu_s: float) -> Measurement:
    measurement = Measurement(1)
    measurement.cpu_s = cpu_s
    return measurement


def test_what_the_measurer_takes_moves_no_ratio() -> None:
    pair = MeasuredPair(a_measurement(apiserver=2.0, bench=9.0), a_measurement(pipe=1.0, bench=8.0))
    assert cpu_ratio([pair]) == 0.5
