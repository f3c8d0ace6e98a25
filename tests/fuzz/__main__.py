"""Fuzz parsers, admission, what parts tenants, the bus, the command line: `python -m tests.fuzz --seed 3`.

The seed is printed; the same seed makes the same inputs. Exit code 1: something was found.
"""

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz.command_line import fuzz_command_line
from tests.fuzz.findings import MEGABYTE, MOST_GROWTH, Findings, growth
from tests.fuzz.process import Fuzzer, fuzz_process
from tests.fuzz.roles import fuzz_roles
from tests.fuzz.tenants import fuzz_tenants
from tests.fuzz.wire import fuzz_wire
from tests.support.orphans import end_children_with_this_process

TARGETS = ("process", "tenants", "wire", "cli", "roles")


def main() -> int:
    """Run what the arguments say."""
    arguments = arguments_of()
    end_children_with_this_process()
    seed: int = random.SystemRandom().randrange(1 << 30) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    if arguments.only is not None:
        print(Fuzzer(seed).sample(arguments.only))
        print("\n".join(Fuzzer(seed).run(range(arguments.only, arguments.only + 1)).lines()))
        return 0
    is_clean = True
    for target in arguments.targets:
        print(f"=== {target}", flush=True)
        findings = _run(target, arguments, seed)
        print("\n".join(findings.lines()), flush=True)
        grown = growth(findings.memory)
        print(f"memory grew by {grown / MEGABYTE:.1f} MB once it had settled")
        is_clean = is_clean and not findings.found and grown < MOST_GROWTH
    return 0 if is_clean else 1


def _run(target: str, arguments: argparse.Namespace, seed: int) -> Findings:
    if target == "process":
        return fuzz_process(arguments.inputs, seed, processes=arguments.processes, log=sys.stdout)
    if target == "tenants":
        return fuzz_tenants(arguments.inputs, seed)
    with tempfile.TemporaryDirectory(prefix="gardenbus-fuzz-") as directory:
        if target == "wire":
            wire = fuzz_wire(Path(directory), arguments.messages, seed, apiservers=arguments.apiservers, log=sys.stdout)
            return asyncio.run(wire)
        if target == "roles":
            return asyncio.run(
                fuzz_roles(Path(directory), arguments.seconds, seed, connections=arguments.connections, log=sys.stdout)
            )
        return fuzz_command_line(Path(directory), arguments.files, seed, log=sys.stdout)


def _target(name: str) -> str:
    """One of the targets; `choices` of none given mean something else in each version of Python."""
    if name not in TARGETS:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(TARGETS)}")
    return name


def arguments_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command's arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", type=_target, default=TARGETS, help=f"of {', '.join(TARGETS)}; all")
    parser.add_argument("--seed", type=int, help="repeat a run")
    parser.add_argument("--inputs", type=int, default=100_000, help="inputs in process")
    parser.add_argument("--messages", type=int, default=10_000, help="messages over the wire")
    parser.add_argument("--apiservers", type=int, default=1, help="replicas that take the messages over the wire")
    parser.add_argument("--files", type=int, default=500, help="files for the command line")
    parser.add_argument("--processes", type=int, default=1, help="processes that share the inputs")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long credentials of all sorts attack")
    parser.add_argument("--connections", type=int, default=50, help="connections of all those credentials together")
    parser.add_argument("--only", type=int, help="run this input in process alone, and print it")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
