"""Sampling inside a process, without rights over others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gardenbus.bench.guard import sampler
from gardenbus.bench.harness.process_costs import (
    CoreUse,
    children,
    core_use,
    cost_of,
    cpu_seconds,
    memory_mb,
    share_of_others,
)

BURN = """
import time
def burn(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        sorted(range(200))
{more}
burn(0.3)
"""


def ran(folder: Path, source: str, *, module: str = "work") -> tuple[int, subprocess.CompletedProcess[str]]:
    """Run a file as a sampled process; returns its id, and how it ended."""
    file = folder / f"{module}.py"
    file.write_text(f"import os\nprint(os.getpid(), flush=True)\n{source}", encoding="utf-8")
    environ = {**os.environ, **sampler.started_by(folder / "samples", folder / "starter")}
    ended = subprocess.run([sys.executable, str(file)], env=environ, capture_output=True, text=True, check=False)
    return int(ended.stdout.split()[0]), ended


def test_the_function_that_took_the_time_is_named(tmp_path: Path) -> None:
    pid, ended = ran(tmp_path, BURN.format(more=""))
    assert ended.returncode == 0, ended.stderr
    found = sampler.read(tmp_path / "samples", pid)
    assert found is not None
    counted = [found.functions[number] for _, number in found.samples]
    assert counted.count(max(set(counted), key=counted.count)) > 5
    assert max(set(counted), key=counted.count).endswith(":burn")


def test_samples_have_times_of_the_clock_that_others_read_too(tmp_path: Path) -> None:
    pid, _ = ran(tmp_path, BURN.format(more="print(time.monotonic(), flush=True)"))
    found = sampler.read(tmp_path / "samples", pid)
    assert found is not None
    times = [at for at, _ in found.samples]
    assert times == sorted(times)


def test_a_program_that_a_sampled_process_starts_is_not_ended_by_the_timer(tmp_path: Path) -> None:
    """With a function between fork and exec, hooks of fork run in the child, and timers outlive an exec."""
    more = (
        "import subprocess, sys\n"
        "loop = 'import time\\nwhile time.process_time() < 0.3: pass'\n"
        "ended = subprocess.run([sys.executable, '-I', '-c', loop], preexec_fn=lambda: None)\n"
        "assert ended.returncode == 0, ended.returncode\n"
    )
    _, ended = ran(tmp_path, BURN.format(more=more))
    assert ended.returncode == 0, ended.stderr


def test_a_process_without_the_environment_has_no_timer_and_no_sampler() -> None:
    loaded = "'gardenbus.bench.guard.sampler' in sys.modules"
    source = f"import signal, sys\nprint(signal.getitimer(signal.ITIMER_VIRTUAL), {loaded})"
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["(0.0,", "0.0)", "False"]


def test_what_stands_on_the_path_stays_before_the_starter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/before")
    environ = sampler.started_by(tmp_path / "samples", tmp_path / "starter")
    assert environ == {"PYTHONPATH": f"/before{os.pathsep}{tmp_path / 'starter'}"}
    assert sampler.read(tmp_path / "samples", 1) is None


def test_cpu_of_another_process_and_its_children_is_counted() -> None:
    loop = "import time\\nwhile time.process_time() < 0.4: pass"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', '{loop}'])"
    script = f"{child}\nprint('done', flush=True)\nimport sys\nsys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        assert cpu_seconds(process.pid) >= 0.4
        assert cost_of(process.pid).wakeups > 0
        assert children(os.getpid()).count(process.pid) == 1
        assert cpu_seconds(os.getpid(), {process.pid}) <= cpu_seconds(os.getpid()) - 0.4
        assert memory_mb(process.pid) > 0
    finally:
        process.communicate()


def test_others_are_who_is_busy_beside_ones_own() -> None:
    began = CoreUse(at=10.0, busy_s=100.0, own_s=7.0)
    cores = os.cpu_count() or 1
    assert share_of_others(began, CoreUse(12.0, 100.0 + cores, 7.0 + cores)) == 0.0
    assert share_of_others(began, CoreUse(12.0, 100.0 + 2 * cores, 7.0 + cores)) == pytest.approx(0.5)
    own = core_use([os.getpid()])
    assert own.busy_s > 0
    assert own.own_s > 0


def test_a_process_that_is_gone_has_no_cost() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    for cost in (cpu_seconds, cost_of, memory_mb):
        with pytest.raises(ProcessLookupError):
            cost(process.pid)
