"""Why a landscape does not let one in, as far as the command line can tell."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gardenbus.cli.client.rejections import reason_for
from gardenbus.cli.client.targets import LandscapeTarget
from gardenbus.common.api.identity.principals import Principal
from gardenbus.credentials.certificates import Authority, new_authority
from gardenbus.credentials.new_nkeys import new_nkey

NOW = datetime(2026, 3, 1, tzinfo=UTC)
WHERE = LandscapeTarget("nats://lab:4222", "garden")
ANN = Principal("user", "ann")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "own"


def of(file: Path, content: bytes, ca: Path | None = None) -> str:
    file.write_bytes(content)
    return reason_for(WHERE._replace(credentials=file, ca=str(ca) if ca else None), NOW)


def test_who_sends_nothing_is_told_where_credentials_come_from():
    assert reason_for(WHERE, NOW).startswith("no credentials were sent. `gardenbus login` keeps")


def test_who_has_another_landscapes_password_is_told_which_file_it_is_in(tmp_path: Path):
    where = WHERE._replace(login=("operator", "p"), directory=tmp_path)

    assert f"the password of operator in {tmp_path / 'landscape.json'} is of another landscape" in reason_for(
        where, NOW
    )
    assert "in its address" in reason_for(WHERE._replace(nats_url="nats://ann:wrong@lab:4222"), NOW)


@pytest.mark.parametrize(("ends", "reason"), [(-1, "expired at 2026-02-28"), (1, "does not know those in")])
def test_what_expired_is_told_apart_from_what_is_not_known(file: Path, ends: int, reason: str):
    expires = (NOW + timedelta(days=ends)).isoformat()
    login = json.dumps({"user": "ann", "password": "p", "expires": expires}).encode()
    authority = Authority(new_authority("garden", NOW - timedelta(days=30)))
    issued = authority.client(ANN, NOW - timedelta(days=2), timedelta(days=2 + ends))

    assert reason in of(file, login)
    assert reason in of(file, issued.certificate + issued.key)
    assert str(file) in of(file, login)


def test_a_certificate_with_another_key_and_one_of_another_authority_are_named(file: Path, tmp_path: Path):
    authorities = [new_authority("garden", NOW) for _ in range(2)]
    own, other = (Authority(each).client(ANN, NOW) for each in authorities)
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authorities[0].certificate)

    assert "the key in" in of(file, own.certificate + other.key, ca)
    assert "is of another authority than those in" in of(file, other.certificate + other.key, ca)
    assert "were revoked" in of(file, own.certificate + own.key, ca)


def test_an_nkey_is_not_known_and_a_file_that_is_away_is_named(file: Path):
    assert "does not know those in" in of(file, new_nkey("user").seed.encode())
    file.unlink()
    assert "cannot be read" in reason_for(WHERE._replace(credentials=file), NOW)
