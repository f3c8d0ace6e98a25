"""Reports win by their sequence, field by field, whatever the order they are taken in."""

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.apiserver.domain.report_stamps import is_set_by, merge_report

Report = dict[str, Any]


def merge_all(reports: list[tuple[int, Report]], status: Report | None = None, incarnation: int = 1) -> Report:
    current, stamps = dict(status or {}), b""
    for sequence, report in reports:
        current, stamps, _ = merge_report(current, stamps, report=report, incarnation=incarnation, sequence=sequence)
    return current


def merged_in_order(status: Any, report: Any) -> Any:
    """A JSON merge patch, as plain as can be."""
    if not isinstance(report, dict):
        return report
    result: Report = dict(cast("Report", status)) if isinstance(status, dict) else {}
    for name, value in cast("Report", report).items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged_in_order(result.get(name), value)
    return result


def by_type(status: Report) -> Report:
    return {
        name: {entry["type"]: entry for entry in cast("list[Report]", value)} if name == "conditions" else value
        for name, value in status.items()
    }


def test_an_older_report_changes_nothing_that_a_newer_one_has_set() -> None:
    newer = {"lastOperation": {"progress": 60, "state": "Processing"}}
    older = {"lastOperation": {"progress": 20}, "technicalID": "shoot--dev--apollo"}

    assert merge_all([(7, newer), (5, older)]) == {
        "lastOperation": {"progress": 60, "state": "Processing"},
        "technicalID": "shoot--dev--apollo",
    }


def test_conditions_are_replaced_by_type_and_the_others_stay() -> None:
    ready = {"type": "APIServerAvailable", "status": "True"}
    healthy = {"type": "ControlPlaneHealthy", "status": "True"}
    sick = {"type": "ControlPlaneHealthy", "status": "False"}
    status = merge_all([(1, {"conditions": [ready, healthy]}), (3, {"conditions": [sick]})])

    assert status == {"conditions": [ready, sick]}
    assert (
        merge_all([(1, {"conditions": [ready]}), (3, {"conditions": [sick]}), (2, {"conditions": [healthy]})]) == status
    )


def test_a_condition_is_taken_whole() -> None:
    failing = {"type": "EveryNodeReady", "status": "False", "codes": ["ERR_INFRA_DEPENDENCIES"]}
    well = {"type": "EveryNodeReady", "status": "True"}

    assert merge_all([(1, {"conditions": [failing]}), (2, {"conditions": [well]})]) == {"conditions": [well]}


def test_null_removes_and_stays_removed_when_an_older_report_comes_late() -> None:
    assert merge_all([(2, {"lastErrors": None}), (1, {"lastErrors": [{"description": "no"}]})]) == {}


def test_a_younger_stream_counts_from_one_again_and_an_older_one_counts_no_more() -> None:
    first = merge_report({}, b"", report={"phase": "old"}, incarnation=10, sequence=500)
    second = merge_report(first.status, first.stamps, report={"phase": "new"}, incarnation=11, sequence=1)
    late = merge_report(second.status, second.stamps, report={"phase": "late"}, incarnation=10, sequence=501)

    assert (second.status, second.is_changed) == ({"phase": "new"}, True)
    assert (late.status, late.is_changed) == ({"phase": "new"}, False)


def test_the_same_report_again_is_nothing_new() -> None:
    once = merge_report({}, b"", report={"a": {"b": 1}}, incarnation=1, sequence=1)
    twice = merge_report(once.status, once.stamps, report={"a": {"b": 1}}, incarnation=1, sequence=1)

    assert not twice.is_changed


def test_what_others_wrote_stays_unless_it_is_reported() -> None:
    status = {"constraints": [{"type": "ReadyForMigration", "status": "True"}], "seedName": "aws"}

    assert merge_all([(1, {"technicalID": "x"})], status) == {**status, "technicalID": "x"}


names = st.sampled_from(["a", "b", "lastOperation"])
leaves = st.none() | st.integers(0, 3) | st.lists(st.integers(0, 2), max_size=2)
values = st.recursive(leaves, lambda below: st.dictionaries(names, below, max_size=3), max_leaves=6)
condition = st.fixed_dictionaries({"type": st.sampled_from(["X", "Y"]), "status": st.sampled_from(["True", "False"])})
reports = st.dictionaries(names, values, max_size=3).flatmap(
    lambda fields: st.lists(condition, max_size=2, unique_by=lambda entry: entry["type"]).map(
        lambda conditions: {**fields, **({"conditions": conditions} if conditions else {})}
    )
)


@given(st.lists(reports, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_any_order_with_any_repetition_ends_the_same(is_changed: list[Report], random: Any) -> None:
    numbered = list(enumerate(is_changed, start=1))
    shuffled = numbered + random.sample(numbered, random.randint(0, len(numbered)))
    random.shuffle(shuffled)

    assert by_type(merge_all(shuffled)) == by_type(merge_all(numbered))


@given(st.lists(st.dictionaries(names, values, max_size=3), min_size=1, max_size=6))
def test_in_order_it_is_a_merge_patch(is_changed: list[Report]) -> None:
    expected: Report = {}
    for report in is_changed:
        expected = merged_in_order(expected, report)

    assert merge_all(list(enumerate(is_changed, start=1))) == expected


def test_a_report_is_known_by_what_it_has_set() -> None:
    _, stamps, _ = merge_report({}, b"", report={"seedName": "b", "progress": 1}, incarnation=1, sequence=5)
    _, stamps, _ = merge_report({}, stamps, report={"progress": 2}, incarnation=1, sequence=6)

    assert is_set_by(stamps, "seedName", incarnation=1, sequence=5)
    assert not is_set_by(stamps, "seedName", incarnation=1, sequence=6)
    assert not is_set_by(stamps, "seedName", incarnation=2, sequence=5)
    assert not is_set_by(stamps, "progress", incarnation=1, sequence=5)
    assert not is_set_by(stamps, "other", incarnation=1, sequence=5)
    assert not is_set_by(b"", "seedName", incarnation=1, sequence=5)
