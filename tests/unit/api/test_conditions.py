from gardenbus.common.api.conditions import (
    build_condition,
    conditions_of,
    get_or_init,
    merge_conditions,
    observed_condition,
)
from tests.support.builders import NOW, a_condition, a_seed

LATER = "2026-01-02T04:00:00Z"


def test_a_condition_nobody_checked_starts_as_unknown() -> None:
    condition = get_or_init([], "GardenletReady", NOW)
    assert condition["status"] == "Unknown"
    assert condition["reason"] == "ConditionInitialized"


def test_the_transition_time_moves_with_the_status_alone() -> None:
    new, changed = build_condition(a_condition("A"), now=LATER, status="False")
    assert changed
    assert (new["lastTransitionTime"], new["lastUpdateTime"]) == (LATER, NOW)


def test_the_update_time_moves_with_the_text_alone() -> None:
    new, changed = build_condition(a_condition("A"), now=LATER, reason="Other", message="text")
    assert changed
    assert (new["lastTransitionTime"], new["lastUpdateTime"]) == (NOW, LATER)


def test_codes_are_never_carried_over() -> None:
    new, changed = build_condition(a_condition("A", codes=["ERR_INFRA_DEPENDENCIES"]), now=LATER)
    assert changed
    assert "codes" not in new
    assert new["lastUpdateTime"] == LATER


def test_the_same_again_changes_nothing() -> None:
    old = a_condition("A", extra="kept")
    assert build_condition(old, now=LATER, status="True", reason="Tested", message="All is well.") == (old, False)


def test_empty_texts_get_a_stand_in() -> None:
    new, _ = build_condition(a_condition("A"), now=LATER, reason="", message="")
    assert (new["reason"], new["message"]) == ("Unspecified", "No message given.")


def test_a_bare_condition_is_filled_in() -> None:
    new, _ = build_condition({"type": "A"}, now=LATER)
    assert new["status"] == "Unknown"
    assert new["message"].startswith("The condition has been initialized")
    assert (new["lastTransitionTime"], new["lastUpdateTime"]) == (LATER, LATER)


def test_merging_keeps_the_order_and_deletes_nothing() -> None:
    old = [a_condition("A"), a_condition("B")]
    merged = merge_conditions(old, a_condition("C"), a_condition("A", "False"))
    assert [(condition["type"], condition["status"]) for condition in merged] == [
        ("A", "False"),
        ("B", "True"),
        ("C", "True"),
    ]


def test_conditions_of_a_document_that_has_none_are_empty() -> None:
    assert conditions_of(a_seed(ready=False)) == []
    assert conditions_of({"status": {"conditions": "no list"}}) == []


def test_an_observed_condition_keeps_the_time_of_its_status_whatever_else_is_said() -> None:
    first = observed_condition([], "Applied", ("True", "Done", "All of it."), generation=1, now=NOW)
    assert first == {
        "type": "Applied",
        "status": "True",
        "reason": "Done",
        "message": "All of it.",
        "observedGeneration": 1,
        "lastTransitionTime": NOW,
    }
    again = observed_condition([first], "Applied", ("True", "Done", "Again."), generation=2, now=LATER)
    assert (again["observedGeneration"], again["lastTransitionTime"]) == (2, NOW)
    other = observed_condition([again], "Applied", ("False", "Failed", ""), generation=2, now=LATER)
    assert other["lastTransitionTime"] == LATER
    bare = observed_condition(
        [{"type": "Applied", "status": "True"}], "Applied", ("True", "", ""), generation=1, now=NOW
    )
    assert bare["lastTransitionTime"] == NOW
