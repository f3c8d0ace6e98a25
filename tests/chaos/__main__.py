"""`python -m tests.chaos`: faults for ten minutes, or as long as the arguments say."""

import argparse
import asyncio
import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.chaos.harness import Plan, Run
from tests.chaos.mounts import enter_own_namespace
from tests.chaos.plan import KINDS, MOST_IN_A_ROUND
from tests.chaos.report import summary, table
from tests.support.orphans import end_children_with_this_process

MEMORY = Path("/dev/shm")
ROOM_NEEDED = 2 * 1024**3


def main() -> None:
    """Run, print, write; ends with 1 when an invariant did not hold."""
    arguments = _arguments()
    end_children_with_this_process()
    enter_own_namespace()
    plan = Plan(
        seed=arguments.seed,
        seconds=3600 * arguments.hours or 60 * arguments.minutes,
        faults=arguments.faults,
        kinds=arguments.only,
        convergence_seconds=arguments.settle,
        together=arguments.together,
        failures=arguments.failures,
        is_cluster=arguments.cluster,
    )
    command = " ".join(
        ["python -m tests.chaos", *sys.argv[1:], *([] if "--seed" in sys.argv else [f"--seed {plan.seed}"])]
    )
    _report(f"seed {plan.seed}: {command}")
    directory = Path(tempfile.mkdtemp(prefix="gardenbus-chaos-", dir=arguments.directory))
    run = Run(plan, directory, _report)
    written: Path | None = arguments.json

    def write() -> None:
        if written is not None:
            written.write_text(json.dumps(summary(run.facts(command), run.rounds), indent=1) + "\n")

    try:
        asyncio.run(run.run(write))
    except KeyboardInterrupt:
        _report("interrupted")
    write()
    result = summary(run.facts(command), run.rounds)
    print(table(result))
    if result["failures"]:
        _report(f"seed {plan.seed}; logs and files are in {directory}")
        raise SystemExit(1)
    shutil.rmtree(directory, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--hours", type=float, default=0.0)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000), help="repeats an order of faults")
    parser.add_argument("--faults", type=int, default=sys.maxsize, help="end after so many")
    parser.add_argument("--only", type=_kinds, default=tuple(KINDS), help=f"kinds of faults: {','.join(KINDS)}")
    parser.add_argument("--settle", type=float, default=90.0, help="seconds in which everything has to settle")
    parser.add_argument("--together", type=int, default=MOST_IN_A_ROUND, help="most faults of a round")
    parser.add_argument("--failures", type=int, default=1, help="end after so many rounds that failed")
    parser.add_argument("--cluster", action="store_true", help="three servers of NATS, three of Redis with Sentinels")
    parser.add_argument("--json", type=Path, help="write the result into this file")
    parser.add_argument("--directory", type=Path, default=_fastest(), help="where the landscape has its files")
    return parser.parse_args()


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(text.split(","))
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise argparse.ArgumentTypeError(f"unknown: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    return kinds


def _fastest() -> Path:
    is_roomy = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM_NEEDED
    return MEMORY if is_roomy else Path(tempfile.gettempdir())


def _report(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
