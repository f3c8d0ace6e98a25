"""Report of a run: faults by kind, violations, times to settle. Pure; as JSON and as a Markdown table."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.chaos.invariants import Violation
from tests.chaos.plan import Fault

COLUMNS = ("lost", "doubled", "overfilled", "torn down", "other")


class RoundRecord(NamedTuple):
    """One round. `settled_seconds`: from the end of its last fault until every invariant held; None if never."""

    number: int
    faults: Sequence[Fault]
    settled_seconds: float | None
    violations: Sequence[Violation] = ()
    skipped: Sequence[str] = ()
    left_behind: int = 0
    """Messages that NATS has kept although they were taken and acknowledged."""


class RunFacts(NamedTuple):
    """What is known of a run besides its rounds."""

    seed: int
    seconds: float
    acknowledged: int
    requests: int
    watched: int
    """Events of watches of the Kubernetes API."""
    memory_mb: dict[str, Sequence[float]]
    """Resident memory by service: when the run began, at its end, and at most."""

    command: str = ""


def summary(facts: RunFacts, rounds: Sequence[RoundRecord]) -> dict[str, Any]:
    """The whole run, for a JSON file."""
    kinds = Counter(fault.kind for each in rounds for fault in each.faults)
    settled = [each.settled_seconds for each in rounds if each.settled_seconds is not None]
    violations = [violation for each in rounds for violation in each.violations]
    counts = Counter(_column(each.kind) for each in violations)
    return {
        "command": facts.command,
        "seed": facts.seed,
        "seconds": round(facts.seconds, 1),
        "rounds": len(rounds),
        "faults": sum(kinds.values()),
        "faults_by_kind": dict(sorted(kinds.items())),
        "skipped": dict(Counter(text for each in rounds for text in each.skipped)),
        "acknowledged": facts.acknowledged,
        "answered_requests": facts.requests,
        "watched_events": facts.watched,
        "violations": {column: counts.get(column, 0) for column in COLUMNS},
        "left_behind": max((each.left_behind for each in rounds), default=0),
        "settled_seconds": _times(settled),
        "settled_seconds_by_kind": {kind: _times(times) for kind, times in sorted(_by_kind(rounds).items())},
        "memory_mb": facts.memory_mb,
        "failures": [
            {"round": each.number, "faults": [fault.text for fault in each.faults], "violations": each.violations}
            for each in rounds
            if each.violations
        ],
    }


def table(run: dict[str, Any]) -> str:
    """The summary as Markdown."""
    times = run["settled_seconds_by_kind"]
    kinds = [(kind, count, times[kind]) for kind, count in run["faults_by_kind"].items()]
    kinds.append(("all", run["faults"], run["settled_seconds"]))
    counts = [
        run["acknowledged"],
        run["answered_requests"],
        run["watched_events"],
        *(run["violations"][column] for column in COLUMNS),
    ]
    lines = [
        "| fault | times | settled after: median | at most |",
        "|---|---|---|---|",
        *(
            f"| {kind} | {count} | {_seconds(took['median'])} | {_seconds(took['max'])} |"
            for kind, count, took in kinds
        ),
        "",
        f"| acknowledged | answered | watched | {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(counts)}",
        f"| {' | '.join(map(str, counts))} |",
    ]
    return "\n".join(lines)


def _column(kind: str) -> str:
    return kind if kind in COLUMNS else "other"


def _by_kind(rounds: Sequence[RoundRecord]) -> dict[str, list[float]]:
    times: defaultdict[str, list[float]] = defaultdict(list)
    for each in rounds:
        for kind in {fault.kind for fault in each.faults}:
            times[kind] += [] if each.settled_seconds is None else [each.settled_seconds]
    return times


def _times(seconds: Sequence[float]) -> dict[str, float | None]:
    if not seconds:
        return {"median": None, "max": None}
    return {"median": round(statistics.median(seconds), 1), "max": round(max(seconds), 1)}


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:g} s"
