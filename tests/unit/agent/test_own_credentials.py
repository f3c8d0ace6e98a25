"""Whose credentials an agent connects with: its own, the process's that name it, or those that all share."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gardenbus.agent.connections import own_credentials
from gardenbus.common.adapters.nats.credentials import NO_CREDENTIALS, Credentials, read_credentials
from gardenbus.common.api.identity.principals import Principal
from gardenbus.common.errors import SettingsInvalid
from gardenbus.credentials.certificates import Authority, new_authority
from gardenbus.credentials.new_nkeys import new_nkey

CORK, DUBLIN = Principal("gardenlet", "aws-cork"), Principal("gardenlet", "aws-dublin")


def certificate(file: Path, principal: Principal) -> Path:
    """Write a certificate of a principal, and its key."""
    now = datetime.now(UTC)
    issued = Authority(new_authority("gardenbus", now)).client(principal, now, timedelta(days=1))
    file.write_bytes(issued.certificate + issued.key)
    return file


def of_process(file: Path, principal: Principal) -> Credentials:
    """Credentials of a process."""
    return read_credentials(certificate(file, principal), "gardenlet")


def test_an_agent_without_any_shares_the_process_s_connection(tmp_path: Path) -> None:
    assert own_credentials(CORK, tmp_path, NO_CREDENTIALS) is None


def test_an_agent_shares_the_connection_of_a_service(tmp_path: Path) -> None:
    (tmp_path / "gardenlet.nk").write_text(new_nkey("user").seed)
    assert own_credentials(CORK, tmp_path, read_credentials(tmp_path / "gardenlet.nk", "gardenlet")) is None


def test_a_file_of_its_own_comes_before_the_process_s(tmp_path: Path) -> None:
    file = certificate(tmp_path / "credentials.pem", CORK)
    found = own_credentials(CORK, tmp_path, of_process(tmp_path / "process.pem", DUBLIN))
    assert found is not None
    assert (found.principal, found.file) == (CORK, file)
    assert found.expires() is not None


def test_a_password_will_do_and_an_nkey_is_the_agent_s(tmp_path: Path) -> None:
    (tmp_path / "credentials.json").write_text('{"user": "seed:aws-cork", "password": "long"}')
    by_password = own_credentials(CORK, tmp_path, NO_CREDENTIALS)
    (tmp_path / "credentials.json").unlink()
    (tmp_path / "credentials.nk").write_text(new_nkey("user").seed)
    by_nkey = own_credentials(CORK, tmp_path, NO_CREDENTIALS)
    assert [each and each.principal for each in (by_password, by_nkey)] == [CORK, CORK]


def test_the_process_s_will_do_when_they_name_the_agent(tmp_path: Path) -> None:
    found = own_credentials(CORK, tmp_path, of_process(tmp_path / "process.pem", CORK))
    assert found is not None
    assert found.principal == CORK


def test_those_of_another_agent_are_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(SettingsInvalid, match=r"seed:aws-cork cannot connect with the .* of seed:aws-dublin .*; put"):
        own_credentials(CORK, tmp_path, of_process(tmp_path / "process.pem", DUBLIN))
    certificate(tmp_path / "credentials.pem", DUBLIN)
    with pytest.raises(SettingsInvalid, match=r"of seed:aws-dublin \(.*credentials.pem\)$"):
        own_credentials(CORK, tmp_path, NO_CREDENTIALS)


@pytest.mark.parametrize("name", ["a_view", "a.b", "-a", "a" * 64])
def test_no_agent_has_a_name_that_another_s_consumer_or_subject_has(tmp_path: Path, name: str) -> None:
    (tmp_path / "credentials.json").write_text(f'{{"user": "seed:{name}", "password": "long"}}')
    with pytest.raises(SettingsInvalid, match="at most 63 of a-z, 0-9 and -"):
        own_credentials(CORK, tmp_path, NO_CREDENTIALS)
