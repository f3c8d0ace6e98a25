"""Runs schedules: `python -m tests.simulation --schedules 10000 --seed 7`.

`--trace` prints every choice point, `--mutant` takes a precaution out of the product, `--mutants` does that with each
in turn until it is found (`often`: those that a test takes out, `all`: the rare ones too), `--check` runs each schedule
twice and compares the traces, `--strict` judges what is not promised after restores too. Exit code 1 where a schedule
failed, or a mutant was not found.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext

from tests.simulation.mutants import MUTANTS, RARE, Mutant
from tests.simulation.quiet import be_quiet
from tests.simulation.schedule import Failure, Outcome, run_schedule

ALL = MUTANTS | RARE
REPORTED_EVERY = 10_000


def main() -> int:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--trace", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--strict", action="store_true", help="judge what is not promised after restores, too")
    parser.add_argument("--mutant", choices=ALL)
    parser.add_argument("--mutants", choices=("often", "all"))
    arguments = parser.parse_args()
    be_quiet()
    if arguments.mutants:
        return find_mutants(ALL if arguments.mutants == "all" else MUTANTS, arguments.seed, arguments.schedules)
    with ALL[arguments.mutant].applied() if arguments.mutant else nullcontext():
        seeds = range(arguments.seed, arguments.seed + arguments.schedules)
        is_traced, checks, is_strict = arguments.trace or arguments.check, arguments.check, arguments.strict
        return run_all(seeds, arguments.seconds, is_traced=is_traced, checks=checks, is_strict=is_strict)


def run_all(seeds: Iterable[int], seconds: float, *, is_traced: bool, checks: bool, is_strict: bool) -> int:
    """Run schedules; returns the exit code."""
    began = time.monotonic()
    number = steps = failed = 0
    for number, seed in enumerate(seeds, 1):
        outcome = run_schedule(seed, is_traced=is_traced, is_strict=is_strict)
        steps += outcome.steps
        failed += _report(outcome, seed, is_traced=is_traced, checks=checks, is_strict=is_strict)
        if number % REPORTED_EVERY == 0:
            print(_summary(number, steps, failed, began), flush=True)
        if time.monotonic() - began > seconds:
            break
    print(_summary(number, steps, failed, began), flush=True)
    return 1 if failed else 0


def find(mutant: Mutant, seeds: Iterable[int]) -> Failure | None:
    """The first failure of schedules with a mutant (to be called while it is applied)."""
    failures = (run_schedule(seed, restores=mutant.restores, is_strict=True).failure for seed in seeds)
    return next((failure for failure in failures if failure), None)


def find_mutants(mutants: Mapping[str, Mutant], first: int, schedules: int) -> int:
    """Run schedules with each mutant until one fails; returns the exit code."""
    missed = 0
    for name, mutant in mutants.items():
        began = time.process_time()
        with mutant.applied():
            found = find(mutant, range(first, first + schedules))
        missed += found is None
        took = f"{time.process_time() - began:.1f} s"
        result = f"schedule {found.seed - first + 1} ({took}): {found.reason}" if found else f"not found ({took})"
        print(f"{name}: {result}", flush=True)
    return 1 if missed else 0


def _report(outcome: Outcome, seed: int, *, is_traced: bool, checks: bool, is_strict: bool) -> bool:
    failure = outcome.failure
    if checks:
        again = run_schedule(seed, is_traced=True, is_strict=is_strict)
        if again.trace != outcome.trace:
            print(f"seed {seed}: the second run is another one", flush=True)
            return True
    elif is_traced:
        print("\n".join(outcome.trace))
    if failure is None:
        return False
    faults = ", ".join(failure.faults) or "none but the network's"
    print(f"seed {failure.seed}, choice point {failure.step}: {failure.reason}\n  faults: {faults}", flush=True)
    return True


def _summary(number: int, steps: int, failed: int, began: float) -> str:
    rate = number / max(time.monotonic() - began, 0.001)
    return f"{number} schedules, {steps} choice points, {failed} failed, {rate:.0f} schedules/s"


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is a part of a schedule
        command = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, command, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
