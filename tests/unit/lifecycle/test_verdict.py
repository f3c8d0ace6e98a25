from gardenbus.common.resources.document import Document, StoredObject, split
from gardenbus.common.resources.keys import ObjectKey
from gardenbus.lifecycle.decide.freshness import LeaseRecord
from gardenbus.lifecycle.decide.outage import Brake, Hearing, Phase, cut
from gardenbus.lifecycle.decide.verdict import Looked, Postponed, WatchedSeed, look, watched_seed
from tests.support.builders import a_condition, a_seed

LIVING = WatchedSeed(was_heard_of=True, is_believed_dead=False)
DEAD = WatchedSeed(was_heard_of=True, is_believed_dead=True)
NEW = WatchedSeed(was_heard_of=False, is_believed_dead=False)
RELEASED = Brake()
WELL = Hearing(last_heard_at=1000, well_since=0)


def looked(
    seeds: dict[str, WatchedSeed], records: dict[str, LeaseRecord], *, brake: Brake = RELEASED, hearing: Hearing = WELL
) -> Looked:
    outlook = look(seeds, records, hearing=hearing, brake=brake, now=1000, monitor_period=40)
    assert isinstance(outlook, Looked)
    return outlook


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
    outlook = looked(seeds, {"fresh": LeaseRecord(990), "a": LeaseRecord(960)})
    assert outlook.silent == ("a", "b", "c")
    assert outlook.watched == 4
    assert outlook.next_expiry_at == 1030


def test_a_seed_is_silent_from_the_very_moment_of_its_expiry() -> None:
    assert looked({"a": LIVING}, {"a": LeaseRecord(960)}).silent == ("a",)
    assert looked({"a": LIVING}, {"a": LeaseRecord(960.001)}).silent == ()


def test_while_the_bus_is_not_well_nobody_is_silent() -> None:
    outlook = look({"a": LIVING}, {}, hearing=cut(), brake=Brake(), now=1000, monitor_period=40)
    assert isinstance(outlook, Postponed)


def test_after_an_outage_everybody_gets_a_whole_period() -> None:
    seeds, records = {"a": LIVING}, {"a": LeaseRecord(10)}
    assert looked(seeds, records, hearing=Hearing(1000, 961)).silent == ()
    assert looked(seeds, records, hearing=Hearing(1000, 960)).silent == ("a",)


def test_the_brake_holds_the_new_ones_and_lets_those_through_that_were_written_off() -> None:
    seeds = {f"s{number}": LIVING for number in range(12)} | {"old": DEAD}
    outlook = looked(seeds, {})
    assert (outlook.silent, outlook.held, outlook.engaged_now) == (("old",), 12, True)
    assert outlook.brake.phase is Phase.HOLDING
    assert outlook.next_expiry_at == 1040


def test_seeds_written_off_long_ago_never_put_the_brake_on() -> None:
    seeds = {f"s{number}": DEAD for number in range(30)} | {"one": LIVING}
    assert looked(seeds, {}, hearing=Hearing(1000, 960)).silent[-1] == "s9"
    assert not looked(seeds, {}, hearing=Hearing(1000, 960)).engaged_now
