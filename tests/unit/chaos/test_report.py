"""The report counts faults, violations and times, as JSON and as a table."""

import json

from tests.chaos.invariants import Violation
from tests.chaos.plan import Fault
from tests.chaos.report import RoundRecord, RunFacts, summary, table

FACTS = RunFacts(
    seed=3, seconds=61.04, acknowledged=120, requests=340, watched=560, memory_mb={"relay": (70.0, 80.0, 90.0)}
)
KILL, CUT = Fault("kill", "relay"), Fault("cut", "relay/nats", 1.5, detail="reset")
ROUNDS = [
    RoundRecord(1, (KILL, CUT), 2.0),
    RoundRecord(2, (KILL,), 4.04),
    RoundRecord(3, (), 1.0, skipped=("disk-full nats: not mounted",)),
    RoundRecord(4, (CUT,), None, (Violation("lost", "a"), Violation("lost", "b"), Violation("died", "relay"))),
]


def test_faults_violations_and_times_are_counted() -> None:
    run = summary(FACTS, ROUNDS)

    assert run["faults"] == 4
    assert run["faults_by_kind"] == {"cut": 2, "kill": 2}
    assert run["violations"] == {"lost": 2, "doubled": 0, "overfilled": 0, "torn down": 0, "other": 1}
    assert run["settled_seconds"] == {"median": 2.0, "max": 4.0}
    assert run["settled_seconds_by_kind"] == {"cut": {"median": 2.0, "max": 2.0}, "kill": {"median": 3.0, "max": 4.0}}
    assert run["skipped"] == {"disk-full nats: not mounted": 1}
    (failure,) = run["failures"]
    assert (failure["round"], failure["faults"]) == (4, ["cut relay/nats (reset) 1.5 s"])
    assert json.loads(json.dumps(run))["seed"] == 3


def test_the_table_has_a_line_a_kind_and_one_of_violations() -> None:
    lines = table(summary(FACTS, ROUNDS)).splitlines()

    assert "| kill | 2 | 3 s | 4 s |" in lines
    assert "| all | 4 | 2 s | 4 s |" in lines
    assert lines[-1] == "| 120 | 340 | 560 | 2 | 0 | 0 | 0 | 1 |"


def test_a_run_without_a_settled_round_has_no_times() -> None:
    assert "| all | 1 | - | - |" in table(summary(FACTS, ROUNDS[3:]))
