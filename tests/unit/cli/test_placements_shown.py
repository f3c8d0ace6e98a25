"""`get` and `describe` of member clusters, placements and what lies between them."""

from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gardenbus.cli.commands import options
from gardenbus.cli.fleet.sections import fleet_sections
from gardenbus.cli.main import app
from gardenbus.cli.output.fleet_columns import FLEET_COLUMNS
from gardenbus.common.api.document import Document
from gardenbus.common.api.kinds import CLUSTER, PLACEMENT, understood_kinds
from tests.support.builders import merged
from tests.support.fake_api import FakeApi
from tests.support.fleets import a_member_document, a_placement_document

API = "placement.kubernetes-fleet.io/v1beta1"
PARENT = "kubernetes-fleet.io/parent-CRP"
PARENT_BINDING = "kubernetes-fleet.io/parent-resource-binding"


def reported(kind: str, status: str = "True") -> Document:
    return {"type": kind, "status": status}


def a_part(kind: str, name: str, **changes: Any) -> Document:
    default: Document = {"apiVersion": API, "kind": kind, "metadata": {"name": name, "labels": {PARENT: "web"}}}
    return merged(default, changes)


def a_binding(cluster: str, state: str, *conditions: Document, **changes: Any) -> Document:
    spec = {"state": state, "targetCluster": cluster, "schedulingPolicySnapshotName": "web-0"}
    default = a_part("ClusterResourceBinding", f"web-{cluster}", spec=spec, status={"conditions": list(conditions)})
    return merged(default, changes)


def a_work(cluster: str, binding: str) -> Document:
    owner = {"kind": "ClusterResourceBinding", "name": binding, "uid": "u"}
    return a_part(
        "Work",
        "web-work",
        metadata={
            "namespace": f"fleet-member-{cluster}",
            "labels": {PARENT_BINDING: binding},
            "ownerReferences": [owner],
        },
        spec={"workload": {"manifests": [{}, {}]}},
        status={"conditions": [reported("Applied"), reported("Available", "False")]},
    )


PLACEMENT_WITH_TWO = a_placement_document(
    {"placementType": "PickN", "numberOfClusters": 3},
    status={
        "conditions": [reported("ClusterResourcePlacementScheduled", "False")],
        "placementStatuses": [{"clusterName": "c1"}, {"clusterName": "c2"}, {}],
    },
)
OBJECTS = (
    a_member_document("c1", status={"resourceUsage": {"available": {"cpu": "9"}}}),
    {"kind": "MemberCluster", "metadata": {"name": "quiet"}, "spec": {}},
    PLACEMENT_WITH_TWO,
    a_binding("c1", "Bound", reported("Applied"), reported("Available")),
    a_binding("c2", "Unscheduled", metadata={"deletionTimestamp": "2026-11-21T12:00:00Z"}),
    a_part("ClusterSchedulingPolicySnapshot", "web-0", status={"targetClusters": [{"selected": True}, {}]}),
    a_work("c1", "web-c1"),
    a_work("c9", "other-web-c9"),
)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    def call(words: str) -> Result:
        monkeypatch.setattr(options, "connected", FakeApi(*OBJECTS).connected)
        response = CliRunner().invoke(app, [*words.split(), "--nats-url", "nats://nowhere:1"])
        assert response.exit_code == 0, response.output
        return response

    return call


def rows(response: Result) -> list[list[str]]:
    return [line.split() for line in response.stdout.splitlines()]


def test_every_kind_of_batch_placement_has_columns():
    assert {spec.singular for spec in understood_kinds() if spec.group in (PLACEMENT, CLUSTER)} == set(FLEET_COLUMNS)


def test_clusters_show_what_their_agents_say(run: Any):
    head, first, quiet = rows(run("get mcl"))

    assert head[:5] == ["NAME", "JOINED", "HEALTHY", "LAST", "SEEN"]
    assert first[:3] == ["c1", "True", "True"]
    assert "9" in first
    assert quiet[:4] == ["quiet", "Unknown", "Unknown", "<never>"]


def test_placements_show_how_many_clusters_they_have_of_those_wanted(run: Any):
    (_, row) = rows(run("get crp"))

    assert row[:4] == ["web", "PickN", "2/3", "False"]


def test_bindings_show_their_state_and_those_that_leave_say_so(run: Any):
    (_, bound, leaving) = rows(run("get crb"))

    assert bound[:4] == ["web-c1", "web", "c1", "Bound"]
    assert leaving[:4] == ["web-c2", "web", "c2", "Deleting"]


def test_works_and_snapshots_show_whom_they_belong_to(run: Any):
    assert rows(run("get work -n fleet-member-c1"))[1][:6] == ["fleet-member-c1", "web-work", "c1", "web", "2", "True"]
    assert rows(run("get csps"))[1] == ["web-0", "web", "no", "1"]


def test_a_placement_is_described_with_its_bindings_and_works(run: Any):
    text = run("describe crp web").stdout

    assert "web-c1  (web on c1: Bound, Applied True, Available True)" in text
    assert "web-c2  (web on c2: Deleting, nothing reported yet)" in text
    assert "fleet-member-c1/web-work  (Applied True, Available False)" in text
    assert "fleet-member-c9" not in text


def test_clusters_manifests_and_agents_are_told_in_a_row_each():
    now = datetime(2026, 11, 21, 12, 1, tzinfo=UTC)
    failed = {**reported("Applied", "False"), "message": "no room\nfor it"}
    status: Document = {
        "placementStatuses": [
            {
                "clusterName": "c1",
                "observedResourceIndex": "2",
                "conditions": [reported("Scheduled"), reported("Available")],
            },
            {"clusterName": "c2", "conditions": [reported("Scheduled"), failed]},
            {"conditions": [{**reported("Scheduled", "False"), "message": "gpu"}]},
        ],
        "manifestConditions": [{"identifier": {"kind": "ConfigMap", "namespace": "shop", "name": "a"}}],
        "agentStatus": [{"type": "MemberAgent", "lastReceivedHeartbeat": "2026-11-21T12:00:00Z", "conditions": []}],
    }

    clusters, manifests, agents = (lines for _, lines in fleet_sections(status, now))

    assert [line.split() for line in clusters[1:]] == [
        ["c1", "2", "Available", "True"],
        ["c2", "Applied", "False", "no", "room", "for", "it"],
        ["<missing>", "Scheduled", "False", "gpu"],
    ]
    assert manifests[1].split() == ["ConfigMap", "shop/a", "nothing", "reported", "yet"]
    assert agents[1].split() == ["MemberAgent", "60s", "nothing", "reported", "yet"]
    assert list(fleet_sections({}, now)) == []


def test_a_cluster_is_described_with_the_placements_on_it(run: Any):
    text = run("describe mcl c1").stdout

    assert "placements       1" in text
    assert "web-c1  (web on c1: Bound" in text
    assert "fleet-member-c1/web-work" in text
    assert "MemberAgent" in text
    assert "of namespaces" not in text


def test_a_binding_is_described_with_its_cluster_policy_and_works(run: Any):
    text = run("describe crb web-c1").stdout

    assert "c1  (Joined True, Healthy True)" in text
    assert "clusterschedulingpolicysnapshot" in text
    assert "fleet-member-c1/web-work" in text


def test_a_work_is_described_with_its_binding_and_cluster(run: Any):
    text = run("describe work web-work -n fleet-member-c1").stdout

    assert "(web on c1: Bound, Applied True, Available True)" in text
    assert "(Joined True, Healthy True)" in text


def test_whoever_may_not_read_works_is_shown_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    api = FakeApi(*OBJECTS)
    api.forbidden.add("list.work")
    monkeypatch.setattr(options, "connected", api.connected)
    response = CliRunner().invoke(app, ["describe", "crp", "web", "--nats-url", "nats://nowhere:1"])
    assert response.exit_code == 0, response.output
    assert "web-c1" in response.stdout
    assert "Works" not in response.stdout
