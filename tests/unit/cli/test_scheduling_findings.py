"""What `doctor` says about rules between shoots and scheduling gates."""

from datetime import UTC, datetime, timedelta

from gardenbus.cli.diagnostics.scheduling import assess_gates, assess_rules
from gardenbus.cli.migrations.violations import plan_violations
from gardenbus.cli.simulate.scheduling import snapshot_of
from gardenbus.common.api.document import Document
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot, merged, resolved_as
from tests.unit.cli.test_violations import APART, placed

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
COMMAND = "gardenbus rebalance --violations"


def gated(name: str, age: timedelta, **spec: str) -> Document:
    metadata = merged(resolved_as({"schedulingGates": [{"name": "example.com/quota"}]}), {})
    created = {"creationTimestamp": (NOW - age).strftime("%Y-%m-%dT%H:%M:%SZ")}
    return merged(a_shoot(name), {"metadata": {**metadata, **created}, "spec": spec})


def test_each_shoot_that_breaks_its_rule_is_named_with_seed_and_rule() -> None:
    pair = [placed(name, "a", APART) for name in ("one", "two")]
    snapshot = snapshot_of([a_cloudprofile(), a_project(), a_seed("a"), a_seed("b"), *pair])
    (finding,) = assess_rules(plan_violations(pair, snapshot, max_moves=0), COMMAND)
    assert finding.state == "warning"
    assert finding.found == (
        "2 shoots break a rule that they state: garden-dev/one on a (shoot-anti-affinity),"
        " garden-dev/two on a (shoot-anti-affinity)"
    )
    assert COMMAND in finding.suggestion


def test_where_all_keep_their_rules_there_is_no_finding() -> None:
    assert assess_rules([], COMMAND) == []


def test_gates_of_an_hour_are_named_the_oldest_first() -> None:
    shoots = [gated("new", timedelta(minutes=59)), gated("old", timedelta(hours=2)), gated("older", timedelta(days=3))]
    (finding,) = assess_gates([*shoots, a_shoot("plain")], NOW)
    assert finding.state == "warning"
    assert finding.found == (
        "2 shoots wait for scheduling gates: garden-dev/older for 3d (example.com/quota),"
        " garden-dev/old for 2h (example.com/quota)"
    )


def test_gates_of_shoots_that_do_not_wait_are_not_named() -> None:
    deleting = merged(gated("b", timedelta(days=1)), {"metadata": {"deletionTimestamp": "2026-11-30T11:00:00Z"}})
    assert assess_gates([gated("a", timedelta(days=1), seedName="a"), deleting], NOW) == []
