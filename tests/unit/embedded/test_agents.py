"""Which agents of a landscape come in as themselves, and which of them need a token for that."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509

from gardenbus.cli.local.directory import LandscapeDirectory
from gardenbus.common.api.identity.principals import Principal
from gardenbus.credentials.certificates import Authority, new_authority
from gardenbus.embedded.agents import agents_of, without_credentials
from gardenbus.embedded.process_specs import Configurations
from tests.support.member_agents import a_member_cluster, an_agent_configuration

NOW = datetime(2026, 6, 1, tzinfo=UTC)
CORK = Principal("gardenlet", "aws-cork")


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(new_authority("gardenbus", NOW))


def a_certificate(authority: Authority, life: timedelta = timedelta(days=30)) -> bytes:
    issued = authority.client(CORK, NOW, life)
    return issued.certificate + issued.key


def needs_token(directory: Path, *authorities: x509.Certificate) -> bool:
    return bool(without_credentials({CORK: directory}, authorities, NOW + timedelta(hours=1)))


def test_an_agent_needs_a_token_unless_its_certificate_lives(tmp_path: Path, authority: Authority) -> None:
    assert needs_token(tmp_path, authority.certificate)
    (tmp_path / "bootstrap-token").write_text("aaaaaa.bbbbbbbbbbbbbbbb\n")  # of a start that was cut short
    assert needs_token(tmp_path, authority.certificate)
    file = tmp_path / "credentials.pem"
    file.write_bytes(b"-----BEGIN CERTIFICATE-----\ncut")
    assert needs_token(tmp_path, authority.certificate)
    file.write_bytes(a_certificate(authority, timedelta(minutes=30)))
    assert needs_token(tmp_path, authority.certificate)
    file.write_bytes(a_certificate(authority, timedelta(hours=1, seconds=1)))
    assert needs_token(tmp_path, authority.certificate), "it ends while its agent starts"
    file.write_bytes(a_certificate(authority))
    assert not needs_token(tmp_path, authority.certificate)
    assert needs_token(tmp_path, Authority(new_authority("gardenbus", NOW)).certificate)


@pytest.mark.parametrize("name", ["credentials.json", "credentials.nk"])
def test_credentials_that_were_brought_along_will_do(tmp_path: Path, name: str, authority: Authority) -> None:
    (tmp_path / name).write_text("its owner's")
    assert not needs_token(tmp_path, authority.certificate)


def test_agents_of_enrolled_seeds_and_of_shoots_share_their_process(tmp_path: Path) -> None:
    directory = LandscapeDirectory(tmp_path)
    files: list[Path] = []
    for number, configuration in enumerate(
        (
            an_agent_configuration(a_member_cluster(), a_member_cluster("oslo", shoot="garden/oslo")),
            {**an_agent_configuration(a_member_cluster("paris")), "enrolSeeds": True},
        )
    ):
        files.append(tmp_path / f"memberagent-{number}.yaml")
        files[-1].write_text(yaml.safe_dump(configuration))
    configurations = Configurations({}, None, (), member_agents=files)
    assert agents_of(directory, configurations, ["aws-cork"]) == {
        CORK: directory.gardenlets / "aws-cork",
        Principal("member-agent", "lisbon"): directory.members / "lisbon",
    }
