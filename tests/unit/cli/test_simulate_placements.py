"""`simulate` of files that hold member clusters and placements."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from gardenbus.cli.main import app
from gardenbus.common.api.document import Document
from tests.support.builders import a_cloudprofile, a_project, a_seed, a_shoot
from tests.support.fleets import a_member_document, a_placement_document

Simulate = Callable[..., Result]
HEAVY = {"weight": 40, "preference": {"labelSelector": {"matchLabels": {"disk": "ssd"}}}}


@pytest.fixture
def simulated(tmp_path: Path) -> Simulate:
    def call(*documents: Document, output: str = "table") -> Result:
        file = tmp_path / "fleet.yaml"
        file.write_text(yaml.safe_dump_all(documents))
        return CliRunner().invoke(app, ["simulate", str(file), "-o", output])

    return call


def pick(number: int, **more: Any) -> Document:
    return {"placementType": "PickN", "numberOfClusters": number, **more}


def preferring_ssd(number: int) -> Document:
    stated = {"preferredDuringSchedulingIgnoredDuringExecution": [HEAVY]}
    return pick(number, affinity={"clusterAffinity": stated})


def fleet() -> list[Document]:
    return [
        a_member_document("c1"),
        a_member_document("c2", {"disk": "ssd"}),
        a_member_document("c3"),
        a_member_document("c4", spec={"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]}),
    ]


def test_each_placement_is_answered_with_its_decisions_in_order(simulated: Simulate):
    response = simulated(*fleet(), a_placement_document(preferring_ssd(2)), output="json")

    (entry,) = json.loads(response.stdout)
    assert (entry["placement"], entry["fulfilled"]) == ("web", True)
    rows = [
        (each["cluster"], each["selected"], each["affinityScore"], each["topologySpreadScore"])
        for each in entry["decisions"]
    ]
    assert rows == [("c2", True, 40, 0), ("c3", True, 0, 0), ("c1", False, 0, 0), ("c4", False, None, None)]
    assert all(
        set(each) == {"cluster", "selected", "affinityScore", "topologySpreadScore", "reason"}
        for each in entry["decisions"]
    )


def test_the_table_says_who_was_taken_and_why_the_others_were_not(simulated: Simulate):
    response = simulated(*fleet(), a_placement_document(pick(4)))

    assert response.exit_code == 0
    assert "0 of 1 placements fulfilled" in response.stdout
    assert "web: 3 of 4 clusters, NOT fulfilled" in response.stdout
    (row,) = [line for line in response.stdout.splitlines() if line.startswith("c4")]
    assert "no" in row.split()
    assert "gpu" in row


def test_many_clusters_with_one_reason_share_a_row(simulated: Simulate):
    taints = [{"key": "gpu", "effect": "NoSchedule"}]
    tainted = [a_member_document(f"t{number}", spec={"taints": taints}) for number in range(9)]

    response = simulated(*tainted, a_placement_document())

    assert "t0, t1, t2, t3, t4 and 4 more" in response.stdout


def test_names_are_a_line_each(simulated: Simulate):
    response = simulated(*fleet(), a_placement_document(preferring_ssd(2)), output="name")

    assert response.stdout.splitlines() == ["web c2", "web c3"]


def test_files_with_shoots_and_placements_are_answered_with_both(simulated: Simulate):
    landscape = [a_project(), a_cloudprofile(), a_seed("aws"), a_shoot("apollo")]

    response = simulated(*landscape, *fleet(), a_placement_document(), output="json")

    shoots, placements = map(json.loads, response.stdout.replace("\n}\n[", "\n}\0[").split("\0"))
    assert [each["shoot"] for each in shoots["placements"]] == ["garden-dev/apollo"]
    assert [each["placement"] for each in placements] == ["web"]
    tables = simulated(*landscape, *fleet(), a_placement_document()).stdout
    assert "garden-dev/apollo" in tables
    assert "web: 3 of 4 clusters, fulfilled" in tables


def test_what_cannot_be_decided_is_said(simulated: Simulate):
    selector = {"matchExpressions": [{"name": "cpu-count", "operator": "Gt", "values": ["many"]}]}
    terms = {"clusterSelectorTerms": [{"propertySelector": selector}]}
    affinity = {"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    one = a_member_document("c1", status={"properties": {"cpu-count": {"value": "4"}}})

    response = simulated(one, a_placement_document(pick(1, affinity=affinity)))

    assert response.exit_code == 0
    assert "web: cannot be decided: " in response.stdout


AGENT = {
    "apiVersion": "memberagent.config.gardenbus.io/v1alpha1",
    "kind": "MemberAgentConfiguration",
    "clusters": [
        {"metadata": {"name": "lisbon", "labels": {"disk": "ssd"}}, "properties": {"cost": "3"}},
        {"metadata": {"name": "porto"}, "spec": {"taints": [{"key": "gpu"}]}},
    ],
}


def test_the_clusters_of_an_agents_configuration_count_as_ready(simulated: Simulate):
    response = simulated(a_member_document("c1"), AGENT, a_placement_document(preferring_ssd(2)), output="name")

    assert response.stdout.splitlines() == ["web lisbon", "web c1"]
    assert simulated(AGENT, a_placement_document(), output="name").stdout.splitlines() == ["web lisbon"]


def test_seeds_are_enrolled_where_an_agents_configuration_says_so(simulated: Simulate):
    agent = {**AGENT, "clusters": [], "enrolSeeds": True}

    response = simulated(a_seed("aws"), a_seed("silent", ready=False), agent, a_placement_document(), output="name")

    assert response.stdout.splitlines() == ["web aws"]


def test_a_configuration_that_cannot_be_read_ends_with_2(simulated: Simulate):
    response = simulated({**AGENT, "clusters": []}, a_placement_document())

    assert response.exit_code == 2
    assert "clusters" in response.stderr


def test_a_kind_that_is_no_text_is_none_that_is_simulated(simulated: Simulate) -> None:
    result = simulated({"kind": {"name": "a"}}, {"kind": ["b"]}, a_placement_document())
    assert result.exit_code == 0, result.output
