from gardenbus.common.api.document import Document, StoredObject, split
from gardenbus.common.api.keys import ObjectKey
from gardenbus.lifecycle.domain.assessment import (
    AssessmentPostponed,
    SeedsAssessed,
    WatchedSeed,
    assess_seeds,
    watched_seed,
)
from gardenbus.lifecycle.domain.freshness import LeaseRecord
from gardenbus.lifecycle.domain.outage import BreakerState, CircuitBreaker, ProbeState
from tests.support.builders import a_condition, a_seed

LIVING = WatchedSeed(has_reported=True, is_expired=False)
DEAD = WatchedSeed(has_reported=True, is_expired=True)
NEW = WatchedSeed(has_reported=False, is_expired=False)
CLOSED = CircuitBreaker()
WELL = ProbeState(last_received_at=1000, healthy_since=0)


def assessed(
    seeds: dict[str, WatchedSeed],
    records: dict[str, LeaseRecord],
    *,
    breaker: CircuitBreaker = CLOSED,
    probe: ProbeState = WELL,
) -> SeedsAssessed:
    assessment = assess_seeds(seeds, records, probe=probe, breaker=breaker, now=1000, monitor_period=40)
    assert isinstance(assessment, SeedsAssessed)
    return assessment


def stored(document: Document) -> StoredObject:
    key = ObjectKey("seed", "", document["metadata"]["name"])
    return StoredObject(key=key, parts=split(document), uid="u", version=1, generation=1, created_at="")


def test_what_a_look_needs_is_read_from_the_seed() -> None:
    gone = a_condition("GardenletReady", "Unknown", reason="StatusUnknown")
    assert watched_seed(stored(a_seed())) == LIVING
    assert watched_seed(stored(a_seed(ready=False))) == NEW
    assert watched_seed(stored(a_seed(status={"conditions": [gone]}))) == DEAD
    initial = a_condition("GardenletReady", "Unknown", reason="ConditionInitialized")
    assert watched_seed(stored(a_seed(status={"conditions": [initial]}))) == LIVING
    assert watched_seed(stored(a_seed(status={"conditions": [a_condition("Other", reason=None), 7]}))) == LIVING
    assert watched_seed(stored(a_seed(status={"conditions": 7}))) == NEW


def test_silent_seeds_come_by_name_and_new_ones_are_left_alone() -> None:
    seeds = {"c": LIVING, "a": LIVING, "b": DEAD, "new": NEW, "fresh": LIVING}
    assessment = assessed(seeds, {"fresh": LeaseRecord(990), "a": LeaseRecord(960)})
    assert assessment.silent == ("a", "b", "c")
    assert assessment.watched == 4
    assert assessment.next_expiry_at == 1030


def test_a_seed_is_silent_from_the_very_moment_of_its_expiry() -> None:
    assert assessed({"a": LIVING}, {"a": LeaseRecord(960)}).silent == ("a",)
    assert assessed({"a": LIVING}, {"a": LeaseRecord(960.001)}).silent == ()


def test_while_the_bus_is_not_well_nobody_is_silent() -> None:
    assessment = assess_seeds(
        {"a": LIVING}, {}, probe=ProbeState(), breaker=CircuitBreaker(), now=1000, monitor_period=40
    )
    assert isinstance(assessment, AssessmentPostponed)


def test_after_an_outage_everybody_gets_a_whole_period() -> None:
    seeds, records = {"a": LIVING}, {"a": LeaseRecord(10)}
    assert assessed(seeds, records, probe=ProbeState(1000, 961)).silent == ()
    assert assessed(seeds, records, probe=ProbeState(1000, 960)).silent == ("a",)


def test_the_brake_holds_the_new_ones_and_lets_those_through_that_were_written_off() -> None:
    seeds = {f"s{number}": LIVING for number in range(12)} | {"old": DEAD}
    assessment = assessed(seeds, {})
    assert (assessment.silent, assessment.held, assessment.opened_now) == (("old",), 12, True)
    assert assessment.breaker.state is BreakerState.OPEN
    assert assessment.next_expiry_at == 1040


def test_seeds_written_off_long_ago_never_put_the_brake_on() -> None:
    seeds = {f"s{number}": DEAD for number in range(30)} | {"one": LIVING}
    assert assessed(seeds, {}, probe=ProbeState(1000, 960)).silent[-1] == "s9"
    assert not assessed(seeds, {}, probe=ProbeState(1000, 960)).opened_now
