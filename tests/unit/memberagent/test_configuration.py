"""The configuration of member agents."""

from pathlib import Path

import pytest

from gardenbus.agent.domain.registration import FINGERPRINT, member_cluster_manifest
from gardenbus.common.api.configuration.member_agent import check_together, parse_configurations
from gardenbus.common.api.document import encode
from gardenbus.common.errors import SettingsInvalid
from gardenbus.memberagent.settings import load_settings
from tests.support.member_agents import a_member_cluster, an_agent_configuration, read

EXAMPLE = Path(__file__).parents[3] / "examples" / "fleet" / "agents.yaml"


def test_the_example_holds_thirteen_clusters_on_two_coasts() -> None:
    atlantic, baltic = parse_configurations(EXAMPLE.read_bytes())
    assert (atlantic.metadata.name, len(atlantic.clusters)) == ("atlantic", 7)
    assert (baltic.metadata.name, len(baltic.clusters)) == ("baltic", 6)
    assert check_together([atlantic, baltic]) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"clusters": []}, "there are none"),
        ({"heartbeatPeriodSeconds": 0}, "must be 1 to 600"),
        ({"clusters": [a_member_cluster("Lisbon")]}, "RFC 1123"),
        ({"clusters": [a_member_cluster(properties={"nodes": "many"})]}, "clusters[0].properties.nodes"),
        ({"clusters": [a_member_cluster(failures="explode")]}, "clusters[0].failures"),
        ({"cluster": []}, "unknown field"),
        ({"backend": {"type": 1}}, "backend.type"),
        ({"backend": {"applySeconds": -1}}, "must not be negative"),
    ],
)
def test_what_is_wrong_is_reported_with_its_path(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(SettingsInvalid) as raised:
        parse_configurations(encode({**an_agent_configuration(a_member_cluster()), **changes}))
    assert problem in "; ".join(raised.value.problems)


def test_a_cluster_is_configured_once() -> None:
    twice = [read(an_agent_configuration(a_member_cluster()))] * 2
    assert check_together(twice) == ["cluster lisbon is configured twice"]


def test_seeds_are_enrolled_by_one_configuration_only() -> None:
    assert check_together([read(an_agent_configuration(enrolSeeds=True))] * 2) == [
        "enrolSeeds: set in more than one configuration"
    ]


def test_a_manifest_carries_what_shows_whether_it_is_registered() -> None:
    (cluster,) = read(an_agent_configuration(a_member_cluster())).clusters
    same = member_cluster_manifest(cluster, period_seconds=60)
    assert same == member_cluster_manifest(cluster, period_seconds=60)
    other = member_cluster_manifest(cluster, period_seconds=30)
    assert same["metadata"]["annotations"][FINGERPRINT] != other["metadata"]["annotations"][FINGERPRINT]
    assert same["spec"]["heartbeatPeriodSeconds"] == 60


def test_settings_come_from_files_and_the_command_line(tmp_path: Path) -> None:
    settings = load_settings(["--config", str(EXAMPLE), "--state-dir", str(tmp_path)], {})
    assert len(settings.configurations) == 2
    assert settings.state_dir == str(tmp_path)
    with pytest.raises(SettingsInvalid) as raised:
        load_settings(["--config", str(EXAMPLE), "--config", str(EXAMPLE)], {})
    assert "cluster brest is configured twice" in raised.value.problems


def test_seeds_cannot_be_enrolled_by_agents_that_register_nothing() -> None:
    with pytest.raises(SettingsInvalid, match="registration: cannot be Never"):
        read(an_agent_configuration(enrolSeeds=True, registration="Never"))


def test_a_lone_surrogate_in_a_configuration_is_a_problem_of_the_file() -> None:
    with pytest.raises(SettingsInvalid, match="surrogates not allowed"):
        parse_configurations(b'{"apiVersion": "a\\udfff", "kind": "MemberAgentConfiguration"}')
