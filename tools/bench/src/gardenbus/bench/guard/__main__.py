"""Command of the guard.

    python -m gardenbus.bench.guard                           measure and compare with the figures
    python -m gardenbus.bench.guard --accept                  measure, write figures and docs/performance.md
    python -m gardenbus.bench.guard --accept --because WHY    the same where figures rise: what was bought
    python -m gardenbus.bench.guard --page                    write docs/performance.md from the figures
    python -m gardenbus.bench.guard --readings FILE           measure, and write what was read

Exit codes: 0 all held; 1 a loss, or a scenario that measured nothing; 2 a wrong option; 3 nothing is worse, but
something was not measurable here.
"""

import argparse
import contextlib
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import uvloop

from gardenbus.bench.guard import report
from gardenbus.bench.guard.assessment import Lost, MeasuredNothing, NotMeasurable, yardsticks_us
from gardenbus.bench.guard.baseline import Baseline, FigureRejected, accepted, decode, encode
from gardenbus.bench.guard.baseline import measured as baseline_of
from gardenbus.bench.guard.page import with_tables
from gardenbus.bench.guard.readings import ScenarioReading
from gardenbus.bench.guard.reference import ReferenceCommit
from gardenbus.bench.guard.reference import encode as encode_readings
from gardenbus.bench.guard.run import GROUPS, ScenarioOutcome, guarded, measured
from gardenbus.bench.stats import machine
from gardenbus.cli.client.api import quiet_logs

BASELINE = Path(__file__).with_name("baseline.json")
PAGE = Path("docs/performance.md")

HELD, LOST, USAGE, NOT_MEASURABLE = 0, 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="gardenbus.bench.guard", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--accept", action="store_true", help="write the figures and the page from what is measured")
    parser.add_argument("--because", default="", help="what was bought for figures that rise", metavar="REASON")
    parser.add_argument("--page", action="store_true", help="write the page from the figures as they are")
    parser.add_argument("--only", action="append", choices=list(GROUPS), help="a group of scenarios (default: all)")
    parser.add_argument("--baseline", type=Path, default=BASELINE, help="file of the figures")
    parser.add_argument("--readings", type=Path, help="write readings to a file, and compare nothing", metavar="FILE")
    read = parser.parse_args(arguments)
    if read.because and not read.accept:
        parser.error("--because goes with --accept: it is the reason of a figure that rises")
    if read.accept and read.only:
        parser.error("--accept measures everything, so that all is of one commit: leave --only out")
    quiet_logs()
    try:
        baseline = decode(read.baseline.read_bytes()) if read.baseline.exists() else None
    except msgspec.MsgspecError as error:
        parser.error(f"{read.baseline}: {error}")
    names = read.only or list(GROUPS)
    if read.page:
        return _write_page(baseline)
    if read.readings:
        read.readings.write_bytes(encode_readings(uvloop.run(measured(names))))
        return HELD
    if read.accept:
        return _accept(uvloop.run(measured(names)), baseline, because=read.because, file=read.baseline)
    if baseline is None:
        parser.error(f"{read.baseline} is not there: --accept makes it")
    reference = ReferenceCommit(baseline.commit, Path.cwd())
    with contextlib.closing(reference):
        return _report(uvloop.run(guarded(names, baseline, reference.measure)), baseline)


def _report(outcomes: Sequence[ScenarioOutcome], baseline: Baseline) -> int:
    results = [outcome.result for outcome in outcomes]
    for outcome in outcomes:
        sys.stdout.write(report.result_text(outcome.result, outcome.reading, outcome.baseline) + "\n")
    sys.stdout.write(report.summary(results) + f"; figures of {baseline.commit[:12]}, {baseline.measured_at}\n")
    if any(isinstance(result, Lost | MeasuredNothing) for result in results):
        return LOST
    return NOT_MEASURABLE if any(isinstance(result, NotMeasurable) for result in results) else HELD


def _accept(readings: Sequence[ScenarioReading], before: Baseline | None, *, because: str, file: Path) -> int:
    """Write figures and page, unless something measured nothing or rises without a reason."""
    if failed := [each for each in readings if each.failure]:
        for each in failed:
            sys.stderr.write(f"{each.scenario}: MEASURED NOTHING: {each.failure}\n")
        return LOST
    now = Baseline(
        commit=_commit(),
        measured_at=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        machine=machine(),
        yardsticks_us=yardsticks_us(readings),
        yardsticks_varied={
            each.scenario: {name: round(each.variation(name), 2) for name in each.turns[0].before} for each in readings
        },
        scenarios={each.scenario: baseline_of(each) for each in readings},
    )
    try:
        kept = accepted(before, now, because)
    except FigureRejected as error:
        sys.stderr.write(f"{error}\n")
        return LOST
    file.write_bytes(encode(kept))
    sys.stdout.write(f"{file} written, measured at {kept.commit[:12]}\n")
    return _write_page(kept) if file == BASELINE else HELD


def _write_page(baseline: Baseline | None) -> int:
    if baseline is None or not PAGE.exists():
        sys.stderr.write(f"{PAGE} is not here, or there are no figures: run it from the repository's root\n")
        return USAGE
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), baseline), encoding="utf-8")
    sys.stdout.write(f"{PAGE} written\n")
    return HELD


def _commit() -> str:
    """The commit that is measured; with `+` where the tree has changes beside it."""
    commit = _git("rev-parse", "HEAD")
    return f"{commit}+" if _git("status", "--porcelain", "--untracked-files=no") else commit


def _git(*arguments: str) -> str:
    """Output of a git command, "" where there is no repository."""
    ended = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return ended.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
