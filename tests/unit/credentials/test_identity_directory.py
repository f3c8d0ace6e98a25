"""A landscape's keys: made once, kept, repaired after a cut, and nobody else's."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gardenbus.common.errors import SettingsInvalid
from gardenbus.credentials.certificates import read_certificate
from gardenbus.credentials.identity_directory import IdentityDirectory
from tests.support.files import open_to_others

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
SERVICES = ("relay", "apiserver")


def contents(directory: Path) -> dict[str, bytes]:
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


@pytest.fixture
def directory(tmp_path: Path) -> IdentityDirectory:
    made = IdentityDirectory(tmp_path / "identity")
    made.prepare(SERVICES, NOW)
    return made


def test_nobody_else_may_read_the_keys_whatever_the_umask_is(tmp_path: Path):
    before = os.umask(0)
    try:
        IdentityDirectory(tmp_path / "identity").prepare(SERVICES, NOW)
    finally:
        os.umask(before)
    assert open_to_others(tmp_path / "identity") == []


def test_a_second_start_makes_nothing_anew(directory: IdentityDirectory):
    before, first = contents(directory.path), directory.prepare(SERVICES, NOW)
    assert directory.prepare(SERVICES, NOW + timedelta(days=100)) == first
    assert contents(directory.path) == before
    assert set(first.services) == set(SERVICES)


@pytest.mark.parametrize(
    "lost", ["server.crt", "server.key", "issuer.nk", "callout.nk", "system.nk", "operator.json", "services/relay.nk"]
)
def test_what_a_cut_left_out_is_made_and_the_rest_stays(directory: IdentityDirectory, lost: str):
    before = contents(directory.path)
    (directory.path / lost).unlink()
    directory.prepare(SERVICES, NOW)
    after = contents(directory.path)
    assert after.keys() == before.keys()
    pair = {"server.crt", "server.key"}
    assert {name for name in after if after[name] != before[name]} == (pair if lost in pair else {lost})


def test_a_cut_between_the_authoritys_key_and_its_certificate_makes_both_anew(directory: IdentityDirectory):
    directory.authorities.unlink()
    directory.prepare(SERVICES, NOW)
    authority = directory.authority().certificate
    read_certificate(directory.server_certificate.read_bytes()).verify_directly_issued_by(authority)


def test_an_authority_without_its_key_is_not_replaced(directory: IdentityDirectory):
    directory.authority_key.unlink()
    directory.server_certificate.unlink()
    with pytest.raises(SettingsInvalid, match=r"ca\.key: No such file"):
        directory.prepare(SERVICES, NOW)


def test_a_servers_certificate_is_renewed_before_it_ends_and_for_other_names(directory: IdentityDirectory):
    before = directory.server_certificate.read_bytes()
    directory.prepare(SERVICES, NOW + timedelta(days=310))
    renewed = directory.server_certificate.read_bytes()
    assert renewed != before
    directory.prepare(SERVICES, NOW + timedelta(days=310), ("nats", "localhost"))
    assert directory.server_certificate.read_bytes() != renewed


def test_a_file_that_is_no_key_is_named(directory: IdentityDirectory):
    directory.service("relay").write_text("not a key")
    with pytest.raises(SettingsInvalid, match=r"relay\.nk: .*remove it"):
        directory.prepare(SERVICES, NOW)


def test_what_others_could_read_is_tightened(directory: IdentityDirectory):
    directory.path.chmod(0o755)
    directory.services.chmod(0o755)
    directory.issuer.chmod(0o644)
    directory.service("relay").chmod(0o664)
    directory.prepare(SERVICES, NOW)
    assert open_to_others(directory.path) == []
