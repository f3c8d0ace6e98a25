"""Reports that are gathered into one have the effect of the reports one after another."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gardenbus.apiserver.domain.report_stamps import merge_report
from gardenbus.gardenlet.clients.reporter import merged

conditions = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from("ABC"), "status": st.sampled_from(["True", "False"])}),
    max_size=3,
    unique_by=lambda condition: condition["type"],
)
operations = st.fixed_dictionaries({"type": st.just("Create"), "progress": st.integers(0, 100)})
patches = st.fixed_dictionaries(
    {},
    optional={
        "lastOperation": operations,
        "lastErrors": st.one_of(st.none(), st.just([{"description": "no"}])),
        "observedGeneration": st.integers(1, 5),
        "retryCycleStartTime": st.one_of(st.none(), st.just("2026-01-02T03:04:05Z")),
        "conditions": conditions,
    },
)


def accepted(status: dict[str, Any], *reports: dict[str, Any]) -> dict[str, Any]:
    stamps = b""
    for sequence, report in enumerate(reports, start=1):
        status, stamps, _ = merge_report(status, stamps, report=report, incarnation=1, sequence=sequence)
    return status


def comparable(status: dict[str, Any]) -> dict[str, Any]:
    by_type = {condition["type"]: condition for condition in status.get("conditions", [])}
    return {**status, "conditions": by_type}


@given(before=patches, reports=st.lists(patches, min_size=1, max_size=5))
def test_gathering_reports_changes_nothing(before: dict[str, Any], reports: list[dict[str, Any]]) -> None:
    gathered: dict[str, Any] = {}
    for report in reports:
        gathered = merged(gathered, report)

    assert comparable(accepted({}, before, gathered)) == comparable(accepted({}, before, *reports))
