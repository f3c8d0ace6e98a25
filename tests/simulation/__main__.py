"""Runs schedules: `python -m tests.simulation --schedules 10000 --seed 7`."""

import argparse
import sys
import time

from tests.simulation.quiet import be_quiet
from tests.simulation.schedule import run_schedule


def main() -> int:
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trace", action="store_true")
    arguments = parser.parse_args()
    be_quiet()
    began, steps, failed = time.monotonic(), 0, 0
    for number in range(arguments.schedules):
        outcome = run_schedule(arguments.seed + number, is_traced=arguments.trace)
        steps += outcome.steps
        if arguments.trace:
            print("\n".join(outcome.trace))
        if outcome.failure:
            failed += 1
            print(f"  {', '.join(outcome.failure.faults)}")
            print(f"seed {outcome.failure.seed} at step {outcome.failure.step}: {outcome.failure.reason}")
    took = time.monotonic() - began
    print(f"{arguments.schedules} schedules, {steps} choice points, {failed} failed, {arguments.schedules / took:.0f}/s")
    return 1 if failed else 0


sys.exit(main())
