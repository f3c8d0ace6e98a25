"""What the pages of placements and member clusters are answered."""

from datetime import UTC, datetime
from typing import Any

import pytest

from gardenbus.common.api.document import Document
from gardenbus.common.api.fleet.rows import binding_row, cluster_row, placement_row, snapshot_row
from gardenbus.common.api.keys import ObjectKey
from gardenbus.dashboard.domain.placement_rows import count_bindings, decisions_of, is_cluster_healthy
from tests.support.builders import merged
from tests.support.dashboards import Dashboard
from tests.support.fleet_pages import a_binding, a_member, a_placed, a_snapshot

ALL_DONE = ("True",) * 5


def a_fleet() -> Dashboard:
    dashboard = Dashboard()
    dashboard.put(
        a_member("east"),
        a_member("north", taint="maintenance"),
        a_member("west", healthy="False"),
        a_placed("web", 3, fulfilled="False"),
        a_placed("logs", 1),
        a_snapshot("web", ("east", True, 20, -1, "picked"), ("west", False, 0, 0, "it is not eligible")),
        a_binding("web", "east", "Bound", *ALL_DONE),
        a_binding("web", "north", "Scheduled"),
        a_binding("web", "south", "Unscheduled", "True"),
        a_binding("logs", "east", "Bound", "True", "True", "True", "False", message="quota exceeded"),
    )
    return dashboard


@pytest.mark.parametrize("row_of", [placement_row, binding_row, cluster_row, snapshot_row])
def test_a_manifest_of_any_shape_has_a_row(row_of: Any):
    broken: list[Document] = [{}, {"metadata": 3, "spec": "no", "status": []}, {"status": {"agentStatus": [1]}}]
    assert [row_of(each).name for each in broken] == ["", "", ""]


@pytest.mark.parametrize(
    ("policy", "placement_type", "wanted"),
    [
        ({}, "PickAll", None),
        ({"placementType": "PickN", "numberOfClusters": 0}, "PickN", 0),
        ({"placementType": "PickFixed", "clusterNames": ["a", "b"]}, "PickFixed", 2),
    ],
)
def test_how_many_are_wanted_follows_from_the_type(policy: Document, placement_type: str, wanted: int | None):
    document = a_placed("web", 3)
    document["spec"]["policy"] = policy
    row = placement_row(document)
    assert (row.type, row.wanted) == (placement_type, wanted)


def test_a_condition_of_an_older_generation_says_nothing():
    assert placement_row(merged(a_placed("web", 3), {"metadata": {"generation": 3}})).fulfilled == ""
    stale = merged(a_binding("web", "east", "Bound", *ALL_DONE), {"metadata": {"generation": 4}})
    assert binding_row(stale).steps == "-----"
    assert not binding_row(stale).is_available


def test_the_first_step_that_failed_is_told():
    row = binding_row(a_binding("web", "east", "Bound", "True", "True", "True", "False", message="quota exceeded"))
    assert (row.steps, row.trouble) == ("tttf-", "quota exceeded")


def test_bindings_on_their_way_out_count_for_nothing():
    leaving = merged(
        a_binding("web", "west", "Bound", *ALL_DONE), {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    )
    rows = [a_binding("web", "east", "Bound", *ALL_DONE), a_binding("web", "north", "Scheduled"), leaving]
    counts = count_bindings(map(binding_row, rows))
    assert (counts.selected, counts.bound, counts.available) == (2, 1, 1)


def test_a_cluster_that_is_silent_unhealthy_or_never_heard_is_not_well():
    now = datetime.now(UTC)
    assert is_cluster_healthy(cluster_row(a_member("east")), now)
    unheard: Document = a_member("c") | {"status": None}
    for unwell in (a_member("a", seen_seconds_ago=400), a_member("b", healthy="Unknown"), unheard):
        assert not is_cluster_healthy(cluster_row(unwell), now)


def test_decisions_without_scores_have_none():
    snapshot = {"status": {"targetClusters": [{"clusterName": "east", "selected": True, "reason": "named"}]}}
    [decision] = decisions_of(snapshot)
    assert (decision["affinityScore"], decision["topologySpreadScore"]) == (None, None)


async def test_placements_are_listed_with_how_far_they_are():
    items = (await a_fleet().get("/api/placements")).json()["items"]
    numbers = [
        [row[name] for name in ("name", "wanted", "selected", "bound", "available", "fulfilled")] for row in items
    ]
    assert numbers == [["logs", 1, 1, 1, 0, "True"], ["web", 3, 2, 1, 1, "False"]]


async def test_lists_are_filtered_by_name_and_state():
    dashboard = a_fleet()
    assert (await dashboard.get("/api/placements?search=LO")).json()["total"] == 1
    [lacking] = (await dashboard.get("/api/placements?state=unfulfilled")).json()["items"]
    assert (lacking["name"], lacking["reason"]) == ("web", "found 2 of 3 cluster(s)")
    [unwell] = (await dashboard.get("/api/clusters?state=unwell")).json()["items"]
    assert unwell["name"] == "west"
    for path in ("/api/placements?state=unwell", "/api/clusters?hue=1"):
        assert (await dashboard.get(path)).status == 400


async def test_lists_come_in_pages_of_which_the_last_has_what_is_left():
    dashboard = a_fleet()
    for path, names in (("placements", ["logs", "web"]), ("clusters", ["east", "north", "west"])):
        seen: list[str] = []
        while len(seen) < len(names):
            page = (await dashboard.get(f"/api/{path}?limit=2&offset={len(seen)}")).json()
            assert (page["total"], page["offset"]) == (len(names), len(seen))
            seen += [row["name"] for row in page["items"]]
        assert seen == names
        assert (await dashboard.get(f"/api/{path}?offset=9")).json()["items"] == []
        for wrong in ("limit=0", "limit=101", "offset=-1", "offset=x"):
            assert (await dashboard.get(f"/api/{path}?{wrong}")).status == 400


async def test_clusters_are_listed_with_taints_and_placements():
    items = {row["name"]: row for row in (await a_fleet().get("/api/clusters")).json()["items"]}
    assert {name: row["placements"] for name, row in items.items()} == {"east": 2, "north": 1, "west": 0}
    assert items["north"]["taints"] == ["maintenance=x"]
    assert (items["west"]["joined"], items["west"]["healthy"]) == ("True", "False")


async def test_a_placement_comes_with_its_decisions_and_bindings():
    dashboard = a_fleet()
    await dashboard.serve_api()
    dashboard.replies["get.clusterresourceplacement._.web"] = a_placed("web", 3, fulfilled="False")
    snapshot = a_snapshot("web", ("east", True, 20, -1, "picked"), ("west", False, 0, 0, "it is not eligible"))
    dashboard.replies["get.clusterschedulingpolicysnapshot._.web-0"] = snapshot
    shown = (await dashboard.get("/api/placement/clusterresourceplacement/_/web")).json()
    assert [each["cluster"] for each in shown["decisions"] if each["selected"]] == ["east"]
    assert shown["decisions"][0] | {"reason": ""} == {
        "cluster": "east",
        "selected": True,
        "affinityScore": 20,
        "topologySpreadScore": -1,
        "reason": "",
    }
    assert [(each["cluster"], each["state"], each["steps"]) for each in shown["bindings"]] == [
        ("east", "Bound", "ttttt"),
        ("north", "Scheduled", "-----"),
        ("south", "Unscheduled", "t----"),
    ]
    assert (await dashboard.get("/api/placement/clusterresourceplacement/_/nobody")).status == 404


async def test_a_placement_without_a_snapshot_has_no_decisions():
    dashboard = Dashboard()
    await dashboard.serve_api()
    dashboard.replies["get.clusterresourceplacement._.new"] = a_placed("new", 1)
    shown = (await dashboard.get("/api/placement/clusterresourceplacement/_/new")).json()
    assert (shown["snapshot"], shown["decisions"], shown["bindings"], shown["placement"]) == (None, [], [], None)


async def test_what_is_gone_counts_no_more_and_a_retired_snapshot_is_none():
    dashboard = a_fleet()
    dashboard.cache.remove(ObjectKey("clusterresourcebinding", "", "web-east"))
    dashboard.put(a_snapshot("web", latest=False))
    web = ObjectKey("clusterresourceplacement", "", "web")
    assert dashboard.cache.fleet.snapshot_of(web) is None
    assert [row.cluster for row in dashboard.cache.fleet.bindings_of(web)] == ["north", "south"]
    assert dashboard.cache.fleet.placements_on("east") == [web._replace(name="logs")]


async def test_a_cluster_leads_to_what_it_carries_and_a_binding_to_its_cluster():
    dashboard = a_fleet()
    await dashboard.serve_api()
    dashboard.replies["get.membercluster._.east"] = a_member("east")
    dashboard.replies["get.clusterresourcebinding._.web-east"] = a_binding("web", "east")
    related = (await dashboard.get("/api/object/membercluster/_/east")).json()["related"]
    assert [(each["role"], each["name"]) for each in related] == [("carries", "logs"), ("carries", "web")]
    related = (await dashboard.get("/api/object/clusterresourcebinding/_/web-east")).json()["related"]
    assert {(each["role"], each["name"]) for each in related} == {("owner", "web"), ("on", "east")}


def test_browsers_hear_that_a_fleet_changed_and_ask_themselves():
    dashboard = a_fleet()
    listener = dashboard.changes.listen()
    dashboard.changes.publish()
    batch = listener.batches.get_nowait()
    assert b'"fleet":true' in batch.body
    assert b'"web"' not in batch.body
