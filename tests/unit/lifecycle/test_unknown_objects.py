from datetime import UTC, datetime, timedelta

from gardenbus.common.api.conditions import conditions_of, get_condition
from gardenbus.common.api.document import Document
from gardenbus.common.api.keys import ObjectKey
from gardenbus.lifecycle.domain.conditions import with_objects_condition
from tests.support.builders import a_condition, a_seed

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
SHOOTS = [ObjectKey("shoot", "garden-dev", f"shoot-{number}") for number in range(7)]


def written(seed: Document, unknown: list[ObjectKey], *, later: float = 0) -> Document:
    document = with_objects_condition(seed, unknown, NOON + timedelta(seconds=later))
    assert document is not None
    return document


def the(document: Document) -> Document:
    condition = get_condition(conditions_of(document), "ObjectsKnown")
    assert condition is not None
    return condition


def test_a_seed_says_what_runs_on_it_that_nobody_remembers_and_how_much_more() -> None:
    one, many = the(written(a_seed(), SHOOTS[:1])), the(written(a_seed(), SHOOTS))
    assert (one["status"], one["reason"]) == ("False", "ObjectsUnknown")
    assert "shoot garden-dev/shoot-0. Adopt or forget" in one["message"]
    assert "garden-dev/shoot-4 and 2 more" in many["message"]


def test_nothing_is_written_while_nothing_changes_and_a_seed_without_such_objects_has_no_condition() -> None:
    assert with_objects_condition(a_seed(), [], NOON) is None
    seed = written(a_seed(), SHOOTS[:2])
    assert with_objects_condition(seed, SHOOTS[:2], NOON + timedelta(hours=1)) is None
    fewer = the(written(seed, SHOOTS[:1], later=60))
    assert (fewer["lastTransitionTime"], fewer["lastUpdateTime"]) == ("2026-01-02T12:00:00Z", "2026-01-02T12:01:00Z")


def test_once_all_is_decided_the_condition_is_true_and_stays() -> None:
    existing = written(written(a_seed(), SHOOTS[:1]), [], later=60)
    assert (the(existing)["status"], the(existing)["reason"]) == ("True", "AllObjectsKnown")
    assert with_objects_condition(existing, [], NOON + timedelta(hours=1)) is None


def test_other_conditions_and_fields_stay() -> None:
    care = a_condition("SeedSystemComponentsHealthy", extra="kept")
    seed = a_seed(status={"conditions": [care, a_condition("GardenletReady")], "mine": 1})
    document = written(seed, SHOOTS[:1])
    assert conditions_of(document)[:2] == conditions_of(seed)
    assert document["status"]["mine"] == 1
    assert document["spec"] == seed["spec"]


def test_a_seed_that_no_gardenlet_has_ever_reported_for_gets_no_condition_which_would_say_that_one_has() -> None:
    assert with_objects_condition(a_seed(ready=False), SHOOTS[:1], NOON) is None
