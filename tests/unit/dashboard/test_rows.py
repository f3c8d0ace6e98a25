"""What is shown of manifests, which rows are chosen, and what nobody sees."""

from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.garden.rows import ShootRow, autoscaler_row, seed_row, set_row, shoot_row
from gardenbus.common.api.redaction import HIDDEN, LAST_APPLIED, redacted
from gardenbus.common.errors import BadRequest
from gardenbus.dashboard.domain.related_objects import related_to
from gardenbus.dashboard.domain.scaling_history import Sample, rescaled, with_event, with_row
from gardenbus.dashboard.domain.shoot_query import ShootQuery, page_of, query_from, select_rows
from tests.support.builders import a_seed, a_shoot, merged


def a_row(name: str = "apollo", **changes: Any) -> ShootRow:
    return shoot_row(a_shoot(name, **changes))


def rejected(name: str) -> Document:
    operation = {"type": "Create", "state": "Pending", "description": "nothing fits", "progress": 0}
    return a_shoot(name, status={"lastOperation": operation})


def test_a_shoot_without_a_status_is_new():
    row = a_row()
    assert (row.state, row.seed, row.progress, row.is_unschedulable) == ("new", "", 0, False)


def test_a_shoot_that_a_scheduler_refused_waits():
    row = shoot_row(rejected("apollo"))
    assert row.is_unschedulable
    assert row.description == "nothing fits"


def test_a_shoot_that_is_deleted_waits_for_nothing():
    row = shoot_row(rejected("apollo") | {"metadata": {"name": "apollo", "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert row.state == "deleting"
    assert not row.is_unschedulable


def test_a_manifest_of_any_shape_has_a_row():
    manifests: list[Document] = [
        {},
        {"metadata": 3, "spec": "no", "status": []},
        {"status": {"conditions": [1, {"status": None}]}},
    ]
    for broken in manifests:
        for row_of in (shoot_row, seed_row, set_row, autoscaler_row):
            assert row_of(broken).name == ""


def test_a_seed_without_a_limit_has_no_capacity():
    assert seed_row(a_seed(shoots=None)).capacity is None
    assert seed_row(a_seed(shoots="1500m")).capacity == 1.5


def test_rows_are_filtered_sorted_and_paged():
    rows = [a_row(f"s{number}", spec={"region": "eu" if number % 2 else "us"}) for number in range(10)]
    found = select_rows(rows, ShootQuery(region="eu", sort="-name"))
    assert [row.name for row in found] == ["s9", "s7", "s5", "s3", "s1"]
    page = page_of(found, ShootQuery(offset=1, limit=2))
    assert ([row.name for row in page.rows], page.total) == (["s7", "s5"], 5)


def test_a_search_wants_all_words():
    rows = [a_row("apollo"), a_row("artemis", spec={"seedName": "aws-eu1"})]
    assert [row.name for row in select_rows(rows, ShootQuery(search="aws-eu1 art"))] == ["artemis"]


def test_trouble_and_waiting_are_states_to_filter_by():
    rows = [a_row("well"), shoot_row(rejected("nowhere")), a_row("bad", status={"lastOperation": {"state": "Failed"}})]
    assert [row.name for row in select_rows(rows, ShootQuery(state="waiting"))] == ["nowhere"]
    assert [row.name for row in select_rows(rows, ShootQuery(state="trouble"))] == ["bad"]


@pytest.mark.parametrize("wrong", [{"sort": "colour"}, {"limit": "0"}, {"limit": "x"}, {"offset": "-1"}, {"hue": "1"}])
def test_a_query_that_makes_no_sense_is_refused(wrong: dict[str, str]):
    with pytest.raises(BadRequest):
        query_from(wrong)


def test_what_a_secret_holds_is_hidden_and_its_keys_are_not():
    secret = {"kind": "Secret", "metadata": {"annotations": {LAST_APPLIED: "{…}"}}, "data": {"key": "c2VjcmV0"}}
    shown = redacted(secret)
    assert shown["data"] == {"key": HIDDEN}
    assert shown["metadata"]["annotations"][LAST_APPLIED] == HIDDEN
    assert secret["data"] == {"key": "c2VjcmV0"}


def test_credentials_are_hidden_wherever_they_stand():
    shown = redacted({"kind": "ManagedSeed", "spec": {"list": [{"kubeconfig": "k", "region": "eu"}]}})
    assert shown["spec"]["list"] == [{"kubeconfig": HIDDEN, "region": "eu"}]


def test_the_keys_of_a_control_plane_are_hidden():
    assert redacted({"kind": "ShootState", "spec": {"gardener": [{"data": "x"}]}})["spec"] == {"gardener": HIDDEN}


def test_a_shoot_leads_to_its_seeds_and_its_profile():
    shoot = a_shoot(spec={"seedName": "new"}, status={"seedName": "old"})
    assert {(each.role, each.name) for each in related_to(shoot)} >= {("seed", "new"), ("still on", "old")}


def test_the_history_begins_with_events_and_goes_on_with_what_is_seen():
    sent = rescaled("New size: 2; reason: shoots above target", "2026-01-01T00:00:00Z")
    assert sent is not None
    assert sent == Sample("2026-01-01T00:00:00Z", 2, reason="shoots above target")
    assert rescaled("something else", "now") is None
    row = autoscaler_row({"status": {"desiredReplicas": 3, "currentReplicas": 2}})
    samples = with_row(with_event([], sent), row, "2026-01-01T00:01:00Z")
    assert [each.desired for each in samples] == [2, 3]
    assert with_row(samples, row, "2026-01-01T00:02:00Z") == samples
    assert with_event(samples, sent) == samples


AUTOSCALER: Document = {
    "metadata": {"name": "grove", "namespace": "garden"},
    "spec": {"metrics": [{"type": "Resource", "resource": {"name": "shoots", "target": {"averageUtilization": 80}}}]},
    "status": {
        "currentMetrics": [
            {"type": "Resource", "resource": {"name": "shoots", "current": {"averageUtilization": 50, "value": "4"}}}
        ],
        "conditions": [{"type": "ScalingActive", "status": "True", "message": "all metrics can be read"}],
    },
}


def test_an_autoscaler_is_shown_with_its_metric_beside_the_target():
    assert autoscaler_row(AUTOSCALER).reason == "utilization of shoots 50 %, below the target of 80 %"
    limited = {"type": "ScalingLimited", "status": "True", "message": "more are desired than maxReplicas (3)"}
    busy = merged(AUTOSCALER, {"status": {"pendingShoots": 2, "conditions": [limited]}})
    assert autoscaler_row(busy).reason.endswith(
        "; 2 of its shoots wait for a seed; more are desired than maxReplicas (3)"
    )
    blind = merged(AUTOSCALER, {"status": {"currentMetrics": []}})
    assert autoscaler_row(blind).reason == "all metrics can be read"


@pytest.mark.parametrize(("status", "lacks"), [("True", False), ("False", True), ("Unknown", True), (None, True)])
def test_a_seed_whose_backup_bucket_is_not_ready_is_shown_as_closed(status: str | None, lacks: bool):
    conditions = [{"type": "BackupBucketsReady", "status": status}] if status else []
    backup = {"provider": "aws"}
    assert seed_row(a_seed("aws", spec={"backup": backup}, status={"conditions": conditions})).lacks_backups is lacks
    assert not seed_row(a_seed("aws", status={"conditions": conditions})).lacks_backups
