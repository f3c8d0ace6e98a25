"""How `up` starts member agents from their configurations."""

from pathlib import Path

import pytest

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.cli.manifests.files import read_files, sort_manifests
from gardenbus.common.errors import BadRequest, SettingsInvalid
from gardenbus.embedded.configurations import check_configurations, write_configurations
from gardenbus.embedded.process_specs import Addresses, service_specs
from tests.support.member_agents import a_member_cluster, an_agent_configuration

EXAMPLE = Path(__file__).parents[3] / "examples" / "fleet"


def a_directory(path: Path) -> LandscapeDirectory:
    directory = LandscapeDirectory(path)
    directory.prepare()
    return directory


def test_the_example_of_a_fleet_is_a_process_for_each_coast_and_manifests_in_order(tmp_path: Path):
    given = sort_manifests(read_files([EXAMPLE]))
    check_configurations(given)
    directory = a_directory(tmp_path)
    configurations, _ = write_configurations(directory, given)
    addresses = Addresses("nats://x", "redis://x", "garden")
    specs = service_specs(directory, addresses=addresses, configurations=configurations, replicas={})
    agents = [spec for spec in specs if spec.role == "memberagent"]
    assert [spec.name for spec in agents] == ["memberagent-1", "memberagent-2"]
    assert str(directory.members) in agents[0].command
    kinds = [document["kind"] for document in given.manifests]
    assert kinds.index("Deployment") < kinds.index("ClusterResourcePlacement")
    assert kinds.count("ClusterResourcePlacement") == 6


def test_agents_of_last_time_go_on_unless_there_is_a_new_configuration_of_their_name(tmp_path: Path):
    directory = a_directory(tmp_path)
    first = an_agent_configuration(a_member_cluster("lisbon"), metadata={"name": "south"})
    second = an_agent_configuration(a_member_cluster("oslo"), metadata={"name": "north"})
    write_configurations(directory, sort_manifests([first, second]))
    changed = an_agent_configuration(a_member_cluster("porto"), metadata={"name": "south"})
    configurations, _ = write_configurations(directory, sort_manifests([changed]))
    clusters = [
        each["metadata"]["name"]
        for file in configurations.member_agents
        for document in read_files([file])
        for each in document["clusters"]
    ]
    assert clusters == ["oslo", "porto"]


def test_no_agent_runs_where_none_is_configured(tmp_path: Path):
    configurations, _ = write_configurations(a_directory(tmp_path), sort_manifests([]))
    assert configurations.member_agents == []


def test_what_is_wrong_is_said_before_anything_starts():
    with pytest.raises(BadRequest, match="given twice under the name default"):
        sort_manifests([an_agent_configuration(a_member_cluster()), an_agent_configuration(a_member_cluster("oslo"))])
    with pytest.raises(SettingsInvalid, match="RFC 1123"):
        check_configurations(sort_manifests([an_agent_configuration(a_member_cluster("Lisbon"))]))
    named = [an_agent_configuration(a_member_cluster(), metadata={"name": name}) for name in ("a", "b")]
    with pytest.raises(SettingsInvalid, match="cluster lisbon is configured twice"):
        check_configurations(sort_manifests(named))
