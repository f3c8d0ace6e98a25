"""A loss against the file is one only where the file's commit takes less on the same machine."""

import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gardenbus.bench.guard.assessment import Held, Lost, assess
from gardenbus.bench.guard.readings import ScenarioReading
from gardenbus.bench.guard.reference import ReferenceCommit, decode, encode
from gardenbus.bench.guard.run import ScenarioOutcome, guarded
from gardenbus.bench.harness.retries import BenchFailed
from tests.unit.bench.guard.readings import CPU_US, a_reading, a_turn, the_baseline


def taking(*factors: float, process: str = "nats") -> ScenarioReading:
    """A reading in whose turns a process takes so much more; in each as much where only one factor is given."""
    found = factors if len(factors) > 1 else factors * 3
    return a_reading(*(a_turn({**CPU_US, process: factor * CPU_US[process]}) for factor in found))


class Machine:
    """Measures what it is told to, in turn."""

    def __init__(
        self, *readings: ScenarioReading, reference: ScenarioReading | Exception | Sequence[ScenarioReading]
    ) -> None:
        self._readings: Iterator[ScenarioReading] = iter(readings)
        self._reference = reference
        self._times = 0
        self.measured = list[str]()

    async def measure(self, names: Sequence[str]) -> list[ScenarioReading]:
        self.measured += names
        return [next(self._readings)]

    async def measure_reference(self, name: str) -> list[ScenarioReading]:
        self.measured.append(f"{name} of the reference")
        if isinstance(self._reference, Exception):
            raise self._reference
        if isinstance(self._reference, ScenarioReading):
            return [self._reference]
        self._times += 1
        return [self._reference[self._times - 1]]

    async def outcome(self) -> ScenarioOutcome:
        (outcome,) = await guarded(["loads"], the_baseline(), self.measure_reference, measure=self.measure)
        return outcome


async def test_what_holds_is_measured_once() -> None:
    machine = Machine(taking(1.0), reference=AssertionError("nothing is lost"))
    assert (await machine.outcome()).result == Held("intake")
    assert machine.measured == ["loads"]


async def test_a_machine_on_which_a_server_takes_more_of_the_same_commit_has_lost_nothing() -> None:
    machine = Machine(taking(1.3), reference=taking(1.28))
    outcome = await machine.outcome()
    assert outcome.result == Held("intake")
    assert machine.measured == ["loads", "loads of the reference"]


async def test_a_process_that_the_commit_had_not_yet_is_compared_with_the_file() -> None:
    without = {name: used for name, used in CPU_US.items() if name != "apiserver"}
    machine = Machine(taking(1.3), reference=a_reading(*(a_turn({**without, "nats": 1.28 * CPU_US["nats"]}),) * 3))
    assert (await machine.outcome()).result == Held("intake")


async def test_a_loss_is_what_is_worse_than_the_file_and_the_commit_both_times() -> None:
    machine = Machine(taking(1.6), taking(1.65), reference=taking(1.3))
    outcome = await machine.outcome()
    assert isinstance(outcome.result, Lost)
    (loss,) = outcome.result.losses
    assert loss.process == "nats"
    assert loss.before == pytest.approx(1.3 * CPU_US["nats"], rel=1e-3), "the last good figure is of this machine"
    assert machine.measured == ["loads", "loads of the reference", "loads", "loads of the reference"]


async def test_a_commit_that_takes_as_much_when_it_is_measured_again_shows_no_loss() -> None:
    machine = Machine(taking(1.6), taking(1.6), reference=[taking(1.0), taking(1.7)])
    assert (await machine.outcome()).result == Held("intake")


async def test_turns_that_were_disturbed_are_no_loss_where_one_took_no_more_than_before() -> None:
    machine = Machine(taking(1.3, 1.4, 1.02), taking(1.3, 1.5, 1.4), reference=taking(1.0, 1.05, 1.02))
    assert (await machine.outcome()).result == Held("intake")


async def test_a_loss_in_each_turn_is_found_though_turns_are_disturbed() -> None:
    machine = Machine(taking(1.25, 1.6, 1.5), taking(1.5, 1.3, 1.4), reference=taking(1.0, 1.3, 1.02))
    assert isinstance((await machine.outcome()).result, Lost)


async def test_a_loss_that_only_one_look_has_is_none() -> None:
    assert (await Machine(taking(1.6), taking(1.0), reference=taking(1.0)).outcome()).result == Held("intake")


@pytest.mark.parametrize("again", [1.6, 1.0])
async def test_where_the_commit_cannot_be_measured_the_file_counts(again: float) -> None:
    machine = Machine(taking(1.6), taking(again), reference=BenchFailed("not a commit"))
    assert isinstance((await machine.outcome()).result, Lost) == (again > 1)


READINGS = [a_reading(functions={"apiserver": {"admit": 1.0}})]
MAKEFILE = """setup:
\t@mkdir -p .venv/bin && cp fake-python .venv/bin/python && echo "$${PYTHONPATH:-none}" > python-path
"""
FAKE_PYTHON = """#!/bin/sh
[ "$1 $2" = "-m gardenbus.bench.guard" ] && [ "$3 $4 $5" = "--only loads --readings" ] || { echo "got $*"; exit 2; }
[ "$(cat python-path)" = none ] || { echo "it has a PYTHONPATH"; exit 2; }
cp readings "$6"
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in {"Makefile": MAKEFILE, "fake-python": FAKE_PYTHON, "readings": encode(READINGS).decode()}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "fake-python").chmod(0o755)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "Figures")
    (tmp_path / "readings").write_text("of a later day")
    return tmp_path


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ("git", *arguments),
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


async def test_the_commit_is_measured_as_it_was(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/of/the/checkout/at/hand")
    reference = ReferenceCommit(git(repository, "rev-parse", "HEAD"), repository)
    try:
        assert encode(await reference.measure("loads")) == encode(READINGS)
        with pytest.raises(BenchFailed, match="exited with 2: got"):
            await reference.measure("rest")
    finally:
        reference.close()


async def test_a_commit_that_is_not_there_is_named(repository: Path) -> None:
    with pytest.raises(BenchFailed, match="0123456789abcdef"):
        await ReferenceCommit("0123456789abcdef+", repository).measure("loads")


def test_readings_read_back() -> None:
    (reading,) = decode(encode(READINGS))
    assert assess(reading, the_baseline()) == Held("intake")
    assert encode([reading]) == encode(READINGS)
