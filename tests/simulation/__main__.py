"""Runs schedules: `python -m tests.simulation --schedules 10000 --seed 7`.

`--trace` prints every choice point, `--mutant` takes a precaution out of the product, `--mutants` does that with each
in turn until it is found (`often`: those that a test takes out, `all`: the rare ones too), `--check` runs each schedule
twice and compares the traces, `--strict` judges what is not promised after restores too. A line a minute says which
seeds are done: a run that was ended goes on with the next as its `--seed`. Exit code 1 where a schedule failed, or a
mutant was not found.
"""

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

from tests.simulation.mutants import MUTANTS, RARE, Mutant
from tests.simulation.quiet import be_quiet
from tests.simulation.schedule import SCHEDULES, Failure, Outcome, run_history

ALL = MUTANTS | RARE
CHUNK = 64
"""Histories that one process runs."""

REPORTED_EVERY_SECONDS = 60.0
ANOTHER = "the second run is another one"


class RunOptions(NamedTuple):
    """How histories shall be run."""

    is_traced: bool = False
    checks: bool = False
    is_strict: bool = False


class Sum(NamedTuple):
    """What some histories came to, and what is to be said of them."""

    histories: int = 0
    schedules: int = 0
    steps: int = 0
    failed: int = 0
    lines: tuple[str, ...] = ()

    def plus(self, other: "Sum") -> "Sum":
        """Both together, but for what is to be said: that of the other."""
        return Sum(
            self.histories + other.histories,
            self.schedules + other.schedules,
            self.steps + other.steps,
            self.failed + other.failed,
            other.lines,
        )


def main() -> int:
    """Run what the command line says."""
    arguments = _arguments()
    be_quiet()
    if arguments.mutants:
        return find_mutants(ALL if arguments.mutants == "all" else MUTANTS, arguments.seed, arguments.schedules)
    assessed = RunOptions(arguments.trace or arguments.check, arguments.check, arguments.strict)
    seeds = range(arguments.seed, arguments.seed + -(-arguments.schedules // SCHEDULES))
    with ALL[arguments.mutant].applied() if arguments.mutant else nullcontext():
        return run_all(seeds, arguments.seconds, arguments.processes, assessed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000, help=f"at least so many, {SCHEDULES} for each seed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--processes", type=int, default=0, help="0: one for each core")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--strict", action="store_true", help="judge what is not promised after restores, too")
    parser.add_argument("--mutant", choices=ALL)
    parser.add_argument("--mutants", choices=("often", "all"))
    return parser.parse_args()


def run_all(seeds: range, seconds: float, processes: int, assessed: RunOptions) -> int:
    """Run histories in some processes; returns the exit code.

    Each process ends after a chunk of them: what is left of a history are circles of references, and a collector takes
    a fifth of the time to find those.
    """
    began = reported = time.monotonic()
    total = Sum()
    chunks = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    context = get_context("fork")
    run_history(seeds[0])  # what all of them need is made once
    gc.freeze()
    with context.Pool(processes or os.cpu_count(), maxtasksperchild=1) as pool:
        for part in pool.imap(partial(_run_chunk, assessed), chunks):
            print(*part.lines, sep="\n", end="\n" if part.lines else "", flush=True)
            total = total.plus(part)
            if time.monotonic() - reported > REPORTED_EVERY_SECONDS:
                reported = time.monotonic()
                print(_summary(total, began, seeds), flush=True)
            if time.monotonic() - began > seconds:
                pool.terminate()
                break
    print(_summary(total, began, seeds), flush=True)
    return 1 if total.failed else 0


def _run_chunk(assessed: RunOptions, seeds: range) -> Sum:
    total, lines_of_all = Sum(), list[str]()
    for seed in seeds:
        outcome = run_history(seed, is_traced=assessed.is_traced, is_strict=assessed.is_strict)
        lines = _lines(outcome, seed, assessed)
        is_failed = outcome.failure is not None or any(line.endswith(ANOTHER) for line in lines)
        total = total.plus(Sum(1, outcome.schedules, outcome.steps, int(is_failed)))
        lines_of_all += lines
    return total._replace(lines=tuple(lines_of_all))


def find(mutant: Mutant, seeds: Iterable[int]) -> Failure | None:
    """The first failure of a history with a mutant that has none without it."""
    gc.enable()
    for seed in seeds:
        with mutant.applied():
            failure = run_history(seed, restores=mutant.restores, is_strict=True).failure
        if failure and run_history(seed, restores=mutant.restores, is_strict=True).failure is None:
            return failure
    return None


def find_mutants(mutants: Mapping[str, Mutant], first: int, schedules: int) -> int:
    """Run schedules with each mutant until one fails; returns the exit code."""
    missed = 0
    for name, mutant in mutants.items():
        began = time.process_time()
        found = find(mutant, range(first, first + -(-schedules // SCHEDULES)))
        missed += found is None
        took = f"{time.process_time() - began:.1f} s"
        result = (
            f"schedule {(found.seed - first) * SCHEDULES + found.schedule} ({took}): {found.reason}"
            if found
            else f"not found ({took})"
        )
        print(f"{name}: {result}", flush=True)
    return 1 if missed else 0


def _lines(outcome: Outcome, seed: int, assessed: RunOptions) -> tuple[str, ...]:
    """What is to be said of a history."""
    lines: tuple[str, ...] = ()
    if assessed.checks:
        again = run_history(seed, is_traced=True, is_strict=assessed.is_strict)
        lines = () if again.trace == outcome.trace else (f"seed {seed}: {ANOTHER}",)
    elif assessed.is_traced:
        lines = outcome.trace
    if failure := outcome.failure:
        faults = ", ".join(failure.faults) or "none but the network's"
        lines += (f"seed {seed}, choice point {failure.step}: {failure.reason}", f"  faults: {faults}")
    return lines


def _summary(total: Sum, began: float, seeds: range) -> str:
    rate = total.schedules / max(time.monotonic() - began, 0.001)
    counts = f"{total.schedules} schedules, {total.steps} choice points, {total.failed} failed, {rate:.0f} schedules/s"
    return f"{counts}; seeds {seeds.start} to {seeds.start + total.histories - 1}"


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is a part of a schedule
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
